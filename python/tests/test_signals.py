"""ProcessExecutor: handlers of signals that raise or submit, whatever the main thread is doing."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor
from leveret.interrupts import at_once, dropped, is_of_signal

pytestmark = [
    needs_processes,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers"),
]

SECONDS_MAX = 60
ALARMS = 150


class Stop(Exception):
    pass


class Boxed:
    """A result that is left to the port's own thread."""

    def __init__(self, value: int) -> None:
        self.value = value


def boxed(value: int) -> Boxed:
    return Boxed(value)


@pytest.fixture
def alarms() -> Iterator[list[int]]:
    """What handlers have seen; the one that was there comes back."""
    before = signal.getsignal(signal.SIGALRM)
    yield []
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def swallowed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Python itself lets nobody have: a handler may come in a callback of the collector."""
    all_of_them: list[Any] = []

    def note(about: Any) -> None:
        if about.exc_type is Stop:
            all_of_them.append(about.object)
        else:
            sys.__unraisablehook__(about)

    monkeypatch.setattr(sys, "unraisablehook", note)
    return all_of_them


@pytest.fixture(params=[False, True], ids=["", "the_collector_runs"])
def collector(request: pytest.FixtureRequest) -> Iterator[None]:
    """One that runs often, and calls somebody: what a handler finds half done stays so longer."""

    def work(*_: object) -> None:
        for i in range(2000):
            str(i)

    before = gc.get_threshold()
    if request.param:
        gc.callbacks.append(work)
        gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    if request.param:
        gc.callbacks.remove(work)


@pytest.mark.usefixtures("collector")
def test_a_handler_that_raises_while_calls_of_others_are_handed_over(
    pool: ProcessExecutor, alarms: list[int], swallowed: list[Any]
) -> None:
    """It is raised, once, and neither calls nor items of a mapping beside them are lost."""

    def stop(*_: object) -> None:
        alarms.append(1)
        raise Stop

    signal.signal(signal.SIGALRM, stop)
    chance = random.Random(7)
    for alarm in range(1, ALARMS + 1):
        items = pool.map(boxed, list(range(200)))
        futures: list[Any] = []
        count = -1
        with pytest.raises(Stop):
            while True:
                if count != len(swallowed):
                    count = len(swallowed)
                    signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.003 * chance.random())
                futures.append(pool.submit(boxed, len(futures)))
                if len(futures) % 20 == 0:
                    futures[-10].result(SECONDS_MAX)
                assert len(alarms) < alarm + len(swallowed), "the exception is lost"
        assert [each.value for each in items] == list(range(200))
        found = [each.result(SECONDS_MAX).value for each in futures]
        assert found == list(range(len(futures)))
    assert len(alarms) == ALARMS + len(swallowed)


def test_a_handler_that_submits(pool: ProcessExecutor, alarms: list[int]) -> None:
    numbers = itertools.count()
    futures: list[Any] = []

    def submit(*_: object) -> None:
        number = next(numbers)
        futures.append((number, pool.submit(abs, -number)))

    signal.signal(signal.SIGALRM, submit)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        own = [pool.submit(abs, -i) for i in range(500)]
        assert [each.result(SECONDS_MAX) for each in own] == list(range(500))
        assert list(pool.map(abs, range(-300, 0))) == list(range(300, 0, -1))
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(futures) > 10
    assert all(future.result(SECONDS_MAX) == number for number, future in futures)


class Handler:
    def __call__(self, *_: object) -> None:
        raise Stop

    def method(self, *_: object) -> None:
        raise Stop


def _given(_: object, *__: object) -> None:
    raise Stop


@pytest.mark.parametrize(
    "handler",
    [Handler(), Handler().method, functools.partial(_given, 1)],
    ids=["object", "method", "partial"],
)
def test_whose_exception_it_is(handler: Any, alarms: list[int]) -> None:
    signal.signal(signal.SIGALRM, handler)
    with contextlib.suppress(AssertionError):
        try:
            signal.raise_signal(signal.SIGALRM)
        except Stop as error:
            alarms.append(is_of_signal(error))
        raise AssertionError
    assert alarms == [True]
    assert not is_of_signal(Stop())


def test_steps_at_once() -> None:
    items = deque([(1,), (2,), (3,)])
    got: list[int] = []
    at_once(dropped(items, 2), functools.partial(got.append, 7))
    assert list(items) == [(3,)] and got == [7]
