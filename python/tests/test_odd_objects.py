"""Objects whose own methods and attributes raise or give what nobody expects, all over a call.

Whatever they do, the future of their call ends, and so do those of its neighbours.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import random
import types
from concurrent import futures
from typing import Any, Callable

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor, TaskFailed
from leveret.executor.names import call_name

pytestmark = needs_processes

SECONDS_MAX = 60
METHODS = (
    *("__repr__", "__str__", "__format__", "__eq__", "__hash__", "__bool__", "__len__", "__iter__"),
    *("__getattr__", "__getattribute__", "__setattr__", "__dir__"),
    *("__getstate__", "__reduce__", "__reduce_ex__"),
)
ATTRIBUTES = (
    *("__cause__", "__context__", "__suppress_context__", "__traceback__", "__notes__", "args"),
    *("__dict__", "__class__", "__name__", "__module__", "__doc__", "name"),
    *("__wrapped__", "__code__", "__self__", "func", "items", "carried_call"),
)
RAISED = (ValueError, AttributeError, RecursionError, SystemExit, BaseException)
GIVEN = (None, 7, "x", (), (1, 2, 3), object)


def _gives(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _raises(kind: type[BaseException], name: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise kind(name)

    return fail


def make_class(chance: random.Random, base: type) -> type:
    def behaviour(name: str) -> Callable[..., Any]:
        if chance.random() < 0.4:
            return _gives(chance.choice(GIVEN))
        return _raises(chance.choice(RAISED), name)

    body: dict[str, Any] = {"__module__": "__main__"}
    for name in chance.sample(METHODS, chance.randint(0, 2)):
        body[name] = behaviour(name)
    for name in chance.sample(ATTRIBUTES, chance.randint(0, 2)):
        body[name] = property(behaviour(name))
    return type("Odd", (base,), body)


def echo(value: Any) -> Any:
    return value


def throw(kind: Any) -> Any:
    raise kind("thrown")


def make(kind: Any) -> Any:
    return kind()


def die(*_: Any) -> None:
    os.abort()


def submit(chance: random.Random, executor: ProcessExecutor) -> list[futures.Future[Any]]:
    """One call with such an object in it, somewhere."""
    role = chance.choice(("argument", "result", "raised", "called", "died", "items"))
    kind: Any = make_class(chance, Exception if role in ("raised", "items") else object)
    if role == "raised":
        return [executor.submit(throw, kind)]
    if role == "result":
        return [executor.submit(make, kind)]
    if role == "argument":
        return [executor.submit(echo, kind())]
    if role == "items":
        function = chance.choice((throw, make))
        return [future for _, future in _many(executor, function, [kind, int, kind, int])]
    kind.__call__ = _gives(3) if role == "called" else die
    return [executor.submit(kind(), 1)]


def _many(executor: ProcessExecutor, function: Any, items: list[Any]) -> Any:
    """What a map() gives, each as a future, so that it ends like others."""
    results = executor.map(function, items, chunksize=2, timeout=SECONDS_MAX)
    for index in range(len(items)):
        future: futures.Future[Any] = futures.Future()
        try:
            future.set_result(next(results))
        except TimeoutError:
            return
        except BaseException as error:  # it ends the map
            future.set_exception(error)
            yield index, future
            return
        yield index, future


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_every_future_ends(first: int) -> None:
    with ProcessExecutor(2) as executor:
        for seed in range(first, first + 40):
            chance = random.Random(seed)
            calls = submit(chance, executor)
            neighbour = executor.submit(echo, seed)
            _, left = futures.wait([*calls, neighbour], SECONDS_MAX)
            assert not left, f"seed {seed}"
            assert calls, f"seed {seed}: a map() that never ends"
            assert neighbour.result() == seed


class Refused(Exception):
    """What is raised carries an answer, which is what arrives elsewhere."""

    def __reduce__(self) -> Any:
        return dict, ((("code", 3),),)


_nothing: Any = property(lambda _: None)


class Fixed(Exception):
    __cause__ = _nothing


@dataclasses.dataclass(frozen=True)
class NotFound(Exception):
    key: str


@pytest.mark.parametrize("kind", [Refused, Fixed, NotFound])
def test_exceptions_arrive_as_what_they_are(kind: type[Exception]) -> None:
    with ProcessExecutor(1) as executor:
        error = executor.submit(throw, kind).exception(SECONDS_MAX)
    assert type(error) is kind
    assert error.args == ("thrown",)


class Nameless:
    """Its repr() needs what is set later."""

    name: str

    def __call__(self, item: int) -> int:
        if item == 3:
            os.abort()
        return item

    def __repr__(self) -> str:
        return f"<Nameless {self.name}>"


def test_a_callable_that_cannot_be_shown_is_named_by_its_class() -> None:
    with ProcessExecutor(2) as executor:
        calls = [executor.submit(Nameless(), i) for i in range(6)]
        assert [calls[i].result(SECONDS_MAX) for i in (0, 1, 2, 4, 5)] == [0, 1, 2, 4, 5]
        assert "<Nameless: its repr() failed>(3)" in str(calls[3].exception(SECONDS_MAX))


class Unsaid(Exception):
    def __str__(self) -> str:
        raise TypeError


def _fail_here() -> None:
    raise Unsaid


class NotHere:
    def __reduce__(self) -> Any:
        return _fail_here, ()


def test_a_result_whose_unpickling_fails_without_a_text() -> None:
    with ProcessExecutor(2) as executor:
        for call in [executor.submit(NotHere) for _ in range(4)]:
            error = call.exception(SECONDS_MAX)
            assert type(error) is TaskFailed
            assert "Unsaid: <Unsaid: its str() failed>" in str(error)


def _skip() -> None:
    pytest.skip("not here")


def _fail() -> None:
    pytest.fail("not so")


def test_outcomes_of_pytest_arrive_as_themselves() -> None:
    """Their classes say that they are builtins, and are found where their functions are from."""
    kinds = [pytest.skip.Exception, pytest.fail.Exception]
    with ProcessExecutor(1) as executor:
        calls = [executor.submit(_skip), executor.submit(_fail)]
        assert [type(each.exception(SECONDS_MAX)) for each in calls] == kinds
        found = executor.map(lambda f: f(), [_skip, _fail], return_exceptions=True)
        assert list(map(type, found)) == kinds


def test_arguments_are_shown_by_their_begin() -> None:
    endless: Any = []
    for _ in range(60):
        endless = [endless, {"again": endless}]
    with ProcessExecutor(1, preload=(), max_attempts=1) as executor:
        error = executor.submit(os.kill, 0, endless).exception(SECONDS_MAX)
        assert type(error) is TypeError
        error = executor.submit(die_of, endless).exception(SECONDS_MAX)
        assert f"die_of({'[' * 57}...) ended" in str(error)
    itself: Any = [1, {"a": ()}, (2,), "text"]
    itself.append(itself)
    assert call_name(die_of, (itself, {}), {"x": "y" * 100}) == (
        f"die_of([1, {{'a': ()}}, (2,), 'text', [...]], {{}}, x='{'y' * 56}...)"
    )


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


class InTwo(collections.UserList[Any]):
    pass


@pytest.mark.parametrize(
    "around",
    [
        lambda each: collections.deque([each, each]),
        lambda each: collections.OrderedDict(a=each, b=each),
        lambda each: Pair(each, each),
        lambda each: types.SimpleNamespace(a=each, b=[each]),
        lambda each: InTwo([each, each]),
        lambda each: frozenset({(1, Holder(each)), (2, Holder(each))}),
    ],
)
def test_what_is_in_the_next_one_twice_is_not_shown_in_full(around: Any) -> None:
    made = shallow = around(1)
    for _ in range(60):
        made = around(made)
    kind = type(made).__qualname__
    assert call_name(die_of, (made,), {}) == f"die_of(<{kind}: its repr() is too long>)"
    assert call_name(die_of, ([made],), {}).startswith(f"die_of([<{kind}: its repr() is too l")
    assert call_name(die_of, (shallow,), {})[:40] == f"die_of({shallow!r})"[:40]


def test_large_objects_are_shown_by_their_begin() -> None:
    many: collections.deque[Any] = collections.deque(range(200_000))
    assert call_name(die_of, (many,), {}) == f"die_of({repr(many)[:57]}...)"
    many.append(many)
    assert call_name(die_of, (many,), {}).startswith("die_of(deque([0, 1, ")


@dataclasses.dataclass(frozen=True, eq=False)
class Holder:
    value: Any


def die_of(_: object) -> None:
    os.abort()
