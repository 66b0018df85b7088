"""ProcessExecutor: callbacks of futures run where no lock of the user's can be held."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import hold, needs_processes, rest, wait_until

from leveret import ProcessExecutor
from leveret.executor.future import Future

pytestmark = needs_processes


class Where(threading.local):
    """Whether this thread is within a call of the executor's."""

    is_inside = False


def test_no_callback_within_submit_or_result(pool: ProcessExecutor) -> None:
    where = Where()
    inside: list[str] = []
    ends = threading.Semaphore(0)

    def done(_: Any) -> None:
        if where.is_inside:
            inside.append(threading.current_thread().name)
        ends.release()

    def call(method: Callable[..., Any], *args: Any) -> Any:
        where.is_inside = True
        try:
            return method(*args)
        finally:
            where.is_inside = False

    futures = []
    for i in range(3000):
        futures.append(call(pool.submit, abs, -i))
        futures[-1].add_done_callback(done)
    assert [call(f.result, 60) for f in futures] == list(range(3000))
    for _ in futures:
        assert ends.acquire(timeout=60)
    assert not inside


def test_a_callback_may_take_the_lock_of_submit(pool: ProcessExecutor) -> None:
    lock = threading.Lock()
    pending = set()
    is_empty = threading.Event()

    def done(future: Any) -> None:
        with lock:
            pending.discard(future)
            if not pending:
                is_empty.set()

    for i in range(2000):
        # With a limit, so that what would block for ever fails.
        assert lock.acquire(timeout=60)
        future = pool.submit(abs, -i)
        pending.add(future)
        is_empty.clear()
        lock.release()
        future.add_done_callback(done)
    assert is_empty.wait(60) and not pending


def test_a_callback_may_take_the_lock_of_shutdown(tmp_path: Path) -> None:
    lock = threading.Lock()
    got: list[bool] = []
    called = threading.Event()

    def done(future: Any) -> None:
        got.append(lock.acquire(timeout=60))
        lock.release()
        if future is futures[-1]:
            called.set()

    pool = ProcessExecutor(1)
    until = tmp_path / "until"
    futures = [pool.submit(hold, tmp_path / "begun", until) for _ in range(20)]
    for future in futures:
        future.add_done_callback(done)
    with lock:
        pool.shutdown(wait=False, cancel_futures=True)
        assert not called.is_set()
    until.touch()
    assert called.wait(60)
    pool.shutdown()
    assert len(got) == 20 and all(got)
    assert futures[-1].cancelled()


@contextlib.contextmanager
def waiting_callback(pool: ProcessExecutor, folder: Path) -> Iterator[None]:
    """A callback of a call that has ended waits."""
    release = threading.Event()
    inside = threading.Event()

    def done(_: Any) -> None:
        inside.set()
        assert release.wait(60)

    called = pool.submit(hold, folder / "begun", folder / "before")
    called.add_done_callback(done)
    (folder / "before").touch()
    try:
        assert inside.wait(60)
        yield
    finally:
        release.set()


def test_a_callback_that_waits_holds_up_no_result(pool: ProcessExecutor, tmp_path: Path) -> None:
    with waiting_callback(pool, tmp_path):
        assert [pool.submit(abs, -i).result(60) for i in range(100)] == list(range(100))
        assert list(pool.map(abs, range(-1000, 0))) == list(range(1000, 0, -1))


def test_nor_that_of_a_thread_that_waits_longer_than_another(
    pool: ProcessExecutor, tmp_path: Path
) -> None:
    def give_up() -> None:
        with pytest.raises(cf.TimeoutError):
            future.result(0.5)

    with waiting_callback(pool, tmp_path):
        future = pool.submit(hold, tmp_path / "begun", tmp_path / "until")
        results: list[Any] = []
        first = threading.Thread(target=give_up)
        second = threading.Thread(target=lambda: results.append(future.exception()))
        first.start()
        second.start()  # mostly while the first one waits
        first.join()
        (tmp_path / "until").touch()
        second.join(30)
        assert results == [None]


def test_shutdown_waits_for_callbacks() -> None:
    called: list[Any] = []
    with ProcessExecutor(2) as pool:
        for _ in range(100):
            pool.submit(rest, 0.001).add_done_callback(called.append)
    assert len(called) == 100


@pytest.mark.parametrize("cancels", [False, True])
def test_a_callback_may_wait_for_the_end(cancels: bool, tmp_path: Path) -> None:
    ended = threading.Event()

    def done(_: Any) -> None:
        pool.shutdown(cancel_futures=cancels)
        ended.set()

    pool = ProcessExecutor(1)
    begun, until, last = (tmp_path / name for name in ("begun", "until", "last"))
    first = pool.submit(hold, begun, until)
    futures = [pool.submit(hold, begun, last) for _ in range(20)]
    first.add_done_callback(done)
    until.touch()
    if cancels:
        wait_until(futures[-1].cancelled)
    last.touch()
    assert ended.wait(60)  # nobody else waits for a call
    pool.shutdown()
    assert all(each.done() for each in futures)
    assert any(each.cancelled() for each in futures) == cancels


def test_a_callback_may_wait_for_another_call(pool: ProcessExecutor) -> None:
    got: list[Any] = []
    called = threading.Event()

    def done(_: Any) -> None:
        got.append(pool.submit(rest, 0.01).exception(60))
        got.append(pool.submit(abs, -3).result(60))
        called.set()

    pool.submit(rest, 0.05).add_done_callback(done)
    assert called.wait(90)
    assert got == [None, 3]


def test_what_a_callback_raises_harms_nobody(
    pool: ProcessExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def fail(_: Any) -> None:
        raise KeyError("mine")

    future = pool.submit(rest, 0.05)
    future.add_done_callback(fail)
    future.add_done_callback(lambda _: called.set())
    assert called.wait(60)
    assert "mine" in caplog.text
    assert pool.submit(abs, -1).result(60) == 1


def test_cancelled_and_late_callbacks_run_here(pool: ProcessExecutor, tmp_path: Path) -> None:
    here: list[bool] = []
    me = threading.get_ident()
    until = tmp_path / "until"
    futures = [pool.submit(hold, tmp_path / "begun", until) for _ in range(20)]
    futures[-1].add_done_callback(lambda _: here.append(threading.get_ident() == me))
    assert futures[-1].cancel() and here == [True]
    until.touch()
    cf.wait(futures, 60)
    futures[0].add_done_callback(lambda _: here.append(threading.get_ident() == me))
    assert here == [True, True]
    assert isinstance(futures[0], cf.Future)


def test_a_future_begins_as_those_of_the_library() -> None:
    ours, theirs = vars(Future()), vars(cf.Future())
    assert ours.keys() == theirs.keys()
    condition, other = ours.pop("_condition"), theirs.pop("_condition")
    assert ours == theirs
    for name in vars(other):  # what the library may ask a condition for
        assert type(getattr(condition, name)) is type(getattr(other, name)), name
    assert not condition._is_owned()
    with condition:
        assert condition._is_owned()
        condition.notify_all()
