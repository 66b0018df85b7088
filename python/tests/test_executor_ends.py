"""ProcessExecutor: what the end of an executor leaves to nobody, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any, Callable

import pytest
from conftest import needs_processes, rest, wait_until

from leveret import BrokenExecutor, ProcessExecutor
from leveret.executor.future import Future

pytestmark = needs_processes

SECONDS_MAX = 60


class Interrupted:
    """A runtime whose close() is left by a signal's handler, once, while others wait for it."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.may_raise = threading.Event()
        self.is_first = True

    def close(self) -> None:
        if not self.is_first:
            self.runtime.close()
            return
        self.is_first = False
        assert self.may_raise.wait(SECONDS_MAX)
        raise KeyboardInterrupt


def test_an_end_that_a_signal_leaves_is_taken_over() -> None:
    pool = ProcessExecutor(1)
    assert pool.submit(int).result(SECONDS_MAX) == 0
    inner: Any = pool._pool
    runtime = inner.runtime = Interrupted(inner.runtime)
    left: list[bool] = []

    def closes() -> None:
        try:
            inner.close()
        except KeyboardInterrupt:
            left.append(inner.closed.is_set())

    threads = [threading.Thread(target=closes, daemon=True) for _ in range(2)]
    threads[0].start()
    wait_until(lambda: not runtime.is_first)
    threads[1].start()
    runtime.may_raise.set()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert left == [False]
    assert inner.closed.is_set()
    pool.shutdown()


def test_a_thread_closes_where_a_signal_takes_its_caller_away() -> None:
    pool = ProcessExecutor(1)
    assert pool.submit(int).result(SECONDS_MAX) == 0
    inner: Any = pool._pool
    runtime = inner.runtime = Interrupted(inner.runtime)
    runtime.may_raise.set()
    with pytest.raises(KeyboardInterrupt):
        pool.shutdown()
    assert inner.closed.wait(SECONDS_MAX)


def test_a_thread_for_callbacks_that_cannot_start_is_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals = [RuntimeError("can't start new thread")]
    start = threading.Thread.start

    def starts(self: threading.Thread) -> None:
        if self.name == "leveret-teller" and refusals:
            raise refusals.pop()
        start(self)

    monkeypatch.setattr(threading.Thread, "start", starts)
    told: list[tuple[int, int, int]] = []
    pool = ProcessExecutor(1, on_progress=lambda *progress: told.append(progress))
    future = pool.submit(abs, -1)
    assert future.result(SECONDS_MAX) == 1
    pool.shutdown()
    assert not refusals
    assert told[-1] == (1, 0, 1)


DROPS = """
import leveret
from leveret import _core
with leveret.ProcessExecutor(1) as executor:
    pool = executor._pool
    given = (pool.runtime, lambda *_: None, lambda: None, True, pool.setup.place, None)
    for _ in range(200):
        port = _core.CallPort(*given)
        port.hurry()
        del port
print("done")
"""


def test_a_port_that_is_dropped_while_its_thread_is_called() -> None:
    command = [sys.executable, "-c", DROPS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr


def test_callbacks_of_what_is_taken_back_late_are_run() -> None:
    """The last running call may end, and close all, while futures are still being cancelled."""
    pool = ProcessExecutor(1)
    inner: Any = pool._pool
    future: Future[Any] = Future()
    future._pool = inner
    called: list[Any] = []
    future.add_done_callback(called.append)
    tell_the_last = inner.telling.close

    def closes() -> None:  # where the port's own thread has ended
        future._withdraw()
        tell_the_last()

    inner.telling.close = closes
    pool.shutdown()
    assert called == [future]


class Noted:
    """A lock that notes the threads which come for it."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.seen: list[str] = []

    def __enter__(self) -> None:
        self.seen.append(threading.current_thread().name)
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def late_pool(*callbacks: Callable[[object], object]) -> Any:
    """What is behind a closed executor, with the callbacks of late futures left to run."""
    pool = ProcessExecutor(1)
    inner: Any = pool._pool
    pool.shutdown()
    for each in callbacks:
        future: Future[Any] = Future()
        future.add_done_callback(each)
        inner.called_back.append(future)
    return inner


def test_what_is_told_of_progress_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread closes the executor and waits until all is told."""
    monkeypatch.setattr("leveret.executor.telling.END_SECONDS_MAX", 10 * SECONDS_MAX)
    has_shut = threading.Event()

    def shuts(*_: int) -> None:
        wait_until(lambda: pool._pool.telling.is_closing)
        pool.shutdown()
        has_shut.set()

    pool = ProcessExecutor(1, on_progress=shuts)
    assert pool.submit(int).result(SECONDS_MAX) == 0
    closer = threading.Thread(target=pool.shutdown, daemon=True)
    closer.start()
    assert has_shut.wait(SECONDS_MAX)
    closer.join(SECONDS_MAX)
    assert not closer.is_alive()


def test_close_waits_for_callbacks_that_another_thread_runs() -> None:
    is_called, may_go = threading.Event(), threading.Event()
    ended: list[str] = []

    def waits(_: object) -> None:
        if threading.current_thread().name == "first":
            is_called.set()
            assert may_go.wait(SECONDS_MAX)
            ended.append("callback")

    inner = late_pool(waits)
    late = inner.late = Noted(inner.late)

    def closes() -> None:
        inner.close()
        ended.append(threading.current_thread().name)

    first = threading.Thread(target=closes, name="first", daemon=True)
    second = threading.Thread(target=closes, name="second", daemon=True)
    first.start()
    assert is_called.wait(SECONDS_MAX)
    second.start()
    wait_until(lambda: "second" in late.seen or not second.is_alive())
    may_go.set()
    for thread in (first, second):
        thread.join(SECONDS_MAX)
    assert ended[0] == "callback" and sorted(ended[1:]) == ["first", "second"]


def test_the_child_of_a_late_callback_runs_no_others() -> None:
    parent = os.getpid()
    codes: list[int] = []

    def forks(_: object) -> None:
        pid = os.fork()
        if pid:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    def second(_: object) -> None:
        if os.getpid() != parent:
            os._exit(1)
        codes.append(2)

    late_pool(forks, second).close()
    if os.getpid() != parent:
        os._exit(0)
    assert codes == [0, 2]


class Asked(list[Any]):
    """Mappings of which another thread asks one for a result when it is to be taken."""

    results: Iterator[int]

    def pop(self, *_: Any) -> Any:
        thread = threading.Thread(target=next, args=(self.results, None))
        thread.start()
        thread.join(SECONDS_MAX)
        return super().pop()


def test_a_mapping_that_is_asked_while_all_are_sent() -> None:
    pool = ProcessExecutor(1)
    inner: Any = pool._pool
    results = pool.map(abs, (i for i in range(20_000)))
    assert len(inner.sources.unasked) == 1
    inner.sources.unasked = Asked(inner.sources.unasked)
    inner.sources.unasked.results = results
    pool.shutdown(wait=False)
    assert inner.is_shut_down and not inner.sources.unasked
    results.close()  # type: ignore[attr-defined]
    pool.shutdown()


def test_a_mapping_that_is_asked_while_its_iterable_is_taken() -> None:
    """Two threads take turns at an iterable: a generator would raise where both were in it."""
    is_begun, may_end = threading.Event(), threading.Event()
    count = 20_000

    def items() -> Iterator[int]:
        yield from range(count - 1)
        is_begun.set()
        assert may_end.wait(SECONDS_MAX)
        yield count - 1

    pool = ProcessExecutor(1)
    results = pool.map(abs, items())
    closer = threading.Thread(target=pool.shutdown)
    closer.start()
    assert is_begun.wait(SECONDS_MAX)
    found = [next(results)]  # of what was taken before
    may_end.set()
    found += results
    closer.join(SECONDS_MAX)
    assert found == list(range(count)) and not closer.is_alive()


@pytest.mark.parametrize("how", ["cancelled", "terminated", "broken"])
def test_a_mapping_that_nobody_has_asked_when_no_more_calls_are_let_in(how: str) -> None:
    """What is done of it is given; shutdown() does not try to send the rest."""
    pool = ProcessExecutor(1)
    inner: Any = pool._pool
    results = pool.map(abs, (-i for i in range(20_000)))
    wait_until(lambda: not (inner.running or inner.waiting or inner.sources.queue))
    if how == "cancelled":
        pool.shutdown(cancel_futures=True)
    elif how == "terminated":
        pool.terminate_workers()
    else:
        inner.break_down("a test says so")
    pool.shutdown()
    assert inner.closed.is_set()
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(BrokenExecutor if how == "broken" else futures.CancelledError):
        list(results)


@pytest.mark.parametrize("how", ["cancelled", "broken"])
def test_a_part_that_is_waited_for_when_no_more_calls_are_made(how: str) -> None:
    pool = ProcessExecutor(1)
    inner: Any = pool._pool
    inner.sources.maker = -1  # another thread is at it, and makes none
    results: Any = pool.map(abs, range(3))
    mapping = results.gi_frame.f_locals["mapping"]
    assert mapping.cut()
    raised: list[str] = []

    def asks() -> None:
        try:
            next(results)
        except futures.CancelledError:
            raised.append("cancelled")
        except BrokenExecutor:
            raised.append("broken")

    thread = threading.Thread(target=asks, daemon=True)
    thread.start()
    wait_until(lambda: mapping.asked is not None)
    if how == "broken":
        inner.break_down("a test says so")
    pool.shutdown(wait=False, cancel_futures=True)
    thread.join(SECONDS_MAX)
    assert raised == [how]


@pytest.mark.parametrize("how", ["shut down", "cancelled", "terminated"])
def test_an_iterable_is_being_taken_when_another_thread_ends_the_executor(how: str) -> None:
    """A second shutdown() lets the first take all; else what is done is given, as always."""
    pool = ProcessExecutor(1)
    ends: dict[str, Callable[[], None]] = {
        "shut down": lambda: pool.shutdown(wait=False),
        "cancelled": lambda: pool.shutdown(wait=False, cancel_futures=True),
        "terminated": pool.terminate_workers,
    }
    inner: Any = pool._pool
    other = threading.Thread(target=ends[how])
    count, late = 30_000, 20_000

    def items() -> Iterator[int]:
        yield from range(late)
        wait_until(lambda: not (inner.running or inner.waiting or inner.sources.queue))
        other.start()
        other.join(0.2)  # or it waits for this thread
        yield from range(late, count)

    results = pool.map(abs, items())
    pool.shutdown()
    other.join(SECONDS_MAX)
    assert inner.closed.wait(SECONDS_MAX)
    if how == "shut down":
        assert list(results) == list(range(count))
        return
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(futures.CancelledError):
        list(results)


def logs_late(seconds: float) -> bytes:
    """A reply that only its waiter or the port's own thread may read: a handler is told of it."""
    rest(seconds)
    logging.getLogger(__name__).warning("read")
    return b"x"


class Waits(logging.Handler):
    """Keeps the thread that reads a reply."""

    def __init__(self) -> None:
        super().__init__()
        self.has_come, self.may_go = threading.Event(), threading.Event()

    def emit(self, _: logging.LogRecord) -> None:
        self.has_come.set()
        assert self.may_go.wait(SECONDS_MAX)


@pytest.fixture
def handler() -> Iterator[Waits]:
    made = Waits()
    logging.getLogger(__name__).addHandler(made)
    yield made
    logging.getLogger(__name__).removeHandler(made)


def read_what_is_left(
    pool: ProcessExecutor, handler: Waits, make: Callable[[], Any], read: Callable[[Any], object]
) -> threading.Thread:
    """The thread that reads the reply of what has been made, which the port's own has passed over.

    It was left to that one, in a callback then, by submit().
    """
    is_there = threading.Event()

    def keeps(_: object) -> None:
        is_there.set()
        assert handler.has_come.wait(SECONDS_MAX)

    pool.submit(int).add_done_callback(keeps)
    assert is_there.wait(SECONDS_MAX)
    made = make()
    ends = pool._pool.ends
    others: list[Future[int]] = []

    def is_left() -> bool:
        others.append(pool.submit(int))
        return bool(ends.left)

    wait_until(is_left)
    assert not any(each.result(SECONDS_MAX) for each in others)  # no end of theirs follows
    reader = threading.Thread(target=read, args=(made,))
    reader.start()
    assert handler.has_come.wait(SECONDS_MAX)
    wait_until(lambda: not ends.left)
    return reader


def test_the_last_reply_may_be_read_by_its_waiter(handler: Waits) -> None:
    pool = ProcessExecutor(1)
    inner = pool._pool
    reader = read_what_is_left(
        pool, handler, lambda: pool.submit(logs_late, 0.0), lambda future: future.result()
    )
    wait_until(lambda: not inner.running and len(inner.ends.open) == 1)
    pool.shutdown(wait=False)
    handler.may_go.set()
    reader.join(SECONDS_MAX)
    assert inner.closed.wait(SECONDS_MAX)


def test_what_a_chunk_leaves_over_is_called_whoever_reads_its_reply(handler: Waits) -> None:
    found: list[bytes] = []
    with ProcessExecutor(1) as pool:
        reader = read_what_is_left(
            pool, handler, lambda: pool.map(logs_late, [0.02] * 3, chunksize=3), found.extend
        )
        handler.may_go.set()
        reader.join(SECONDS_MAX)
        assert found == [b"x"] * 3


class Cancelling:
    """Cancels all calls of an executor while it is pickled, and cannot be pickled."""

    def __init__(self, executor: ProcessExecutor) -> None:
        self.executor = executor

    def __reduce__(self) -> str:
        self.executor.shutdown(wait=False, cancel_futures=True)
        raise TypeError("not to be pickled")


@needs_processes
@pytest.mark.parametrize("chunksize", [4, 1])
def test_a_part_may_be_taken_back_while_its_call_is_made(chunksize: int) -> None:
    with ProcessExecutor(1) as executor:
        results = executor.map(id, [Cancelling(executor)] * 4, chunksize=chunksize)
        with pytest.raises(futures.CancelledError):
            next(results)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_ends_when_its_wait_is_given_up_is_delivered(threads: int) -> None:
    """By the executor's own thread, which leaves a call to its waiter while that is there."""
    seed = random.randrange(1 << 32)
    lost: list[str] = []

    def give_up_waits(number: int) -> None:
        rng = random.Random(seed + number)
        for i in range(300):
            future = pool.submit(math.factorial, rng.randrange(4000))
            with contextlib.suppress(futures.TimeoutError):
                future.result(timeout=rng.random() * 4e-4)
            # Nobody comes by any more: this wait knows nothing of executors.
            if not futures.wait([future], timeout=SECONDS_MAX).done:
                lost.append(f"seed {seed}, thread {number}, call {i}")
                return

    with ProcessExecutor(1) as pool:
        all_of = [threading.Thread(target=give_up_waits, args=(i,)) for i in range(threads)]
        for each in all_of:
            each.start()
        for each in all_of:
            each.join()
    assert not lost
