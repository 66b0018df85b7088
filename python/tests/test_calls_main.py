"""ProcessExecutor: what the main module defines works however the program was started."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import needs_processes

pytestmark = needs_processes

# Runs as the main module, or as a child process's.
DEFINED = """
import abc, dataclasses, enum, functools, multiprocessing, sys
import leveret

class Color(enum.Enum):
    RED = 1
    BLUE = 2

@dataclasses.dataclass
class Point:
    x: int
    made = []
    def moved(self):
        return Point(self.x + STEP)

@dataclasses.dataclass
class Point3(Point):
    y: int = 0

@dataclasses.dataclass(frozen=True)
class Fixed:
    x: int

class Shape(abc.ABC):
    count = 0
    @abc.abstractmethod
    def area(self): ...

class Square(Shape):
    __slots__ = ("a",)
    def __init__(self, a): self.a = a
    def area(self): return self.a * self.a
    def __eq__(self, other): return type(other) is Square and other.a == self.a

class Missing:
    def __reduce__(self): return "MISSING"

MISSING = Missing()
STEP = 10

class Own(Exception):
    def __init__(self, step, residual): super().__init__(f"step {step}: {residual}")

def move(p): return p.moved()
def paint(c): return c is Color.RED, c, {c: [c]}
def is_missing(x): return x is MISSING, x
def square(a): return Square(a)
def both(s): Shape.count += 1; Square.extra = 1; return s, Shape.count
def fail(): raise Own(3, 0.5)
def give(): return move, Point, Point.moved
def counts(values):
    class Local(Square): pass
    return [Local(v).area() for v in values], Local(values[0])

def check():
    with leveret.ProcessExecutor(1) as ex:
        run = lambda f, *a: ex.submit(f, *a).result(60)
        before = Point.moved, Shape.count, set(vars(Square)) - {"__slotnames__"}
        for _ in range(2):
            got = run(move, Point(1))
            assert type(got) is Point and got == Point(11), got
            assert type(got.moved()) is Point
            assert run(paint, Color.RED) == (True, Color.RED, {Color.RED: [Color.RED]})
            assert run(paint, Color.BLUE)[1] is Color.BLUE
            is_it, back = run(is_missing, MISSING)
            assert is_it and back is MISSING
            assert run(both, Square(3)) == (Square(3), 1)
            assert run(square, 4).area() == 16 and type(run(square, 4)) is Square
            made, fixed = run(lambda: (Point3(1, 2), Fixed(3)))
            assert type(made) is Point3 and made == Point3(1, 2) and isinstance(made, Point)
            assert type(fixed) is Fixed and fixed == Fixed(3)
            error = ex.submit(fail).exception(60)
            assert type(error) is Own and str(error) == "step 3: 0.5", error
            assert run(give) == (move, Point, Point.moved)
            areas, local = run(counts, [1, 2])
            assert areas == [1, 4] and isinstance(local, Square) and type(local).__name__ == "Local"
            assert type(run(lambda x: x, local)) is type(local)
        assert list(ex.map(square, range(50))) == [Square(i) for i in range(50)]
        assert all(type(each) is Square for each in ex.map(square, range(9), chunksize=3))
        # Nothing that came back has changed what is here.
        assert (Point.moved, Shape.count, set(vars(Square)) - {"__slotnames__"}) == before
        assert Point.moved.__globals__ is globals()
        assert run(functools.partial(move), Point(5)) == Point(15)
        global STEP
        STEP = 20
        assert run(move, Point(1)) == Point(21)
        assert multiprocessing.parent_process() is None or run(move, Point(1)) == Point(21)
    print("passed", flush=True)
"""

WAYS = ["script", "-c", "stdin", "-m", "spawn", "forkserver", "renamed"]
# As mpi4py.futures runs a program in its processes.
RENAMED = """
import sys, types
module = types.ModuleType("__worker__")
sys.modules["__main__"] = sys.modules["__worker__"] = module
exec({code!r}, vars(module))
module.check()
"""


def check_program(folder: Path | str, *words: str, text: str | None = None) -> None:
    done = subprocess.run(
        [sys.executable, *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "passed\n", "")


@pytest.mark.parametrize("way", WAYS)
def test_of_main(way: str, tmp_path: Path) -> None:
    code = DEFINED
    if way in ("spawn", "forkserver"):
        code += textwrap.dedent(f"""
            if __name__ == "__main__":
                child = multiprocessing.get_context("{way}").Process(target=check)
                child.start()
                child.join()
                sys.exit(child.exitcode)
            """)
    elif way == "renamed":
        code = RENAMED.format(code=code)
    else:
        code += "\ncheck()\n"
    package = tmp_path / "program_of_ours"
    package.mkdir()
    (package / "__init__.py").touch()
    path = package / "start.py"
    path.write_text(code)
    arguments = {"-c": ["-c", code], "stdin": ["-"], "-m": ["-m", "program_of_ours.start"]}
    words = arguments.get(way, [str(path)])
    check_program(tmp_path, "-W", "error", *words, text=code if way == "stdin" else None)


def test_of_a_module_that_only_this_process_can_find(tmp_path: Path) -> None:
    """As pytest imports test files with --import-mode=importlib."""
    path = tmp_path / "hidden_away.py"
    path.write_text(DEFINED)
    code = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("hidden_away", {str(path)!r})
module = importlib.util.module_from_spec(spec)
sys.modules["hidden_away"] = module
spec.loader.exec_module(module)
module.check()
"""
    check_program("/", "-c", code)


IMPORTER = """
import importlib.abc, importlib.util, sys
import leveret

SOURCES = {{
    "of_ours": "from of_ours.inside import Odd, add\\n",
    "of_ours.inside": "class Odd:\\n    n = 5\\ndef add(x): return x + STEP + Odd.n\\n",
}}

class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        file = {file!r} if name == "changed" else None
        if name == "changed" or name in SOURCES:
            is_package = name == "of_ours"
            return importlib.util.spec_from_loader(name, self, origin=file, is_package=is_package)
    def exec_module(self, module):
        name = module.__name__
        if name == "changed":
            module.__file__ = {file!r}
        source = SOURCES.get(name) or open(module.__file__).read()
        exec(source.replace("STEP", "10"), vars(module))

sys.meta_path.insert(0, Importer())
import changed, of_ours

def imports(x):
    from of_ours.inside import add
    return add(x)

with leveret.ProcessExecutor(1) as executor:
    run = lambda f, *args: executor.submit(f, *args).result(60)
    assert run(of_ours.add, 1) == run(imports, 1) == 16
    assert type(run(of_ours.Odd)) is of_ours.Odd
    assert run(changed.step) == 10
print("passed")
"""


def test_of_modules_that_an_importer_of_the_programs_has_made(tmp_path: Path) -> None:
    """Of nothing that a worker could find, and of a file that it would read otherwise."""
    file = tmp_path / "changed.py"
    file.write_text("def step(): return STEP\n")
    check_program(tmp_path, "-c", IMPORTER.format(file=str(file)))


MADE = """
import sys, types
from unittest import mock
import leveret

class Kind:
    pass

def make(name, **contents):
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(contents)
    return made

options = make("options", step=10, add=lambda x: x + STEP, Kind=Kind)
package = make("of_parts", __path__=[{folder!r}])
package.part = make("of_parts.part", value=5)
STEP = 1

def imports(x):
    import options, of_parts.part
    from of_parts.part import value
    return options.add(x) + options.step + of_parts.part.value + value

def names(x):
    return options.step + x, options.Kind is Kind

def finds(x):
    import of_parts.on_disk
    return of_parts.on_disk.value + x

def stands_in():
    import stand_in

class Lazy(types.ModuleType):
    pass

with leveret.ProcessExecutor(1, preload=()) as executor:
    run = lambda f, *args: executor.submit(f, *args).result(60)
    assert run(imports, 1) == 22 and run(names, 1) == (11, True)
    options.step = 20
    assert run(imports, 1) == 32 and run(names, 1) == (21, True)
    assert run(finds, 1) == 8
    for kind in (Lazy, mock.MagicMock):
        sys.modules["stand_in"] = kind("stand_in")
        error = executor.submit(stands_in).exception(60)
        assert type(error) is ModuleNotFoundError and error.name == "stand_in", repr(error)
        assert kind.__name__ in str(error) and "initializer" in str(error), str(error)
print("passed")
"""


def test_of_modules_that_the_program_has_made_without_code(tmp_path: Path) -> None:
    """As tests stand in for packages that are not there."""
    (tmp_path / "on_disk.py").write_text("value = 7\n")
    check_program(tmp_path, "-c", MADE.format(folder=str(tmp_path)))
