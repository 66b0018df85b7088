"""Classes and names of the main module travel by value, and are in a worker what they are here."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

PROGRAMS = {
    "nested": """
        import dataclasses, pickle
        class Outer:
            @dataclasses.dataclass
            class Inner:
                x: int = 1
        def make():
            class Local:
                pass
            return Local
        Local = make()
        def of_nested(given):
            copy = pickle.loads(pickle.dumps(given))
            return repr(Outer.Inner()), repr(copy), type(copy) is Outer.Inner
        def name_of(given):
            return type(given).__qualname__, make().__qualname__
        def check(call):
            found = call(of_nested, Outer.Inner(2))
            assert found == ("Outer.Inner(x=1)", "Outer.Inner(x=2)", True)
            assert call(name_of, Local()) == ("make.<locals>.Local",) * 2
            assert type(call(Outer.Inner)) is Outer.Inner
    """,
    "slots": """
        import dataclasses
        class Point:
            __slots__ = ("x", "__own")
            def __init__(self, x):
                self.x, self.__own = x, 2 * x
            def both(self):
                return self.x, self.__own
        class Weak(Point):
            __slots__ = ("__weakref__",)
        class WeakByText(Point):
            __slots__ = "__weakref__"
        class PrivateByText(Point):
            __slots__ = "__more"
        @dataclasses.dataclass
        class Plain:
            x: int
            __slots__ = ("x",)
        def next_of(point):
            assert not hasattr(point, "__dict__"), vars(point)
            return type(point)(point.x + 1)
        def check(call):
            for kind in (Point, Weak, WeakByText, PrivateByText, Plain):
                got = call(next_of, kind(1))
                assert type(got) is kind and got.x == 2
            assert call(next_of, Point(1)).both() == (2, 4)
        """,
    "named tuples": """
        import typing
        class Pair(typing.NamedTuple):
            a: int
            b: str = "b"
            def both(self):
                return self.a, self.b
        def check(call):
            got = call(lambda pair: pair._replace(b=pair.both()[1] + "c"), Pair(1))
            assert type(got) is Pair and got == (1, "bc")
            assert call(Pair, 1) == Pair(1) and call(lambda: Pair._fields) == ("a", "b")
        """,
    "subclasses that Python notes": """
        import abc, gc
        class Codec(abc.ABC):
            @abc.abstractmethod
            def code(self): ...
        class Text(Codec):
            def code(self):
                return "text"
        class Number(Codec):
            def code(self):
                return "number"
        def codes(*_):
            assert Text and Number
            return sorted(each().code() for each in Codec.__subclasses__())
        def check(call):
            gc.disable()
            for _ in range(5):
                assert call(codes) == call(codes, Text(), Number) == ["number", "text"]
                assert type(call(lambda kind: kind(), Text)) is Text
            assert codes() == ["number", "text"]
        """,
    "subclasses that are noted": """
        known = {}
        class Plugin:
            def __init_subclass__(cls, *, needed, **named):
                super().__init_subclass__(**named)
                known.setdefault(cls.name, []).append(needed)
        class Special(Plugin, needed=1):
            name = "special"
        def check(call):
            assert call(lambda one: (one.name, known[one.name]), Special()) == ("special", [1])
            def later():
                class Other(Special, needed=2):
                    name = "other"
                return known
            assert call(later)["other"][0] == 2
        """,
    "cached properties": """
        import functools
        class Lazy:
            made = 0
            @functools.cached_property
            def value(self):
                self.made += 1
                return 7
        def check(call):
            assert call(lambda lazy: (lazy.value, lazy.value, lazy.made), Lazy()) == (7, 7, 1)
            assert call(lambda: Lazy()).value == 7
        """,
    "locks": """
        import contextvars, threading
        class Counter:
            lock, again, mine = threading.Lock(), threading.RLock(), threading.local()
            free, told, room = threading.Condition(), threading.Event(), threading.Semaphore(1)
            depth = contextvars.ContextVar("depth", default=3)
            def step(self):
                with self.lock, self.again, self.free, self.room:
                    self.mine.n = getattr(self.mine, "n", 0) + 1
                    self.told.set()
                    return self.mine.n, self.lock.locked(), self.depth.get()
        class Other(Counter):
            pass
        def check(call):
            Counter.lock.acquire()
            before, *others = call(lambda one: one.step(), Counter())
            assert others == [True, 3] and not Counter.told.is_set()
            after, *_ = call(lambda one: one.step(), Other())
            assert after > before > 0  # it is the process's own, and stays
            Counter.lock.release()
        """,
    "a lock that an earlier call holds": """
        import threading
        class Gate:
            lock = threading.Lock()
        def take():
            return Gate.lock.acquire(timeout=0.01)
        def check(call):
            seen.append(call(take))
            assert seen == [True, False, False][:len(seen)]
        seen = []
        """,
    "enumerations": """
        import enum
        class Planet(enum.Enum):
            EARTH = (5.9, 6.3)
            MARS = (0.6, 3.3)
            def __init__(self, mass, radius):
                self.mass, self.radius = mass, radius
        class Colour(str, enum.Enum):
            RED = "r"
            def __new__(cls, value):
                made = str.__new__(cls, value)
                made._value_, made.extra = value, 2 * value
                return made
        def check(call):
            assert call(lambda one: (one.mass, one is Planet.MARS), Planet.MARS) == (0.6, True)
            assert call(lambda: Planet.EARTH) is Planet.EARTH
            assert call(lambda one: (one.extra, one.value), Colour.RED) == ("rr", "r")
        """,
    "names of typing": """
        import typing
        Metres = typing.NewType("Metres", float)
        kinds = [getattr(typing, name, None) for name in ("ParamSpec", "TypeVarTuple")]
        given = [kind("Name") for kind in kinds if kind]
        def check(call):
            assert call(lambda: Metres(3.0)) == 3.0
            assert call(lambda: Metres) is Metres
            assert all(a is b for a, b in zip(call(lambda: given), given))
            assert call(lambda kind: kind is Metres, Metres)
        """,
    "typed dicts": """
        import typing
        class Film(typing.TypedDict, total=False):
            name: str
        class Dated(Film):
            year: int
        Made = typing.TypedDict("Made", {"a": int})
        def make(film: Dated, made: Made):
            return Dated(film, year=film["year"] + 1), Made(a=2), typing.get_type_hints(Dated)
        def check(call):
            assert call(make, {"name": "x", "year": 3}, {}) == (
                {"name": "x", "year": 4}, {"a": 2}, {"name": str, "year": int}
            )
            kind = call(lambda: Dated)
            assert kind is Dated and Dated.__required_keys__ == {"year"}
        """,
    "type variables of a module that workers cannot import": """
        import sys, types, typing
        made = types.ModuleType("made_here")
        sys.modules["made_here"] = made
        exec("import typing; T = typing.TypeVar('T', bound=int)", vars(made))
        exec("class Box(typing.Generic[T]): pass", vars(made))
        def kinds(box):
            return type(box).__orig_bases__[0].__args__[0].__name__, made.T
        def check(call):
            assert call(kinds, made.Box()) == ("T", made.T)
        """,
    "exceptions that make a text of what they are given": """
        import sys
        class NotFound(Exception):
            def __init__(self, name):
                super().__init__(f"no {name}")
                self.name = name
        def fail(around):
            raise NotFound("file") if around is None else around(NotFound("file"))
        def in_groups(error):
            return ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
        def caught(call, around):
            try:
                call(fail, around)
            except Exception as error:
                return error
        def check(call):
            errors = [caught(call, None), *caught(call, ValueError).args]
            if sys.version_info >= (3, 11):
                errors += caught(call, in_groups).exceptions[0].exceptions
            for error in errors:
                assert type(error) is NotFound and str(error) == "no file" and error.name == "file"
        """,
    "a class that is made of its source alone": """
        class Fields(type):
            def __new__(kind, name, bases, space):
                if "__qualname__" not in space:
                    raise TypeError("no fields")
                return type.__new__(kind, name, bases, space)
        class Record(metaclass=Fields):
            pass
        def check(call):
            try:
                call(lambda: Record())
            except TypeError as error:
                assert "class 'Record' cannot be made: no fields; have it in a mo" in str(error)
            else:
                raise AssertionError
        """,
    "copyreg": """
        import copyreg
        class Odd:
            def __init__(self, value):
                self.value = value
            def __reduce__(self):
                raise TypeError("by copyreg only")
        copyreg.pickle(Odd, lambda odd: (Odd, (odd.value + 1,)))
        def check(call):
            assert call(lambda odd: odd.value, Odd(5)) == 6
        """,
}
END = """
import leveret
with leveret.ProcessExecutor(1) as executor:
    check(lambda fn, *args: executor.submit(fn, *args).result(60))
    check(lambda fn, *args: executor.submit(fn, *args).result(60))
    def last_of_a_chunk(fn, *args):
        return [*executor.map(fn, *([each] * 3 for each in args), chunksize=3)][-1]
    check(lambda *call: last_of_a_chunk(*call) if call[1:] else executor.submit(*call).result(60))
"""


@pytest.mark.skipif(sys.version_info < (3, 10), reason="NewType makes functions there")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    run_program(tmp_path, textwrap.dedent(PROGRAMS[name]) + END)
