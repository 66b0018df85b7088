"""What programs do with their main module beside naming its globals, they may do in a call."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import LIMIT, needs_processes

pytestmark = needs_processes

PROGRAMS = {
    "functions and data that are found by a text": """
        import functools, sys
        FACTOR, TABLE = 3, {"a": 1}
        def helper(x):
            return FACTOR * x
        def op_double(x):
            return 2 * x
        def op_help(x):
            return helper(x) + len(TABLE)
        @functools.lru_cache(None)
        def op_cached(x):
            return op_double(x) + 1
        class op_class(int):
            pass
        cannot = (each for each in ())
        def op_broken(x, given=cannot):
            return next(given)
        def dispatch(name, x):
            return globals()["op_" + name](x)
        def dispatch_by_module(name, x):
            return getattr(sys.modules[__name__], "op_" + name)(x)
        def dispatch_by_import(name, x):
            import __main__
            return getattr(__main__, "op_" + name)(x)
        def dispatch_by_eval(name, x):
            return eval("op_" + name)(x)
        def data():
            return globals()["TABLE"]
        def known():
            return "op_double" in globals(), "op_nothing" in globals()
        def check(call):
            for way in (dispatch, dispatch_by_module, dispatch_by_import, dispatch_by_eval):
                for name in ("double", "help", "cached"):
                    assert call(way, name, 5) == way(name, 5), (way, name)
                assert type(call(way, "class", 5)) is op_class
            assert call(data) == TABLE and call(known) == (True, False)
            try:
                call(dispatch, "broken", 5)
            except KeyError as error:
                assert error.args == ("op_broken",)
        """,
    "what a call does to globals stays in its process": """
        count, seen = 0, []
        def add():
            global count
            count += 1
            seen.append(count)
            return count, len(seen)
        def look():
            return globals()["count"], len(globals()["seen"])
        before = [0]
        def check(call):
            for _ in range(3):
                before[0] += 1
                assert call(add) == (before[0], before[0])
                assert call(look) == (before[0], before[0])
        """,
    "a function that a class needs while it is made": """
        made = []
        def note(name):
            return name.lower()
        class Meta(type):
            def __new__(meta, name, bases, body):
                return super().__new__(meta, name, bases, {**body, "low": note(name)})
        class Thing(metaclass=Meta):
            def __setstate__(self, state):
                vars(self).update(state, read=note("X"))
        thing = Thing()
        thing.a = 1
        def check(call):
            assert call(lambda: globals()["Thing"].low) == "thing"
            assert call(lambda: (globals()["thing"].a, globals()["thing"].read)) == (1, "x")
        """,
    "objects that a call pickles itself": """
        import dataclasses, enum, multiprocessing, os, pickle, tempfile
        @dataclasses.dataclass
        class Point:
            x: int = 1
        class Kind(enum.Enum):
            A = "a"
        def add(x):
            return x + 1
        def write(path):
            with open(path, "wb") as file:
                pickle.dump([Point(2), Kind.A, add], file)
        def read(path):
            with open(path, "rb") as file:
                return pickle.load(file)
        def put(queue, *things):
            for each in things:
                queue.put(each)
        def nested():
            with multiprocessing.get_context("fork").Pool(2) as pool:
                return pool.map(add, range(3))
        def check(call):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "points")
                call(write, path)
                assert read(path) == [Point(2), Kind.A, add]
                assert call(read, path) == [Point(2), Kind.A, add]
            queue = multiprocessing.get_context("spawn").Queue()
            call(put, queue, Point(3), add)
            assert [queue.get(timeout=60) for _ in range(2)] == [Point(3), add]
            assert call(nested) == [1, 2, 3]
        """,
    "modules that processes cannot import": """
        import importlib.util, sys, types
        def by_path(name, text):
            import os, tempfile
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "anything.py")
                with open(path, "w") as file:
                    file.write(text)
                spec = importlib.util.spec_from_file_location(name, path)
                module = sys.modules[name] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            return module
        def at_run_time(name, text):
            module = sys.modules[name] = types.ModuleType(name)
            exec(text, vars(module))
            return module
        TEXT = '''
        import math
        TABLE, HALF = {"a": 1}, 0.5
        class Point:
            def __init__(self, x):
                self.x = x
            def moved(self):
                return Point(step(self.x))
        def step(x):
            TABLE["a"] += 1
            return math.floor(x + HALF + 1)
        def count():
            return TABLE["a"]
        '''
        loaded = by_path("loaded_by_path", TEXT)
        made = at_run_time("made_at_run_time", TEXT)
        def imports(x):
            import made_at_run_time
            from loaded_by_path import step
            return made_at_run_time.step(x), step(x)
        calls = [0]
        def check(call):
            assert call(imports, 2) == (3, 3)
            calls[0] += 1
            for module in (loaded, made):
                assert call(module.step, 3) == 4
                assert call(lambda given: given.step(4), module) == 5
                assert call(lambda: module.HALF) == 0.5 and call(lambda: module) is module
                # The functions and the module have the same globals, for as long as it lives.
                assert call(module.count) == call(lambda: module.TABLE["a"]) == 1 + 3 * calls[0]
                moved = call(lambda point: point.moved(), module.Point(1))
                assert type(moved) is module.Point and moved.x == 2
                call(lambda: module.TABLE.update(a=1 + 3 * calls[0]))
        """,
    "a class that says what its objects stand for": """
        class Proxy:
            def __init__(self, to):
                vars(self)["to"] = to
            @property
            def __class__(self):
                return type(vars(self)["to"])
            def __getattr__(self, name):
                return getattr(vars(self)["to"], name)
            def __reduce__(self):
                return Proxy, (vars(self)["to"],)
        def check(call):
            assert call(lambda proxy: (isinstance(proxy, list), type(proxy).__name__, proxy.copy()),
                        Proxy([1])) == (True, "Proxy", [1])
            assert type(call(lambda: Proxy([2]))) is Proxy
        """,
    "a global that cannot be read there": """
        import os
        here = os.getpid()
        def only_here():
            if os.getpid() != here:
                raise ValueError("only here")
        class Odd:
            def __reduce__(self):
                return only_here, ()
        odd = Odd()
        class Meta(type):
            def __setattr__(self, name, value):
                raise TypeError("closed")
        class Closed(metaclass=Meta):
            x = 1
        def op(x):
            return x + 1
        def dispatch(name):
            return globals()[name](1)
        def check(call):
            assert call(dispatch, "op") == 2
            try:
                call(lambda: odd)
            except NameError as error:
                assert "only here" in str(error), error
            else:
                raise AssertionError
        """,
    "a global that can be pickled no more": """
        import threading
        value, own = [1], None
        def set_own():
            global own
            own = "of the process"
        def check(call):
            global value, own
            value, own = [1], None
            assert call(lambda: value) == [1] and call(set_own) is None
            value, own = (each for each in ()), (each for each in ())
            assert call(lambda: own) == "of the process"
            try:
                call(lambda: value)
            except NameError as error:
                assert "could not be pickled" in str(error), error
            else:
                raise AssertionError
            value = [2]
            assert call(lambda: value) == [2]
        """,
    "names that are not there": """
        import sys
        def look():
            return getattr(sys.modules["__main__"], "nothing")
        def check(call):
            try:
                call(look)
            except AttributeError as error:
                assert "'nothing'" in str(error) and "name it" in str(error), error
            else:
                raise AssertionError
        """,
    "caches that a call makes": """
        import functools
        def make(n):
            @functools.lru_cache(maxsize=7)
            def add(x):
                return x + n
            return add
        @functools.lru_cache(None)
        def own(x):
            return x
        def check(call):
            made = call(make, 3)
            assert made(4) == 7 and made.cache_info().maxsize == 7
            assert call(lambda: own) is own
        """,
}
END = """
import leveret
with leveret.ProcessExecutor(1, preload=()) as executor:
    check(lambda fn, *args: executor.submit(fn, *args).result(60))
    check(lambda fn, *args: list(executor.map(fn, *([each] for each in args)))[0] if args
          else executor.submit(fn).result(60))
"""


def run(program: str, folder: Path, *options: str) -> None:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program) + END)
    done = subprocess.run(
        [sys.executable, *options, str(path)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    run(PROGRAMS[name], tmp_path)


def test_children_that_multiprocessing_spawns_run_the_main_module_only_if_it_expects_that(
    tmp_path: Path,
) -> None:
    spawns = """
        import multiprocessing
        def add(x):
            return x + 1
        def spawn(function):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(function, range(3))
        def check(call):
            assert call(spawn, {}) == [{}(x) for x in range(3)]
        """
    run(spawns.replace("{}", "abs"), tmp_path)
    guarded = END.replace("\n", "\n    ").replace("    \n", "\n").rstrip()
    path = tmp_path / "guarded.py"
    path.write_text(
        textwrap.dedent(spawns.replace("{}", "add")) + f"\nif __name__ == '__main__':{guarded}\n"
    )
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
