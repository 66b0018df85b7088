"""Options of single calls, the end of calls that run, Ctrl-C and signals."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, rest, wait_until

import leveret
from leveret import ProcessExecutor
from leveret.executor.ending import end_call
from leveret.executor.options import CallOptions
from leveret.executor.work import place_in

pytestmark = needs_processes

FOREVER = 3600.0


def hang(flag: str | None = None) -> None:
    if flag is not None:
        Path(flag).touch()
    while True:
        signal.pause()


def wait_for(flag: Path) -> None:
    end = time.monotonic() + 60
    while not flag.exists():
        assert time.monotonic() < end


def keywords(**given: Any) -> dict[str, Any]:
    return given


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_call_has_its_own_time(pool: ProcessExecutor) -> None:
    quick = pool.options(timeout=3)
    futures_: list[futures.Future[Any]] = [
        quick.submit(hang),
        pool.submit(pow, 2, 5),
        quick.submit(pow, 2, 6),
    ]
    error = futures_[0].exception(60)
    assert isinstance(error, leveret.Overran) and isinstance(error, TimeoutError)
    assert "hang() ran longer than its timeout of 3 s, and" in str(error)
    assert [each.result(60) for each in futures_[1:]] == [32, 64]


def test_any_time_above_0_is_one(pool: ProcessExecutor) -> None:
    for seconds in (1e-12, 5e-324):
        assert isinstance(pool.options(timeout=seconds).submit(hang).exception(60), leveret.Overran)


def test_the_time_of_a_call_goes_before_the_executors() -> None:
    with ProcessExecutor(1, timeout=0.2, preload=()) as pool:
        assert pool.options(timeout=None).submit(rest, 0.5).exception(60) is None
        assert isinstance(pool.submit(hang).exception(60), leveret.Overran)


def test_the_function_keeps_its_keywords(pool: ProcessExecutor) -> None:
    given = {"timeout": 1, "retry": 2, "name": 3, "memory": 4, "cancel": 5, "priority": 6}
    assert pool.options(timeout=60, name="mine").submit(keywords, **given).result(60) == given


def test_a_view_maps_and_is_changed_further(pool: ProcessExecutor) -> None:
    view = pool.options(timeout=60, name="mine").options(max_attempts=1)
    assert list(view.map(pow, [2, 3], [4, 5], chunksize=2)) == [16, 243]
    error = view.submit(os.kill, 0, 0).exception(60)
    assert error is None
    crash = view.submit(os.abort).exception(60)
    assert isinstance(crash, leveret.Poison)
    assert str(crash).startswith("mine ended its worker process on each of 1 attempts")


def test_retry_of_one_call(tmp_path: Path) -> None:
    with ProcessExecutor(1, preload=()) as pool:
        error = pool.options(retry=False).submit(os.abort).exception(60)
        assert isinstance(error, leveret.WorkerDied) and not isinstance(error, leveret.Poison)
    with ProcessExecutor(1, retry=False, preload=()) as pool:
        assert isinstance(
            pool.options(retry=True, max_attempts=2).submit(os.abort).exception(60), leveret.Poison
        )


def test_memory_of_one_call(pool: ProcessExecutor) -> None:
    small = pool.options(memory=64 << 20)
    error = small.submit(bytearray, 256 << 20).exception(60)
    assert isinstance(error, MemoryError)
    assert len(small.submit(bytearray, 1 << 20).result(60)) == 1 << 20
    assert len(pool.submit(bytearray, 256 << 20).result(60)) == 256 << 20


def test_urgent_calls_go_first(tmp_path: Path) -> None:
    order: list[int] = []
    with ProcessExecutor(1, preload=()) as pool:
        flags = [tmp_path / f"{i}" for i in range(4)]
        busy = [pool.options(cancel="kill").submit(hang, str(each)) for each in flags]
        wait_for(flags[0])
        made = []
        for priority in (0, 5, -1, 5, 1):
            future = pool.options(priority=priority).submit(int, priority)
            future.add_done_callback(lambda done: order.append(done.result()))
            made.append(future)
        for each in busy:
            assert each.cancel()
        futures.wait(made, 60)
    assert order == [5, 5, 1, 0, -1]


class Urgent:
    """A call that counts how often it is asked how urgent it is."""

    looks = 0

    def __init__(self, priority: int, number: int) -> None:
        self.about = priority, number

    @property
    def asked(self) -> CallOptions:
        Urgent.looks += 1
        return CallOptions(priority=self.about[0])


def test_a_queue_is_not_searched_from_its_begin() -> None:
    waiting: deque[Any] = deque()
    count = 2000
    for number in range(count):
        priority = number * 7919 % 11
        waiting.insert(place_in(waiting, priority), Urgent(priority, number))
    order = [each.about for each in waiting]
    assert order == sorted(order, key=lambda about: (-about[0], about[1]))
    assert Urgent.looks < 12 * count


def test_a_handler_may_hand_calls_over_while_a_place_is_looked_for() -> None:
    """It waits for a result, say: the queue is shorter then."""
    waiting: deque[Any] = deque()

    class First(Urgent):
        @property
        def asked(self) -> CallOptions:
            while len(waiting) > 2:
                waiting.popleft()
            return super().asked

    waiting.extend(First(1, number) for number in range(9))
    place = place_in(waiting, 0)
    assert place >= 0 and len(waiting) == 2
    waiting.insert(place, Urgent(0, 9))
    assert [each.about[1] for each in waiting] == [7, 8, 9]


def test_a_call_that_is_queued_when_a_handler_ends_all(
    pool: ProcessExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_all(waiting: deque[Any], priority: int) -> int:
        pool.terminate_workers()
        return place_in(waiting, priority)

    monkeypatch.setattr("leveret.executor.pool.place_in", ends_all)
    made = [pool.submit(hang) for _ in range(8)]
    made.append(pool.options(priority=1).submit(hang))
    assert not futures.wait(made, 60).not_done


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"time_out": 1}, TypeError, "no option 'time_out'; did you mean 'timeout'"),
        ({"zzz": 1}, TypeError, "there are timeout, retry"),
        ({"timeout": 0}, ValueError, "timeout must be None or above 0"),
        ({"timeout": math.nan}, ValueError, "timeout must be"),
        ({"timeout": "1"}, TypeError, "timeout must be a number"),
        ({"timeout": True}, TypeError, "timeout must be a number"),
        ({"max_attempts": 0}, ValueError, "max_attempts must be 1 to 1000"),
        ({"max_attempts": 1.5}, TypeError, "max_attempts must be an int"),
        ({"memory": -1}, ValueError, "memory must be 0 to"),
        ({"priority": 2**31}, ValueError, "priority must be"),
        ({"retry": 1}, TypeError, "retry must be True or False"),
        ({"name": 1}, TypeError, "name must be a str"),
        ({"cancel": "kil"}, ValueError, "did you mean 'kill'"),
    ],
)
def test_what_makes_no_sense_is_named(
    pool: ProcessExecutor, options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        pool.options(**options)


def test_cancel_ends_a_call_that_runs(pool: ProcessExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    future = pool.options(cancel="kill").submit(hang, str(flag))
    wait_for(flag)
    others = [pool.submit(pow, i, 2) for i in range(20)]
    called: list[bool] = []
    future.add_done_callback(lambda done: called.append(done.cancelled()))
    assert future.cancel() and future.cancel() and future.cancelled() and not future.running()
    with pytest.raises(futures.CancelledError):
        future.result(60)
    assert futures.wait([future], 60).done == {future}
    assert [each.result(60) for each in others] == [i * i for i in range(20)]
    assert called == [True] or not called
    pool.shutdown()
    assert called == [True]


def test_cancel_alone_leaves_what_runs(pool: ProcessExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    future = pool.submit(hang, str(flag))
    wait_for(flag)
    assert not future.cancel() and future.running()
    assert future._end(future._call)


def test_cancel_races_with_the_end(pool: ProcessExecutor) -> None:
    view = pool.options(cancel="kill")
    for i in range(100):
        future = view.submit(pow, i, 2)
        other = pool.submit(pow, i, 3)
        if future.cancel():
            assert future.cancelled()
        else:
            assert future.result(60) == i * i
        assert other.result(60) == i**3


def test_the_end_comes_back_before_cancel_goes_on(
    pool: ProcessExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call's end may be delivered while cancel() is between its two steps."""
    running = pool.options(cancel="kill").submit(hang, str(tmp_path / "a"))
    wait_for(tmp_path / "a")

    def slowly(*of: Any) -> bool:
        is_told = end_call(*of)
        while not running.done():
            rest(0.001)
        return is_told

    monkeypatch.setattr("leveret.executor.future.end_call", slowly)
    assert running.cancel()
    assert running.cancelled()
    with pytest.raises(futures.CancelledError):
        running.result(0)


def test_a_maps_call_that_is_ended_is_cancelled(tmp_path: Path) -> None:
    """Also where its end comes before its future is told, as with any other call."""
    with ProcessExecutor(1) as pool:
        results = pool.options(cancel="kill").map(hang, [str(tmp_path / "a")])
        wait_for(tmp_path / "a")
        (work,) = pool._pool.running
        assert end_call(pool._pool, work.call)
        with pytest.raises(futures.CancelledError):
            next(results)


def waits(begun: Path, end: Path) -> str:
    begun.touch()
    wait_for(end)
    return end.name


def test_a_shutdown_lets_a_maps_calls_run_that_cancel_would_end(tmp_path: Path) -> None:
    begun, ends = [tmp_path / each for each in "ab"], [tmp_path / each for each in "cd"]
    pool = ProcessExecutor(1)
    results: Any = pool.options(cancel="kill").map(waits, [*begun, "none"], [*ends, "none"])
    mapping = results.gi_frame.f_locals["mapping"]
    wait_for(begun[0])
    pool.shutdown(wait=False, cancel_futures=True)
    ends[0].touch()
    assert next(results) == "c"

    def end_second() -> None:
        wait_until(lambda: mapping.asked is not None)
        ends[1].touch()

    thread = threading.Thread(target=end_second)
    thread.start()
    assert next(results) == "d"
    thread.join()
    with pytest.raises(futures.CancelledError):
        next(results)
    pool.shutdown()


def raise_cancelled() -> None:
    raise leveret.Cancelled("of its own", leveret.Status.CANCELLED)


def test_a_call_may_raise_cancelled_itself(pool: ProcessExecutor) -> None:
    future = pool.submit(raise_cancelled)
    with pytest.raises(leveret.Cancelled, match="of its own"):
        future.result(60)
    assert not future.cancelled()


@pytest.mark.parametrize("how", ["terminate_workers", "kill_workers"])
def test_terminated_as_python_3_14_does(how: str, tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    with ProcessExecutor(1, preload=()) as pool:
        pid = pool.submit(os.getpid).result(60)
        running = pool.submit(hang, str(flag))
        wait_for(flag)
        waiting = [pool.submit(hang) for _ in range(5)]
        getattr(pool, how)()
        error = running.exception(60)
        assert isinstance(error, futures.BrokenExecutor)
        assert not isinstance(error, leveret.Poison)
        for each in waiting[1:]:
            assert each.cancelled() or isinstance(each.exception(60), futures.BrokenExecutor)
        with pytest.raises(RuntimeError):
            pool.submit(int)
    assert is_gone(pid)


def test_a_keyboard_interrupt_leaves_the_block_at_once(tmp_path: Path) -> None:
    flags = [tmp_path / "a", tmp_path / "b"]
    made: list[futures.Future[Any]] = []
    with pytest.raises(KeyboardInterrupt), ProcessExecutor(2, preload=()) as pool:
        made += [pool.submit(hang, str(each)) for each in flags]
        made += [pool.submit(hang) for _ in range(4)]
        for each in flags:
            wait_for(each)
        raise KeyboardInterrupt
    assert all(each.cancelled() for each in made)


PROGRAM = """
import os, signal, sys, time
import leveret
executor = leveret.ProcessExecutor(2, preload=())
pids = set(executor.submit(os.getpid).result() for _ in range(4))
print(*pids, flush=True)
def slow(i):
    os.write(1, b"begun\\n")
    while True:
        signal.pause()
{body}
"""
BODIES = {
    "in result()": "with executor:\n    [executor.submit(slow, i) for i in range(4)][0].result()",
    "in map()": "with executor:\n    list(executor.map(slow, range(4), chunksize=1))",
    "in the end of with": "with executor:\n    [executor.submit(slow, i) for i in range(4)]",
    "without with": "[executor.submit(slow, i) for i in range(4)][0].result()",
}


def run_and_signal(body: str, number: int, tmp_path: Path) -> tuple[float, list[int], str]:
    """Seconds from the signal to the end of the program, and its workers."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    pids = [int(word) for word in program.stdout.readline().split()]
    assert program.stdout.readline() == program.stdout.readline() == "begun\n"
    start = time.monotonic()
    program.send_signal(number)
    _, error = program.communicate(timeout=60)
    return time.monotonic() - start, pids, error


def gone_in_time(pids: list[int]) -> bool:
    end = time.monotonic() + 30
    while not all(is_gone(each) for each in pids):
        if time.monotonic() > end:
            return False
    return True


@pytest.mark.parametrize("where", BODIES)
def test_one_ctrl_c_is_enough(where: str, tmp_path: Path) -> None:
    spent, pids, error = run_and_signal(BODIES[where], signal.SIGINT, tmp_path)
    assert "KeyboardInterrupt" in error
    assert spent < 30, "it waited for its calls"
    assert gone_in_time(pids)


def test_sigterm_leaves_nothing(tmp_path: Path) -> None:
    _, pids, _ = run_and_signal(BODIES["in result()"], signal.SIGTERM, tmp_path)
    assert pids and gone_in_time(pids)


def test_a_second_thread_waits_for_what_ctrl_c_ends(tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    seen: list[BaseException] = []
    with pytest.raises(KeyboardInterrupt), ProcessExecutor(1, preload=()) as pool:
        future = pool.submit(hang, str(flag))

        def wait() -> None:
            try:
                future.result(60)
            except BaseException as error:
                seen.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_for(flag)
        raise KeyboardInterrupt
    waiter.join(60)
    assert isinstance(seen[0], futures.CancelledError)


def test_terminated_though_a_worker_is_idle() -> None:
    code = """
    import leveret
    executor = leveret.ProcessExecutor(2, preload=())
    executor.submit(int).result()
    executor.terminate_workers()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)
