"""ProcessExecutor: submit() runs no code of the user's, whatever locks its caller holds.

Nor does it fail a neighbour's call when its caller's stack is deep, or a signal comes.
"""

from __future__ import annotations

import datetime
import logging
import pickle
import sys
import threading
from typing import Any, Callable, ClassVar

import numpy as np
import pytest
from conftest import needs_processes

from leveret import ProcessExecutor
from leveret.wire.plain import runs_nothing

pytestmark = needs_processes

SECONDS_MAX = 60
MANY = 1500  # more than workers have room for: ends come in while others are submitted
LOCK = threading.Lock()


def waits_for_lock() -> None:
    assert LOCK.acquire(timeout=SECONDS_MAX)
    LOCK.release()


class Result:
    """To read it takes the lock."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __getstate__(self) -> Any:
        return {"value": self.value}

    def __setstate__(self, state: Any) -> None:
        waits_for_lock()
        self.value = state["value"]


class Failure(Exception):
    def __reduce__(self) -> Any:
        return _failure, (self.args[0],)


def _failure(value: int) -> Failure:
    waits_for_lock()
    return Failure(value)


class Argument:
    """To show it, in a message on its call, takes the lock."""

    def __repr__(self) -> str:
        waits_for_lock()
        return "x"


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        waits_for_lock()


def gives(value: int) -> Result:
    return Result(value)


def raises(value: int) -> None:
    raise Failure(value)


def logs(value: int) -> int:
    logging.getLogger("locked").warning("%d", value)
    return value


def overruns(_: Argument) -> None:
    threading.Event().wait()


def _check(future: Any, function: Callable[..., Any], i: int) -> None:
    if function is gives:
        assert future.result(SECONDS_MAX).value == i
    elif function is raises:
        assert future.exception(SECONDS_MAX).args == (i,)
    else:
        assert future.result(SECONDS_MAX) == i


@pytest.mark.parametrize("function", [gives, raises, logs], ids=lambda each: each.__name__)
def test_what_reading_a_reply_takes_may_be_held(
    pool: ProcessExecutor, function: Callable[..., Any]
) -> None:
    handler = Handler()
    logging.getLogger("locked").addHandler(handler)
    logging.getLogger("locked").propagate = False
    try:
        with LOCK:
            futures = [pool.submit(function, i) for i in range(MANY)]
        for i, future in enumerate(futures):
            _check(future, function, i)
    finally:
        logging.getLogger("locked").removeHandler(handler)


class Item:
    """To pickle it says where."""

    submitting: int | None = None  # the thread that is in submit()
    pickled: ClassVar[list[bool]] = []  # whether it was there

    def __getstate__(self) -> Any:
        self.pickled.append(threading.get_ident() == self.submitting)
        return {"value": 1}


def takes(_: Item) -> int:
    return 1


def test_items_of_others_are_pickled_elsewhere(pool: ProcessExecutor) -> None:
    Item.pickled.clear()
    count = MANY
    results = pool.map(takes, [Item() for _ in range(count)])
    futures: list[Any] = []
    Item.submitting = threading.get_ident()
    try:
        while len(Item.pickled) < count and len(futures) < 20 * count:
            futures.append(pool.submit(abs, -1))
    finally:
        Item.submitting = None
    assert not any(Item.pickled)
    assert sum(results) == count
    assert all(future.result(SECONDS_MAX) == 1 for future in futures)


def test_the_lock_may_be_held_by_others(pool: ProcessExecutor) -> None:
    """While results are read on one thread another one, with what that takes, submits."""
    futures: list[Any] = []

    def submit() -> None:
        for i in range(200):
            with LOCK:
                futures.append((i, pool.submit(gives, i)))

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(200):
        _check(pool.submit(gives, i), gives, i)
    for thread in threads:
        thread.join()
    for i, future in futures:
        _check(future, gives, i)


def test_a_call_that_is_named_in_a_message(pool: ProcessExecutor) -> None:
    with LOCK:
        late = pool.options(timeout=0.05, max_attempts=1).submit(overruns, Argument())
        futures = [pool.submit(abs, -i) for i in range(20 * MANY)]
    assert "overruns(x)" in str(late.exception(SECONDS_MAX))
    assert [future.result(SECONDS_MAX) for future in futures] == list(range(20 * MANY))


def test_a_callback_may_wait_for_what_is_left_to_its_thread(pool: ProcessExecutor) -> None:
    seen: list[int] = []
    is_seen = threading.Event()
    futures: list[Any] = []

    def done(_: Any) -> None:
        seen.extend(each.result(SECONDS_MAX).value for each in futures)
        is_seen.set()

    with LOCK:
        first = pool.submit(gives, 0)
        futures += [pool.submit(gives, i) for i in range(MANY)]
    first.add_done_callback(done)
    assert is_seen.wait(SECONDS_MAX)
    assert seen == list(range(MANY))


def test_a_deep_stack_fails_no_neighbour(pool: ProcessExecutor) -> None:
    def submit_at(depth: int) -> None:
        if depth:
            return submit_at(depth - 1)
        try:
            for i in range(40):
                own.append((i, pool.submit(gives, i)))  # noqa: PERF401 (it may end half way)
        except RecursionError:
            pass
        return None

    own: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    deepest = sys.getrecursionlimit() - len(_frames())
    for less in range(2, 90):
        others += [(i, pool.submit(gives, i)) for i in range(20)]
        try:
            submit_at(deepest - less)
        except RecursionError:
            continue
    for i, future in others:
        _check(future, gives, i)
    for i, future in own:
        error = future.exception(SECONDS_MAX)
        assert isinstance(error, RecursionError) or future.result().value == i


def _frames() -> list[Any]:
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


class Mine:
    pass


@pytest.mark.parametrize(
    ("value", "is_inert"),
    [
        (None, True),
        (-1, True),
        ("\u0093\u0482 text", True),
        ([b"\x93\x82" * 9, {"a": (1.5, 2)}, {3}, 2j], True),
        (np.arange(3), True),
        (np.float64(0.1), True),
        (datetime.date(2020, 1, 1), True),
        (np.array([Mine()]), False),
        (Mine, False),
        ([Mine()], False),
        (getattr, False),
        ("x" * 100_000, False),
    ],
)
def test_what_runs_nothing(value: object, is_inert: bool) -> None:
    assert runs_nothing(pickle.dumps(value, 5)) is is_inert


def test_a_result_that_names_a_class_asks_for_no_signals_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("leveret.interrupts.signal.getsignal", asked.append)
    assert not runs_nothing(pickle.dumps([Mine()], 5))
    assert not asked  # there are 64, and this takes longer than a call
