"""ProcessExecutor: what happens when processes die, and how executors begin and end."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEEP, LIMIT, needs_processes, pid_of, rest, wait_until
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def crash_once(flag: str, value: Any) -> Any:
    if os.path.exists(flag):  # noqa: PTH110
        os.unlink(flag)  # noqa: PTH108
        crash()
    return value


def crash_at(bad: int, value: int) -> int:
    if value == bad:
        crash()
    return value


def zygotes() -> list[int]:
    """Those of this process; executors that other tests have dropped may be ending."""
    found = []
    for child in children_of(os.getpid()):
        with contextlib.suppress(OSError):
            if "leveret-zygote" in Path(f"/proc/{child}/comm").read_text():
                found.append(child)
    return found


def children_of(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


# Crashes.


def test_crash_test_once(tmp_path: Path) -> None:
    """20 calls on 2 workers, number 7 dies on its first try only."""
    flag = tmp_path / "flag"
    flag.touch()
    with ProcessExecutor(2) as pool:
        futures = [pool.submit(crash_once, str(flag) if i == 7 else "", i) for i in range(20)]
        assert [f.result(60) for f in futures] == list(range(20))
    assert not flag.exists()


def test_crash_test_always() -> None:
    """The same, but it dies on every try: the others are done, and it is named."""
    with ProcessExecutor(2) as pool:
        futures = [pool.submit(crash_at, 7, i) for i in range(20)]
        cf.wait(futures, 60)
        error = futures[7].exception()
        assert isinstance(error, leveret.Poison)
        text = r"crash_at(7, 7) ended its worker process on each of 3 attempts: signal 11 (SIGSEGV)"
        assert text in str(error) and error.code == -11
        assert [f.result() for i, f in enumerate(futures) if i != 7] == [
            i for i in range(20) if i != 7
        ]
        assert pool.submit(abs, -1).result(30) == 1


def test_map_names_the_item_that_crashes(pool: ProcessExecutor) -> None:
    got = pool.map(crash_at, [13] * 40, range(40), chunksize=20)
    assert [next(got) for _ in range(13)] == list(range(13))
    with pytest.raises(leveret.Poison, match=r"crash_at\(13, 13\)"):
        next(got)


def test_no_retry(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    with ProcessExecutor(1, retry=False) as pool:
        future = pool.submit(crash_once, str(flag), 1)
        with pytest.raises(leveret.WorkerDied, match=r"crash_once.*SIGSEGV.*retry=False"):
            future.result(30)
        assert not isinstance(future.exception(), leveret.Poison)
        assert pool.submit(abs, -1).result(30) == 1


def test_timeout() -> None:
    with ProcessExecutor(1, timeout=1) as pool:
        with pytest.raises(leveret.Overran, match=r"rest\(60\) ran longer"):
            pool.submit(rest, 60).result(30)
        assert pool.options(timeout=60).submit(abs, -1).result(30) == 1


def test_ways_to_die(pool: ProcessExecutor) -> None:
    with pytest.raises(leveret.Poison, match=r"exit\(3\)"):
        pool.submit(os._exit, 3).result(30)
    with pytest.raises(leveret.Poison, match="SIGABRT"):
        pool.submit(os.abort).result(30)
    assert pool.submit(abs, -1).result(30) == 1


def test_kill_all_workers_and_the_zygote(pool: ProcessExecutor) -> None:
    assert pool.submit(abs, -1).result(30) == 1
    zygote = zygotes()[-1]
    for _ in range(3):
        futures = [pool.submit(abs, -i) for i in range(200)]
        for worker in children_of(zygote):
            kill(worker)
        assert [f.result(60) for f in futures] == list(range(200))
    futures = [pool.submit(abs, -i) for i in range(200)]
    os.kill(zygote, signal.SIGKILL)
    assert [f.result(60) for f in futures] == list(range(200))


def test_a_large_result_whose_worker_is_gone(pool: ProcessExecutor, tmp_path: Path) -> None:
    def one_more(folder: str) -> Any:
        with open(f"{folder}/{os.getpid()}", "w"):  # noqa: PTH123
            return np.ones(1_000_000)

    got = pool.submit(one_more, str(tmp_path)).result(30)
    assert got.sum() == 1_000_000
    for name in tmp_path.iterdir():
        os.kill(int(name.name), signal.SIGKILL)
    assert got.sum() == 1_000_000


# Initializers, replacements, shutdown.


def set_up(value: int) -> None:
    import builtins

    vars(builtins)["_leveret_test"] = value


def what_was_set_up() -> Any:
    import builtins

    return vars(builtins)["_leveret_test"]


def test_initializer() -> None:
    with ProcessExecutor(2, initializer=set_up, initargs=(17,)) as pool:
        assert {pool.submit(what_was_set_up).result(30) for _ in range(20)} == {17}


def test_an_initializer_that_raises() -> None:
    def fail() -> None:
        raise OSError("not today")

    told = "initializer raised OSError: not today$"
    with ProcessExecutor(2, initializer=fail) as pool:
        futures = [pool.submit(abs, -i) for i in range(10)]
        for future in futures:
            with pytest.raises(leveret.BrokenExecutor, match=told) as caught:
                future.result(30)
            assert isinstance(caught.value, cf.BrokenExecutor)
            assert "not today" in str(caught.value.__cause__)
        with pytest.raises(leveret.BrokenExecutor):
            pool.submit(abs, 1)


def test_a_broken_executor_keeps_no_processes(tmp_path: Path) -> None:
    """What runs when it breaks goes on to its end. Nobody shuts it down."""
    go = tmp_path / "go"

    def fail_but_first() -> None:
        if leveret.worker_index():
            raise OSError("not today")

    def wait_for(path: str) -> int:
        while not os.path.exists(path):  # noqa: PTH110
            rest(0.01)
        return leveret.worker_index() or 0

    pool = ProcessExecutor(2, initializer=fail_but_first)
    futures = [pool.submit(wait_for, str(go)) for _ in range(4)]
    wait_until(lambda: "broken" in repr(pool))
    assert leveret._core.look_at_pools(os.getpid())
    go.touch()
    ends = {type(each.exception(LIMIT)) for each in futures}
    assert ends == {type(None), leveret.BrokenExecutor}
    wait_until(pool._pool.closed.is_set, 60)
    with pytest.raises(leveret.BrokenExecutor, match="not today"):
        pool.submit(abs, -1)
    pool.shutdown()


@pytest.mark.parametrize("odd", ["", "raises"])
def test_an_initializer_whose_error_says_nothing(odd: str) -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            if odd:
                raise KeyboardInterrupt
            return ""

    def fail() -> None:
        raise Silent

    with ProcessExecutor(1, initializer=fail) as pool:
        error = pool.submit(abs, -1).exception(30)
        assert isinstance(error, leveret.BrokenExecutor) and str(error).endswith("Silent")


def test_an_initializer_that_kills() -> None:
    how = r"initializer .*exit\(5\)"
    with ProcessExecutor(1, initializer=os._exit, initargs=(5,)) as pool:
        future = pool.submit(abs, -1)
        with pytest.raises(leveret.BrokenExecutor, match=how):
            future.result(30)


def test_an_initializer_that_overruns_is_told() -> None:
    with ProcessExecutor(1, initializer=select.select, initargs=([], [], [], 60)) as pool:
        error = pool.options(timeout=0.2).submit(abs, -1).exception(30)
    assert isinstance(error, leveret.Overran) and "while it ran the initializer" in str(error)
    for limit in (0.2, 2, 20):  # in which the process may not have begun the call
        with ProcessExecutor(1, initializer=select.select, initargs=([], [], [], 0)) as pool:
            view = pool.options(timeout=limit)
            error = view.submit(select.select, [], [], [], LIMIT).exception(LIMIT)
        assert isinstance(error, leveret.Overran)
        if "initializer" not in str(error):
            return
    pytest.fail(str(error))


def test_max_tasks_per_child() -> None:
    with ProcessExecutor(1, max_tasks_per_child=3) as pool:
        pids = [pool.submit(pid_of).result(30) for _ in range(9)]
    assert len(set(pids)) == 3 and all(pids.count(pid) == 3 for pid in pids)


def test_shutdown() -> None:
    pool = ProcessExecutor(2)
    futures = [pool.submit(rest, 0.01) for _ in range(10)]
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, 1)
    assert all(f.result(30) is None for f in futures)
    pool.shutdown()
    pool.shutdown()


def test_a_callback_may_shut_down() -> None:
    for wait in (True, False):
        pool = ProcessExecutor(1)
        over = threading.Event()

        def end(_: object, pool: ProcessExecutor = pool, wait: bool = wait) -> None:
            pool.shutdown(wait=wait)
            over.set()  # noqa: B023

        pool.submit(rest, 0.05).add_done_callback(end)
        del pool, end
        assert over.wait(30)


def test_shutdown_cancels() -> None:
    pool = ProcessExecutor(2)
    futures = [pool.submit(rest, 0.05) for _ in range(1000)]
    futures[0].result(60)
    pool.shutdown(cancel_futures=True)
    cancelled = [f for f in futures if f.cancelled()]
    assert len(cancelled) > 20
    assert all(f.done() for f in futures) and futures[0] not in cancelled


def test_a_dropped_executor_ends_its_processes() -> None:
    pool = ProcessExecutor(2)
    futures = [pool.submit(abs, -i) for i in range(10)]
    zygote = zygotes()[-1]
    del pool
    assert [f.result(30) for f in futures] == list(range(10))
    end = time.monotonic() + 30
    while zygote in zygotes() and time.monotonic() < end:
        rest(0.01)
    assert zygote not in zygotes()


def run_script(code: str, tmp_path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(code))
    command = [sys.executable, "-W", "error", str(path)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_pending_work_is_done_at_exit(tmp_path: Path) -> None:
    done = run_script(
        """
        import leveret, select
        class Point:
            def __init__(self, x): self.x = x
        def work(p):
            select.select([], [], [], 0.02)
            return Point(p.x + 1)
        pool = leveret.ProcessExecutor(2)
        for i in range(10):
            pool.submit(work, Point(i)).add_done_callback(
                lambda f: print(type(f.result()) is Point))
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n" * 10, "")


def test_from_a_daemon_thread(tmp_path: Path) -> None:
    done = run_script(
        """
        import leveret, threading
        def use():
            pool = leveret.ProcessExecutor(2)
            print(sum(pool.map(abs, range(100))))
            ready.set()
            threading.Event().wait()
        ready = threading.Event()
        threading.Thread(target=use, daemon=True).start()
        ready.wait()
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "4950\n", "")


def test_after_ctrl_c(tmp_path: Path) -> None:
    done = run_script(
        """
        import leveret, os, signal, select, threading
        def wait_for(path):
            while not os.path.exists(path):
                select.select([], [], [], 0.01)
            return "over"
        go = __file__ + ".go"
        with leveret.ProcessExecutor(1) as pool:
            slow = pool.submit(wait_for, go)
            try:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                slow.result()
            except KeyboardInterrupt:
                print("interrupted")
            open(go, "w").close()
            print(slow.result(), pool.submit(abs, -1).result())
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\nover 1\n", "")


def test_printed_text_is_not_lost(tmp_path: Path) -> None:
    done = run_script(
        """
        import leveret
        with leveret.ProcessExecutor(1) as pool:
            pool.submit(print, "from a worker", end="").result()
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "from a worker", "")


def test_errors_can_be_pickled() -> None:
    error = leveret.Poison("text", leveret.Status.POISON)
    error.code = -11
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is leveret.Poison and back.code == -11 and str(back) == "text"


def test_joblib() -> None:
    joblib = pytest.importorskip("joblib")
    leveret.register_joblib()
    with joblib.parallel_config(backend="leveret", n_jobs=2):
        got = joblib.Parallel()(joblib.delayed(pow)(i, 2) for i in range(200))
        assert got == [i * i for i in range(200)]
        with pytest.raises(ZeroDivisionError):
            joblib.Parallel()(joblib.delayed(divmod)(1, i) for i in (1, 0))
        x = np.ones(100_000)
        assert joblib.Parallel()(joblib.delayed(np.sum)(x) for _ in range(4)) == [100_000] * 4


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Machine(RuleBasedStateMachine):
    """Submits, waits, cancels, kills: every future has one outcome, and it is right."""

    @initialize(workers=st.integers(1, 2), tasks=st.sampled_from([None, 2, 50]))
    def open(self, workers: int, tasks: int | None) -> None:
        self.before = set(zygotes())
        self.pool = ProcessExecutor(workers, max_tasks_per_child=tasks, max_attempts=50)
        self.futures: list[tuple[int, cf.Future[int]]] = []
        self.number = 0

    @rule(count=st.integers(1, 20))
    def submit(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            self.futures.append((self.number, self.pool.submit(abs, -self.number)))

    @rule(size=st.sampled_from([100, 5_000, 200_000]))
    def submit_array(self, size: int) -> None:
        self.number += 1
        future = self.pool.submit(lambda n, a: int(n + a[-1]), self.number, np.zeros(size))
        self.futures.append((self.number, future))

    @rule(which=st.integers(0, 1000))
    def wait(self, which: int) -> None:
        if self.futures:
            number, future = self.futures.pop(which % len(self.futures))
            if not future.cancelled():
                assert future.result(60) == number

    @rule(which=st.integers(0, 1000))
    def cancel(self, which: int) -> None:
        if self.futures:
            future = self.futures[which % len(self.futures)][1]
            if future.cancel():
                assert future.cancelled()

    @rule()
    def kill_a_worker(self) -> None:
        for zygote in set(zygotes()) - self.before:
            for worker in children_of(zygote)[:1]:
                kill(worker)

    @rule()
    def kill_the_zygote(self) -> None:
        for zygote in set(zygotes()) - self.before:
            kill(zygote)

    @invariant()
    def nothing_is_broken(self) -> None:
        assert getattr(self, "pool", None) is None or self.pool._pool.broken is None

    def teardown(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.pool.shutdown()
        for number, future in self.futures:
            assert future.cancelled() or future.result(0) == number
        assert set(zygotes()) <= self.before


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=200 if DEEP else 8,
    stateful_step_count=50 if DEEP else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
