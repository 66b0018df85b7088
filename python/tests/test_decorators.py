"""Functions of the main module whose globals are another module's, and the other way round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

MODULE = """
import functools, threading
CALLS = []
lock = threading.Lock()

def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        with lock:
            CALLS.append(function.__name__)
        return function(*args)
    return wrapper

def total():
    return len(CALLS)

caches = {}

def cached(function):
    caches[function.__qualname__] = {}
    @functools.wraps(function)
    def wrapper(x):
        known = caches[function.__qualname__]
        if x not in known:
            known[x] = function(x), len(known)
        return known[x]
    return wrapper

class Boxed:
    def __init__(self, value):
        self.value = value

def boxed(function):
    @functools.wraps(function)
    def wrapper(*args):
        return Boxed(function(*args))
    return wrapper

def adder(k):
    def add(x):
        with lock:
            CALLS.append("add")
        return x + k
    return add
"""

BEGIN = """
import functools, json, sys, threading
import leveret
import timing
"""

PROGRAMS = {
    "a decorated function has its decorator's module": """
@timing.counted
def work(x):
    return x + 1
def work_and_count(x):
    return work(x), timing.total()
def count():
    import timing
    return timing.total()
class Worker:
    @timing.counted
    def work(self, x):
        return x + 2
def check():
    assert run(work, 1) == 2 and run(count) == 1
    assert run(work_and_count, 1) == (2, 2)
    assert run(Worker().work, 1) == 3 and run(count) == 3
    assert list(executor.map(work, range(3), chunksize=3)) == [1, 2, 3] and run(count) == 6
    assert timing.CALLS == []
""",
    "with what decorating it has put there": """
@timing.cached
def square(x):
    return x * x
@timing.cached
def double(x):
    return 2 * x
def check():
    assert [run(square, x) for x in (3, 4, 3)] == [(9, 0), (16, 1), (9, 0)]
    assert run(lambda: double(square(3)[0])) == (18, 0)
    assert timing.caches == {"square": {}, "double": {}}
""",
    "which makes objects of that module's classes": """
@timing.boxed
def work(x):
    return x + 1
def is_boxed(value):
    return isinstance(value, timing.Boxed)
def check():
    made = run(work, 1)
    assert type(made) is timing.Boxed and made.value == 2
    assert run(lambda: is_boxed(work(1))) is True
""",
    "a closure of a module has the module's globals": """
add = timing.adder(5)
def check():
    assert run(add, 1) == 6 and run(timing.total) == 1
    assert run(timing.adder(7), 1) == 8 and run(timing.total) == 2
    assert list(executor.map(add, range(3))) == [5, 6, 7] and run(timing.total) == 5
""",
    "a function that wraps a library's has those of the main module": """
LOCK, N = threading.Lock(), 0
@functools.wraps(json.dumps)
def dumps(x):
    global N
    with LOCK:
        N += 1
    return json.dumps(x), N
def number():
    return N
def check():
    assert [run(dumps, i) for i in range(2)] == [("0", 1), ("1", 2)]
    assert run(number) == 2 and N == 0
""",
    "a class that lies about its module goes by value": """
import dataclasses
Made = dataclasses.make_dataclass("Made", ["x"], namespace={"next": lambda self: self.x + 1})
class Lies(Exception):
    __module__ = "builtins"
    def __init__(self, *args):
        super().__init__(*args)
def fail():
    raise Lies("so")
def check():
    assert run(lambda: Made(1).next()) == 2 and type(run(Made, 3)) is Made
    error = executor.submit(fail).exception(60)
    assert type(error) is Lies and error.args == ("so",)
""",
    "a wrapper that comes back has the module's globals here": """
def make():
    return timing.counted(abs)
def check():
    made = run(make)
    assert made(-1) == 1 and timing.CALLS == ["abs"]
""",
}

END = """
if __name__ == "__main__":
    with leveret.ProcessExecutor(1) as executor:
        def run(function, *given):
            return executor.submit(function, *given).result(60)
        check()
    print("passed", flush=True)
"""


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_globals_are_of_their_module(name: str, tmp_path: Path) -> None:
    (tmp_path / "timing.py").write_text(MODULE)
    assert run_program(tmp_path, BEGIN + PROGRAMS[name] + END) == "passed\n"


def test_functions_of_modules_that_another_importer_has_changed(tmp_path: Path) -> None:
    """As pytest does, for its assertions: in processes the module is another."""
    (tmp_path / "conftest.py").write_text("")
    (tmp_path / "test_asserts.py").write_text(
        "import leveret\n"
        "def test_of_a_call():\n"
        "    def inner(x):\n"
        "        assert x == 3\n"
        "    with leveret.ProcessExecutor(1) as executor:\n"
        "        assert 'assert 4 == 3' in str(executor.submit(inner, 4).exception(60))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_asserts.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout


def test_modules_that_a_finder_of_the_programs_own_has_found(tmp_path: Path) -> None:
    folder = tmp_path / "plug-ins"
    folder.mkdir()
    (folder / "timing.py").write_text(MODULE)
    program = f"""
import importlib.abc, importlib.util, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "timing":
            return importlib.util.spec_from_file_location(name, {str(folder / "timing.py")!r})
sys.meta_path.append(Finder())
{BEGIN}
@timing.counted
def work(x):
    return x + 1
def check():
    assert run(work, 1) == 2 and run(timing.adder(5), 1) == 6
{END}"""
    assert run_program(tmp_path, program) == "passed\n"


def test_what_decorating_has_put_there_goes_along_with_joblib(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    (tmp_path / "timing.py").write_text(MODULE)
    program = f"""{BEGIN}
import joblib
@timing.cached
def square(x):
    return x * x
leveret.register_joblib()
with joblib.parallel_config(backend="leveret", n_jobs=2):
    results = joblib.Parallel()(joblib.delayed(square)(x) for x in range(3))
assert [value for value, _ in results] == [0, 1, 4]
print("passed")
"""
    assert run_program(tmp_path, program) == "passed\n"
