"""Where modules are searched: processes find what this one finds, whatever folder it goes to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT, needs_processes

pytestmark = needs_processes

HELPER = """
TABLE = {"a": 1}
class Kind:
    pass
def add(x):
    return x + TABLE["a"]
"""
CHECK = """
import sys, os
{before}
import helper, leveret
def uses(x):
    return helper.add(x)
def imports(x):
    from helper import add
    return add(x)
def check(executor):
    assert executor.submit(helper.add, 1).result(60) == 2
    assert executor.submit(uses, 2).result(60) == 3
    assert executor.submit(imports, 3).result(60) == 4
    assert type(executor.submit(helper.Kind).result(60)) is helper.Kind
with leveret.ProcessExecutor(1, preload=()) as executor:
    check(executor)
    {change}
    check(executor)
    executor.submit(os._exit, 1).exception(60)  # another process has imported nothing yet
    check(executor)
with leveret.ProcessExecutor(1, preload=()) as executor:
    check(executor)
"""
CHANGES = {
    "another folder": "os.chdir('/')",
    "another folder that goes": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "a path without it": "sys.path.remove('lib') if 'lib' in sys.path else sys.path.remove('')",
}


def run(program: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("entry", ["lib", ""])
def test_a_module_of_a_relative_entry(entry: str, change: str, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text(HELPER)
    before = f"sys.path[:] = [{entry!r}, *filter(None, sys.path)]"
    program = CHECK.format(before=before, change=CHANGES[change])
    run(program, tmp_path if entry else tmp_path / "lib")


def test_workers_in_another_folder_search_in_this_one(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    program = """
import sys
sys.path.insert(0, "")
import leveret
def imports(x):
    import helper
    return helper.add(x)
with leveret.ProcessExecutor(1, preload=(), cwd="/") as executor:
    assert executor.submit(imports, 1).result(60) == 2
"""
    run(program, tmp_path)


def test_a_program_that_compares_no_bytes_with_text(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import leveret\n"
        "with leveret.ProcessExecutor(1, preload=()) as executor:\n"
        "    assert executor.submit(lambda: b'a').result(60) == b'a'\n"
    )
    done = subprocess.run(
        [sys.executable, "-bb", str(program)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_modules_of_one_name_and_one_file_of_two_names(tmp_path: Path) -> None:
    """Each function runs in the module that the host has it from."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(
            f"NAME = {name!r}\ndef f():\n    return NAME\n"
            "class C:\n    def m(self):\n        return f()\n"
        )
    program = """
import importlib.util, sys
import leveret

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

sys.path.insert(0, "one")
import helper
other = load("helper", "two/helper.py")
other.itself = other

def both():
    return helper.f(), other.f(), helper.C().m(), other.itself.C().m()

with leveret.ProcessExecutor(1, preload=()) as executor:
    assert executor.submit(helper.f).result(60) == "one"
    assert executor.submit(both).result(60) == ("one", "two", "one", "two")
    # The file of a module that can be imported under its own name, and not under this one.
    fractions = sys.modules["fractions"] = load("fractions", "one/helper.py")
    assert executor.submit(fractions.f).result(60) == "one"
    assert executor.submit(fractions.C().m).result(60) == "one"
"""
    run(program, tmp_path)


SCRIPT = """
import dataclasses, enum
import leveret

class Kind(enum.Enum):
    ONE = 1

@dataclasses.dataclass
class Pair:
    kind: "Kind" = Kind.ONE

def is_one(pair):
    return pair.kind is Kind.ONE

with leveret.ProcessExecutor(1, preload=()) as executor:
    assert executor.submit(is_one, Pair()).result(60)
    assert executor.submit(lambda pair: pair, Pair()).result(60) == Pair()
"""
RUN = "import runpy; runpy.run_path('tool')"
LOAD = """
import importlib.machinery, sys, types
module = sys.modules["tool"] = types.ModuleType("tool")
loader = importlib.machinery.SourceFileLoader("tool", "./tool")
module.__file__, module.__loader__ = "./tool", loader
loader.exec_module(module)
"""


@pytest.mark.parametrize("program", [RUN, LOAD], ids=["run_path", "loader"])
def test_code_in_a_file_whose_name_has_no_suffix(program: str, tmp_path: Path) -> None:
    """Processes cannot import it, as any that is loaded by its path."""
    (tmp_path / "tool").write_text(SCRIPT)
    run(program, tmp_path)


def test_a_function_that_came_with_a_reload_is_told_and_a_new_executor_has_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "helper.py").write_text("def f():\n    return 1\n")
    program = """
import importlib, pathlib, sys
sys.path.insert(0, "")
import helper, leveret

def told(future):
    assert type(future.exception(60)) is AttributeError
    return str(future.exception())

with leveret.ProcessExecutor(1, preload=()) as executor:
    assert executor.submit(helper.f).result(60) == 1
    source = "def f():\\n    return 'two'\\ndef g(*_):\\n    return 3\\n"
    pathlib.Path("helper.py").write_text(source)
    importlib.reload(helper)
    for future in (executor.submit(helper.g), executor.submit(len, [helper.g])):
        assert "cannot be unpickled in the worker" in told(future) and "a new ex" in told(future)
    got = list(executor.map(helper.g, [1, 2], chunksize=2, return_exceptions=True))
    assert all("cannot be unpickled in the worker" in str(each) for each in got)
with leveret.ProcessExecutor(1, preload=()) as executor:
    assert executor.submit(helper.f).result(60) == "two"
    assert executor.submit(helper.g).result(60) == 3
"""
    run(program, tmp_path)


@pytest.mark.parametrize("pool", [None, "paths"], ids=["own", "shared"])
def test_what_an_initializer_adds_to_the_path_stays_when_the_path_changes_here(
    pool: str | None, tmp_path: Path
) -> None:
    """At its end of the path, and in processes of no other program of a pool."""
    for name in ("before", "behind"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of_{name}.py").touch()
    program = f"""
import os, sys
import leveret

def add():
    sys.path.insert(0, os.path.abspath("before"))
    sys.path.append(os.path.abspath("behind"))

def added():
    import of_before, of_behind
    names = (os.path.basename(each) for each in sys.path)
    return [each for each in names if each in ("before", "here", "behind")]

def there(executor):
    return executor.submit(added).result(60)

def other():
    return [each for each in sys.path if each.endswith(("before", "behind"))]

pool = {pool!r} and f"paths-{{os.getpid()}}"
with leveret.ProcessExecutor(1, preload=(), pool=pool, initializer=add) as executor:
    assert there(executor) == ["before", "behind"]
    sys.path.append(os.path.abspath("here"))
    assert there(executor) == ["before", "here", "behind"]
    if pool:
        with leveret.ProcessExecutor(1, preload=(), pool=pool) as another:
            assert another.submit(other).result(60) == []
    sys.path.pop()
    assert there(executor) == ["before", "behind"]
"""
    run(program, tmp_path)
