"""Changes of classes, functions and globals of the main module that are easy to overlook."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, run_program

from leveret import _core

PROGRAMS = {
    "classes that only an annotation names": """
        import typing
        class Thing:
            def hello(self): return 1
        T = typing.TypeVar("T", bound=Thing)
        def plain(x: Thing = None) -> list[Thing]: return x
        def nested(x: "typing.Optional[Thing]" = None, y: typing.Optional[T] = None): return x
        def look(): return plain.__annotations__["x"].hello(None)
        def check(call):
            for hello in (lambda self: 1, lambda self: 2):
                Thing.hello = hello
                assert call(plain, 3) == call(nested, 3) == 3
                assert call(look) == hello(None)
            assert type(call(plain, Thing())) is Thing
            def own(x: Thing): return own.__annotations__["x"] is Thing
            assert call(own, 1)
        """,
    "tuples that hold another one twice, and so on": """
        def nested(first):
            for _ in range(60): first = first, first
            return first
        def depth(value):
            return 1 + depth(value[0]) if isinstance(value, tuple) else value
        class Thing:
            value = nested(1)
        GLOBAL = nested(2)
        def default(value=nested(3)): return depth(value)
        def look(): return depth(GLOBAL), depth(Thing.value)
        def check(call):
            global GLOBAL
            for first in (2, 2, 3):
                GLOBAL = nested(first)
                assert call(look) == (60 + first, 61)
                assert call(default) == 63
                assert call(depth, GLOBAL) == 60 + first
        """,
    "objects in constants of a class": """
        import datetime, typing
        class Zone(datetime.tzinfo):
            minutes = 60
            def utcoffset(self, when): return datetime.timedelta(minutes=self.minutes)
            def dst(self, when): return None
            def tzname(self, when): return "own"
        class Marker:
            def __init__(self, value): self.value = value
            def get(self): return self.value
        class Bound:
            def hello(self): return 1
        T = typing.TypeVar("T", bound=Bound)
        class Thing(typing.Generic[T]):
            at: typing.Annotated[int, Marker(5)] = 3
            when = datetime.datetime(2020, 1, 1, tzinfo=Zone())
            utc = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
            pairs = ([1], 2)
        for _ in range(40):
            Thing.pairs = (Thing.pairs, Thing.pairs[0])
        def look(thing):
            kind = type(thing)
            return (kind.__annotations__["at"].__metadata__[0].get(), str(kind.when), str(kind.utc),
                    kind.__parameters__[0].__bound__.hello(None))
        def check(call):
            for i in range(4):
                assert call(look, Thing()) == look(Thing())
                Thing.__annotations__["at"].__metadata__[0].value = i
                Thing.when.tzinfo.minutes = i
                Bound.hello = eval(f"lambda self: {i}")
        """,
    "what is gone, and None": """
        import gc
        class Helper: pass
        class Thing:
            class Inner: pass
            def is_none(self): return Helper is None, self.Inner is None
        def look(thing): return thing.is_none()
        def check(call):
            global Helper
            class Helper: pass
            class Inner: pass
            Thing.Inner = Inner
            del Inner
            assert call(look, Thing()) == call(look, Thing()) == (False, False)
            Helper = None
            gc.collect()
            assert call(look, Thing()) == (True, False)
            Thing.Inner = None
            gc.collect()
            assert call(look, Thing()) == (True, True)
        """,
    "what is deleted, and other bases": """
        class Base:
            x = 1
        class Other:
            x, y = 5, 6
        class Thing(Base): pass
        def look(thing): return thing.x, getattr(thing, "y", 0), getattr(thing, "z", 0)
        def by_value(thing, other): return look(thing)
        def check(call):
            Thing.__bases__ = (Base,)
            for more in ((), (object(),)):  # also where the class goes with each call
                for value in more:
                    Thing.more = value
                def same(): assert call(look, Thing()) == look(Thing())
                same()
                Thing.x, Thing.z = 2, 3
                same()
                del Thing.x
                same()
                del Thing.z
                same()
                Thing.z = 3
                same()
                Thing.__bases__ = (Base, Other)
                same()
                Thing.__bases__ = (Other,)
                same()
                Thing.__bases__ = (Base,)
                del Thing.z
                same()
            del Thing.more
        """,
    "what a base has, too": """
        SHARED = [1]
        class Base:
            x, y = 0, None
        class Thing(Base):
            x = 1
        def look(thing): return thing.x, type(thing).__base__.x, thing.y
        def check(call):
            for base, own in ((0, 1), (0, 0), (5, 0), (5, 5), (6, 5), (6, None), (SHARED, SHARED)):
                Base.x, Thing.x = base, own
                Base.y, Thing.y = own, base
                for _ in range(2):
                    assert call(look, Thing()) == look(Thing())
        """,
    "an attribute that is a global": """
        import datetime, re
        WHEN, PATTERN = datetime.datetime(2020, 1, 1), re.compile("a")
        class Thing:
            when, pattern = WHEN, PATTERN
            def same(self, by_default=WHEN):
                return self.when is WHEN, self.pattern is PATTERN, by_default is WHEN, str(WHEN)
        def look(thing): return thing.same()
        def check(call):
            global WHEN
            for day in 1, 2, 3:
                WHEN = Thing.when = datetime.datetime(2020, 1, day)
                Thing.same.__defaults__ = (WHEN,)
                assert call(look, Thing()) == look(Thing())
        """,
    "functions": """
        import functools
        class Thing:
            @property
            def twice(self): return 2
            @functools.cached_property
            def kept(self): return 1
            def method(self): return 1
            def about(self): return helper.__doc__, dict(helper.__annotations__), helper()
        def helper(*, k=1): return k
        def of_class(thing):
            kind = type(thing)
            return (kind.twice.__doc__, thing.kept, dict(kind.method.__annotations__),
                    thing.about())
        def of_function():
            return (helper.__doc__, dict(helper.__annotations__), helper.__name__, helper(),
                    helper.__qualname__)
        KEPT = vars(Thing)["kept"].func
        def check(call):
            def same():
                assert call(of_class, Thing()) == of_class(Thing())
                assert call(of_function) == of_function()
            helper.__annotations__.clear()
            Thing.method.__annotations__.clear()
            same()
            for change in (
                lambda: setattr(helper, "__doc__", "text"),
                lambda: helper.__annotations__.update(a=1),
                lambda: setattr(helper, "__name__", "other"),
                lambda: setattr(helper, "__qualname__", "other"),
                lambda: helper.__kwdefaults__.update(k=helper() + 1),
                lambda: setattr(vars(Thing)["kept"], "func", lambda self: 2),
                lambda: setattr(vars(Thing)["kept"], "func", KEPT),
                lambda: Thing.method.__annotations__.update(a=1),
                lambda: setattr(Thing.twice, "__doc__", "text"),
            ):
                change()
                same()
        """,
    "what calls do to functions that methods name": """
        def with_default(cache={}):
            cache[len(cache)] = 1
            return len(cache)
        def counter():
            n = 0
            def count():
                nonlocal n
                n += 1
                return n
            return count
        count = counter()
        def marked():
            marked.calls.append(1)
            return len(marked.calls)
        marked.calls = []
        def plain(n=1, *, k=0):
            got = n, k, getattr(plain, "mark", 0)
            plain.__defaults__, plain.__kwdefaults__["k"], plain.mark = (True,), 7, 8
            return repr(got)
        class Thing:
            def use(self): return with_default(), count(), marked(), plain()
        class Other:
            def use(self): return with_default(), count(), marked(), plain()
        def look(*things): return things[-1].use()
        def check(call):
            for things in ((Thing(),), (Other(),), (Thing(),), (Thing(), Other()), (Other(),)):
                assert call(look, *things) == (1, 1, 1, "(1, 0, 0)")
                assert call(plain) == "(1, 0, 0)"
        """,
}
END = """
import leveret
if __name__ == "__main__":
    with leveret.ProcessExecutor(1) as executor:
        check(lambda fn, *args: executor.submit(fn, *args).result(60))
        check(lambda fn, *args: executor.submit(fn, *args).result(60))
"""


@needs_processes
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    run_program(tmp_path, textwrap.dedent(PROGRAMS[name]) + END)


@needs_processes
def test_a_function_changes_while_its_chunks_get_what_took_long_to_pickle(tmp_path: Path) -> None:
    text = """
        LARGE, MORE = {i: [i] for i in range(15000)}, [1, 2, 3]
        class Thing:
            x = 1
        def helper(): return 0
        def use(i):
            sum(range(5000))
            return len(LARGE) + Thing.x + helper()
        def check(_):
            global helper
            got = []
            for i, each in enumerate(executor.map(use, range(1500))):
                got.append(each)
                if i == 300:
                    def helper(): return len(MORE)
                if i == 600: Thing.more = object()
                if i == 900: use.mark = 1
            assert len(got) == 1500 and set(got) <= {15001, 15004}
            del Thing.more
            helper = lambda: 0
        """
    run_program(tmp_path, textwrap.dedent(text) + END)


def test_nested_pairs_are_looked_at_once() -> None:
    value: Any = [1]
    for _ in range(60):
        value = value, value
    begin = time.perf_counter()
    assert _core.plain_containers([value, value], 10) is not None
    assert time.perf_counter() - begin < 10
