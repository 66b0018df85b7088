"""ProcessExecutor: what is told of calls whose processes died, and on whom a death is blamed."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, wait_until

import leveret
from leveret import ProcessExecutor, _core
from leveret.wire import page

pytestmark = needs_processes


def read_at(address: int) -> Any:
    return ctypes.string_at(address)


def solve(mesh: str) -> Any:
    return read_at(8)


@contextlib.contextmanager
def silent() -> Iterator[list[Any]]:
    """What is reported by sys.unraisablehook meanwhile."""
    seen: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, seen.append
    try:
        yield seen
    finally:
        sys.unraisablehook = before


# Where it was.


@pytest.mark.parametrize("initializer", [None, faulthandler.enable])
def test_a_crash_has_the_traceback_of_its_process(initializer: Any) -> None:
    with ProcessExecutor(1, initializer=initializer) as pool:
        error = pool.submit(solve, "mesh-17").exception(60)
    assert isinstance(error, leveret.Poison) and error.traceback is not None
    frames = [line.split(" in ")[-1] for line in error.traceback.splitlines() if " in " in line]
    assert frames[:3] == ["string_at", "read_at", "solve"]
    assert "leveret/worker" not in error.traceback
    assert "C stack" in error.traceback and "libffi" in error.traceback
    shown = "".join(traceback.format_exception(type(error), error, None))
    assert shown.count("in read_at") == 1  # of three attempts


_NO_FILE = """
import ctypes, leveret
def solve(mesh):
    return ctypes.string_at(0)
with leveret.ProcessExecutor(1, max_attempts=1, preload=()) as executor:
    print(executor.submit(solve, "m").exception().traceback)
"""


def test_a_function_of_no_file_is_in_the_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _NO_FILE], capture_output=True, text=True, timeout=120, check=False
    )
    frames = [line.split(" in ")[-1] for line in ran.stdout.splitlines() if line[:7] == "  File "]
    assert frames == ["string_at", "solve"], ran


def test_a_crash_without_retry() -> None:
    with ProcessExecutor(1, retry=False) as pool:
        error = pool.submit(solve, "mesh-17").exception(60)
    assert type(error) is leveret.WorkerDied and "in solve" in str(error.traceback)


def test_an_item_of_a_map() -> None:
    with ProcessExecutor(1) as pool:
        got = pool.map(lambda i: read_at(8) if i == 5 else i, range(10), chunksize=10)
        assert [next(got) for _ in range(5)] == list(range(5))
        with pytest.raises(leveret.Poison) as caught:
            next(got)
    assert "in read_at" in str(caught.value.traceback)


def test_endless_recursion_in_c() -> None:
    def fall() -> None:
        sys.setrecursionlimit(1 << 30)
        dig: Any = []
        for _ in range(300_000):
            dig = [dig]
        repr(dig)

    with ProcessExecutor(1, max_attempts=1) as pool:
        error = pool.submit(fall).exception(60)
    assert error is None or isinstance(error, (leveret.Poison, RecursionError))
    if isinstance(error, leveret.Poison):
        assert "in fall" in str(error.traceback)


def test_a_call_that_overran_says_where_it_was() -> None:
    def sit_still(seconds: float) -> None:
        select.select([], [], [], seconds)

    with ProcessExecutor(1, timeout=1) as pool:
        for _ in range(10):  # the kernel may not give it the core in time
            error = pool.submit(sit_still, 60).exception(120)
            assert isinstance(error, leveret.Overran)
            where = str(error.traceback)
            if "in sit_still" in where:  # and not yet on its way there
                break
    assert "in sit_still" in where


def test_what_was_written_of_a_call_that_ended_in_time_is_taken_back() -> None:
    def nearly() -> None:
        signal.raise_signal(_core.overrun_signal())

    with ProcessExecutor(1, timeout=60) as pool:
        assert pool.submit(nearly).exception(120) is None
        crashed = pool.submit(solve, "x").exception(120)
    assert isinstance(crashed, leveret.Poison)
    assert "in solve" in str(crashed.traceback) and "nearly" not in str(crashed.traceback)


def test_a_library_that_calls_exit_is_found() -> None:
    def give_up(code: int) -> None:
        ctypes.CDLL(None).exit(code)

    def fork_and_give_up() -> int:
        pid = os.fork()
        if pid == 0:
            give_up(5)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    with ProcessExecutor(1, max_tasks_per_child=2) as pool:
        error = pool.submit(give_up, 3).exception(60)
        assert isinstance(error, leveret.Poison) and "exit(3)" in str(error)
        assert "in give_up" in str(error.traceback) and "libc" in str(error.traceback)
        assert pool.submit(fork_and_give_up).result(60) == 5
        assert pool.submit(abs, -1).result(60) == 1  # the last one of its process
        other = pool.submit(os._exit, 4).exception(60)
        assert isinstance(other, leveret.Poison) and not other.traceback


def test_ways_to_die_are_named() -> None:
    def raise_signal(number: int) -> None:
        os.kill(os.getpid(), number)

    with ProcessExecutor(2) as pool:
        calls: dict[str, Future[Any]] = {
            "it called exit(0)": pool.submit(os._exit, 0),
            "it called exit(3)": pool.submit(os._exit, 3),
            "signal 6 (SIGABRT)": pool.submit(os.abort),
            "signal 9 (SIGKILL)": pool.submit(os.killpg, 0, signal.SIGKILL),
            "signal 15 (SIGTERM)": pool.submit(raise_signal, signal.SIGTERM),
        }
        for how, call in calls.items():
            error = call.exception(60)
            assert isinstance(error, leveret.Poison) and how in str(error)
        assert pool.submit(abs, -1).result(120) == 1


def test_sys_exit_is_an_exception_as_everywhere() -> None:
    with ProcessExecutor(1) as pool:
        assert isinstance(pool.submit(sys.exit, 3).exception(120), SystemExit)


def test_what_a_broken_process_writes_is_only_text() -> None:
    def scribble() -> None:
        from leveret.worker.own_page import Own

        assert Own.place is not None
        Own.place[page.TEXT_AT : page.TEXT_AT + 9] = b"\x1b[2J\xff\x00abc"
        Own.words[page.USED] = 1 << 62
        Own.words[page.THREADS] = 1 << 62
        os.kill(os.getpid(), signal.SIGKILL)

    with ProcessExecutor(1, max_attempts=1) as pool:
        error = pool.submit(scribble).exception(120)
        assert isinstance(error, leveret.Poison)
        assert error.traceback is not None and "\x1b" not in error.traceback
        assert pool.submit(abs, -1).result(120) == 1


def test_processes_that_a_call_forks_leave_nothing(tmp_path: Path) -> None:
    def fork() -> int:
        pid = os.fork()
        if pid == 0:
            read_at(8)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def then_die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with ProcessExecutor(1, max_attempts=1) as pool:
        assert pool.submit(fork).result(120) == -signal.SIGSEGV
        error = pool.submit(then_die).exception(120)
    assert isinstance(error, leveret.Poison) and error.traceback is None


def test_pages_are_closed_with_the_executor() -> None:
    def pages() -> set[int]:
        """By their inodes: executors that other tests have dropped may be ending."""
        found = set()
        for each in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if "leveret-page" in str(each.readlink()):
                    found.add(each.stat().st_ino)
        return found

    before = pages()
    with ProcessExecutor(3) as pool:
        pool.submit(abs, -1).result(120)
        assert pages() - before
    assert not pages() - before


def test_the_layout_of_a_page_is_the_same_in_c() -> None:
    source = Path(leveret.__file__).parents[1] / "src" / "obituaries.hpp"
    if not source.exists():
        pytest.skip("the sources are not here")
    text = source.read_text()
    assert f"head_bytes = {page.HEAD_BYTES};" in text
    assert f"kept_bytes = {page.KEPT_BYTES};" in text
    assert f"signal_at = {8 * page.SIGNAL};" in text
    assert f"used_at = {8 * page.USED};" in text
    assert f"call_at = {8 * page.CALL};" in text
    assert f"text_at = {page.TEXT_AT >> 10} << 10;" in text
    assert f" bytes = {page.BYTES >> 10} << 10;" in text


def test_a_call_that_closes_the_page_harms_only_its_traceback() -> None:
    def close_all() -> None:
        os.closerange(3, 1024)

    with ProcessExecutor(1, timeout=60) as pool:
        pool.submit(close_all).exception(120)
        assert pool.submit(abs, -1).result(120) == 1


def test_an_initializer_that_runs_elsewhere_is_not_blamed() -> None:
    """While one process is set up, a call of another one crashes."""

    def linger() -> None:
        select.select([], [], [], 0.3)

    with ProcessExecutor(2, initializer=linger, max_attempts=1) as pool:
        for _ in range(3):
            crashes = [pool.submit(os._exit, 3) for _ in range(4)]
            assert all(type(c.exception(60)) is leveret.Poison for c in crashes)


# Whom it is blamed on.


class Bomb:
    """Crashes any other process in which it is destroyed."""

    def __init__(self) -> None:
        self.home = os.getpid()
        self.itself = self  # until the garbage is collected

    def __del__(self) -> None:
        if os.getpid() != self.home:
            read_at(8)


def leave_a_thread(gate: str) -> None:
    """Leaves a thread behind that crashes when there is a file."""

    def wait() -> None:
        while not os.path.exists(gate):  # noqa: PTH110
            select.select([], [], [], 0.001)
        read_at(8)

    threading.Thread(target=wait, daemon=True).start()


def await_the_crash(gate: str) -> str:
    """Opens the gate the first time that it runs, and is then in the process that crashes."""
    if os.path.exists(gate):  # noqa: PTH110
        return "done"
    Path(gate).touch()
    select.select([], [], [], 60)
    return "never"


def test_a_thread_left_behind_counts_no_attempt_of_others(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    with ProcessExecutor(1, max_attempts=1) as pool:
        pool.submit(leave_a_thread, gate).result(120)
        assert pool.submit(await_the_crash, gate).result(120) == "done"


def test_a_thread_left_behind_is_named_where_nothing_may_run_twice(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    with ProcessExecutor(1, retry=False) as pool:
        pool.submit(leave_a_thread, gate).result(120)
        error = pool.submit(await_the_crash, gate).exception(120)
    assert isinstance(error, leveret.WorkerDied)
    assert "a thread that an earlier call of leave_a_thread has left behind" in str(error)


def test_a_crash_before_the_call_begins_is_not_the_calls(tmp_path: Path) -> None:
    """The worker has taken the task, and waits for the GIL, which an earlier call's thread has."""

    def leave_a_hog() -> None:
        def hog() -> None:
            lib = ctypes.PyDLL(None)  # keeps the GIL
            lib.poll(None, 0, 200)
            read_at(8)

        begun = threading.Event()

        def run() -> None:
            begun.set()
            hog()

        sys.setswitchinterval(60)
        threading.Thread(target=run, daemon=True).start()
        begun.wait()

    with ProcessExecutor(1, retry=False) as pool:
        pool.submit(leave_a_hog).exception(120)
        assert pool.submit(abs, -1).result(120) == 1


def test_a_destructor_of_the_calls_own_is_blamed_on_it() -> None:
    class Now(Bomb):
        def __init__(self) -> None:
            self.home = os.getpid()

    def take(bomb: object) -> int:
        return 1

    with ProcessExecutor(1, retry=False) as pool:
        error = pool.submit(take, Now()).exception(120)
        assert isinstance(error, leveret.WorkerDied) and "take(" in str(error)
        assert [pool.submit(abs, -i).result(120) for i in range(4)] == [0, 1, 2, 3]


@pytest.mark.skipif(sys.version_info < (3, 10), reason="faulthandler does not name it")
def test_garbage_of_an_earlier_call_counts_no_attempt() -> None:
    def collect() -> int:
        gc.collect()
        return 7

    with ProcessExecutor(1, max_attempts=1) as pool:
        assert pool.submit(lambda bomb: 1, Bomb()).exception(120) is None
        assert pool.submit(collect).result(120) == 7


def test_who_is_always_hit_is_no_bystander() -> None:
    """A call that leaves a thread and crashes in it on every attempt is poison in the end."""

    def crash_in_a_thread() -> None:
        thread = threading.Thread(target=read_at, args=(8,))
        thread.start()
        thread.join()

    with ProcessExecutor(1) as pool:
        error = pool.submit(crash_in_a_thread).exception(60)
    assert isinstance(error, leveret.Poison) and "in read_at" in str(error.traceback)


# Callbacks.


def test_on_death() -> None:
    told: list[Any] = []
    with ProcessExecutor(1, on_death=lambda *a: told.append(a)) as pool:
        assert pool.submit(solve, "m").exception(120) is not None
        assert pool.submit(abs, -1).result(120) == 1
        assert pool.submit(os._exit, 0).exception(120) is not None
    assert [each[:3] for each in told[:3]] == [("solve('m')", 11, i) for i in (1, 2, 3)]
    assert all("in solve" in each[3] for each in told[:3])
    assert told[3:] == [("_exit(0)", 0, i, None) for i in (1, 2, 3)]


class _NamedWhenItIsOver:
    """An argument whose first name in a message comes when the future has ended."""

    future: Any = None

    def __reduce__(self) -> Any:
        return object, ()

    def __repr__(self) -> str:
        future, self.future = self.future, None
        if future is not None:
            wait_until(future.done)
        return "it"


def test_deaths_are_told_in_order_while_others_happen() -> None:
    told: list[Any] = []
    it = _NamedWhenItIsOver()
    with ProcessExecutor(1, on_death=lambda *a: told.append(a)) as pool:
        it.future = pool.submit(lambda it: os._exit(3), it)
        assert it.future.exception(120) is not None
    assert [each[2] for each in told] == [1, 2, 3]


def test_a_callback_that_raises_is_reported_and_harmless() -> None:
    def fail(*about: object) -> None:
        raise OSError("not today")

    with silent() as seen, ProcessExecutor(1, on_death=fail, on_progress=fail) as pool:
        assert pool.submit(solve, "m").exception(120) is not None
        assert pool.submit(abs, -1).result(120) == 1
    assert seen and all(isinstance(each.exc_value, OSError) for each in seen)


def test_callbacks_never_run_on_a_thread_of_the_users() -> None:
    """The callback takes a lock that is held where calls are submitted and waited for."""
    lock = threading.RLock()
    told = threading.Event()

    def tell(*about: object) -> None:
        with lock:
            told.set()

    with ProcessExecutor(1, on_death=tell, on_progress=tell, max_attempts=1) as pool:
        with lock:
            futures = [pool.submit(abs, -1) for _ in range(50)]
            assert pool.submit(solve, "m").exception(120) is not None
            assert [f.result(120) for f in futures] == [1] * 50
        assert told.wait(120)


def test_on_progress_counts_items() -> None:
    told: list[tuple[int, int, int]] = []
    with ProcessExecutor(2, on_progress=lambda *a: told.append(a)) as pool:
        assert sum(pool.map(abs, range(-100, 0), chunksize=7)) == 5050
        assert pool.submit(solve, "m").exception(120) is not None
    assert told[-1] == (101, 1, 101)
    assert all(done <= total for done, _, total in told)


def test_on_progress_of_a_chunk_that_is_split() -> None:
    told: list[tuple[int, int, int]] = []
    with ProcessExecutor(1, on_progress=lambda *a: told.append(a), max_attempts=1) as pool:
        got = pool.map(lambda i: read_at(8) if i == 9 else i, range(10), chunksize=10)
        assert [next(got) for _ in range(9)] == list(range(9))
        with pytest.raises(leveret.Poison):
            next(got)
    assert told[-1] == (10, 1, 10)


@pytest.mark.parametrize("option", ["on_death", "on_progress"])
def test_callbacks_must_be_callable(option: str) -> None:
    given: dict[str, Any] = {option: 3}
    with pytest.raises(TypeError, match=option):
        ProcessExecutor(1, **given)
