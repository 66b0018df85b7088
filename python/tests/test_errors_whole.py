"""Exceptions arrive with all that can be read of them, whatever their texts say."""

from __future__ import annotations

import asyncio
import builtins
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes


@pytest.fixture(scope="module")
def one() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(1) as executor:
        yield executor


class Thing:
    """Its repr() says an address."""


class Wraps(Exception):
    def __init__(self, message: str, original: Any) -> None:
        super().__init__(message)
        self.original = original


class Several(Exception):
    def __init__(self, *errors: Any) -> None:
        super().__init__(*errors)
        self.errors = errors


class NoSuchUser(Exception):
    __slots__ = ("user",)

    def __init__(self, user: Any) -> None:
        super().__init__(user)
        self.user = user


class MakesAgain(Exception):
    def __init__(self, names: Any) -> None:
        super().__init__(names)
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        return MakesAgain, self.args


class SaysNo(Exception):
    """Makes another text of the text that it made."""

    __slots__ = ("code",)

    def __init__(self, name: str, code: int = 0) -> None:
        super().__init__(f"no {name}")
        self.code = code


class Errors(Exception):
    """A list of errors, which may have none."""

    def __len__(self) -> int:
        return len(self.args[1:])


def caught(one: ProcessExecutor, make: Any) -> Any:
    def fail() -> None:
        raise make()

    return one.submit(fail).exception(30)


def test_attributes_whose_texts_say_an_address(one: ProcessExecutor) -> None:
    error = caught(one, lambda: Wraps("no", ValueError(Thing())))
    assert type(error) is Wraps and type(error.original) is ValueError
    assert type(error.original.args[0]) is Thing
    error = caught(one, lambda: Several(ValueError(Thing()), KeyError("k")))
    assert error.errors == error.args and len(error.args) == 2
    error = caught(one, lambda: NoSuchUser(Thing()))
    assert type(error) is NoSuchUser and error.user is error.args[0]
    error = caught(one, lambda: MakesAgain({Thing(), Thing()}))
    assert type(error) is MakesAgain and hasattr(error, "lock") and len(error.args[0]) == 2


def test_a_text_of_a_text_beside_and_in_attributes(one: ProcessExecutor) -> None:
    error = caught(one, lambda: SaysNo("file", 7))
    assert type(error) is SaysNo and error.args == ("no file",) and error.code == 7
    error = caught(one, lambda: Wraps("it", [SaysNo("file", 7)]))
    assert error.original[0].args == ("no file",) and error.original[0].code == 7
    inner = caught(one, lambda: Several(Thing(), SaysNo("file"))).args[1]
    assert inner.args == ("no file",)


def test_one_that_is_false(one: ProcessExecutor) -> None:
    def fail(_: int = 0) -> None:
        raise Errors("none")

    future = one.submit(fail)
    for _ in range(2):
        with pytest.raises(Errors):
            future.result(30)
    with pytest.raises(Errors):
        asyncio.run(one.run(fail))
    with pytest.raises(Errors):
        list(one.map(fail, range(3)))


def _deep() -> list[Any]:
    """Each list is in the next one twice, and the last one in the first."""
    made: list[Any] = []
    first = made
    for _ in range(60):
        made = [made, made]
    first.append(made)
    return made


def test_lists_within_lists(one: ProcessExecutor) -> None:
    error = caught(one, lambda: Wraps("deep", _deep()))
    assert type(error) is Wraps and error.original[0] is error.original[1]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups are of Python 3.11")
def test_a_group_that_takes_more_than_others(one: ProcessExecutor) -> None:
    base: Any = vars(builtins)["ExceptionGroup"]

    def new(cls: type, message: str, errors: Any, code: int) -> Any:
        made = base.__new__(cls, message, errors)
        made.code = code
        return made

    Coded: Any = type("Coded", (base,), {"__new__": new})  # noqa: N806

    for inner in (ValueError(Thing()), SaysNo("file")):
        error = caught(one, lambda inner=inner: Coded("several", [inner], 4))
        assert type(error).__name__ == "Coded" and error.code == 4
        assert type(error.exceptions[0]) is type(inner)
