"""ProcessExecutor: the interface of concurrent.futures, and arrays."""

from __future__ import annotations

import concurrent.futures as cf
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import hold, needs_processes, pid_of, rest, wait_until

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


# The interface.


def test_submit(pool: ProcessExecutor) -> None:
    assert pool.submit(pow, 2, 10).result(30) == 1024
    assert pool.submit(dict, a=1).result(30) == {"a": 1}
    assert pool.submit(pid_of).result(30) != os.getpid()
    future = pool.submit(abs, -1)
    assert future.exception(30) is None and future.done() and not future.running()


def test_lambdas_and_closures(pool: ProcessExecutor) -> None:
    factor = 3
    assert pool.submit(lambda x: x * factor, 4).result(30) == 12
    assert list(pool.map(lambda x: x * factor, range(5))) == [0, 3, 6, 9, 12]
    factor = 4
    assert pool.submit(lambda x: x * factor, 4).result(30) == 16

    class Local:
        def __init__(self, x: int) -> None:
            self.x = x

        def double(self) -> Local:
            return Local(self.x * 2)

    got = pool.submit(Local(4).double).result(30)
    assert got.x == 8 and type(got) is Local


def test_globals_are_not_remembered(pool: ProcessExecutor) -> None:
    space: dict[str, Any] = {"__name__": "__main__", "n": 1}
    exec("def f(): return n", space)
    assert pool.submit(space["f"]).result(30) == 1
    space["n"] = 2
    assert pool.submit(space["f"]).result(30) == 2


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("chunksize", [None, 1, 10])
def test_map(pool: ProcessExecutor, count: int, chunksize: Any) -> None:
    got = pool.map(pow, range(count), range(count), chunksize=chunksize)
    assert list(got) == [pow(i, i) for i in range(count)]


def test_map_stops_at_an_error(pool: ProcessExecutor) -> None:
    got = pool.map(lambda x: 6 // x, [3, 2, 0, 1], chunksize=4)
    assert next(got) == 2 and next(got) == 3
    with pytest.raises(ZeroDivisionError):
        next(got)


def test_map_timeout(pool: ProcessExecutor, tmp_path: Path) -> None:
    until = tmp_path / "until"
    with pytest.raises(cf.TimeoutError):
        list(pool.map(hold, [tmp_path / "begun"] * 2, [tmp_path, until], timeout=0.2))
    until.touch()


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="max_workers"):
        ProcessExecutor(0)
    with pytest.raises(TypeError, match="initializer"):
        ProcessExecutor(1, initializer=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_tasks_per_child"):
        ProcessExecutor(1, max_tasks_per_child=0)
    with pytest.raises(ValueError, match="timeout must be None or a number"):
        ProcessExecutor(1, timeout=-1)
    with ProcessExecutor(1) as pool, pytest.raises(ValueError, match="chunksize"):
        pool.map(abs, [1], chunksize=0)


def test_exceptions_bring_their_traceback(pool: ProcessExecutor) -> None:
    error = pool.submit(divmod, 1, 0).exception(30)
    assert isinstance(error, ZeroDivisionError)
    assert "ZeroDivisionError" in str(error.__cause__)

    def deep() -> None:
        raise KeyError("here")

    error = pool.submit(deep).exception(30)
    assert isinstance(error, KeyError) and 'raise KeyError("here")' in str(error.__cause__)
    assert isinstance(pool.submit(sys.exit, 3).exception(30), SystemExit)


class Odd(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__("odd")


def raise_odd() -> None:
    raise Odd(1, 2)


def test_what_cannot_be_pickled(pool: ProcessExecutor) -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match="pickle"):
        pool.submit(abs, lock).result(30)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pickle"):
        pool.submit(threading.Lock).result(30)
    with pytest.raises(Odd, match="odd"):
        pool.submit(raise_odd).result(30)
    assert pool.submit(abs, -1).result(30) == 1


def test_callbacks_and_as_completed(pool: ProcessExecutor) -> None:
    called = threading.Event()
    future = pool.submit(abs, -3)
    future.add_done_callback(lambda f: called.set())
    assert called.wait(30)
    futures = [pool.submit(abs, -i) for i in range(50)]
    assert sorted(f.result() for f in cf.as_completed(futures, 30)) == list(range(50))
    done, rest = cf.wait([pool.submit(abs, -1), pool.submit(abs, 2)], 30)
    assert len(done) == 2 and not rest


def test_a_callback_may_submit(pool: ProcessExecutor) -> None:
    ends = threading.Semaphore(0)

    def again(left: int) -> None:
        if left == 0:
            ends.release()
        else:
            pool.submit(abs, left).add_done_callback(lambda f: again(f.result() - 1))

    for _ in range(4):
        again(30)
    assert all(ends.acquire(timeout=30) for _ in range(4))


def test_cancel(tmp_path: Path) -> None:
    begun, until = tmp_path / "begun", tmp_path / "until"
    with ProcessExecutor(1) as pool:
        slow = pool.submit(hold, begun, until)
        many = [pool.submit(rest, 0.01) for _ in range(20)]
        wait_until(begun.exists)
        assert many[-1].cancel() and many[-1].cancelled()
        assert not slow.cancel()
        until.touch()
        with pytest.raises(cf.CancelledError):
            many[-1].result(30)
        assert many[-2].result(30) is None


def test_many_threads(pool: ProcessExecutor) -> None:
    sums: list[int] = []

    def use(n: int) -> None:
        sums.append(sum(pool.submit(abs, -i).result(60) for i in range(n)))

    threads = [threading.Thread(target=use, args=(50,), daemon=i % 2 == 0) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sums == [sum(range(50))] * 8


# Arrays.


def test_arrays_come_and_go(pool: ProcessExecutor) -> None:
    x = np.arange(300_000.0).reshape(3, -1)
    for _ in range(3):
        got = pool.submit(lambda a, b: (a + 1, {"b": b}), x, x.astype("f4").T).result(30)
        np.testing.assert_array_equal(got[0], x + 1)
        np.testing.assert_array_equal(got[1]["b"], x.astype("f4").T)
        got[0][:] = 0  # it is ours


@pytest.mark.parametrize(
    "dtype", ["f8", ">f8", "?", "c16", "S5", "U3", "M8[s]", "i4,f8", "O", "V1500"]
)
def test_arrays_of_every_kind(pool: ProcessExecutor, dtype: str) -> None:
    x = np.zeros((60, 20), dtype)
    if dtype not in ("i4,f8", "V1500"):
        x[:] = np.arange(20) % 2
    for view in (x, x.T, x[::2], x[:0], x[3], x[3, 4:5].reshape(())):
        native = view.dtype.newbyteorder("=")  # NumPy itself turns the bytes of some views
        for got in (
            pool.submit(lambda a, b: (a, b), view, 1).result(30)[0],
            pool.submit(lambda a, b: (a, b), a=view, b=1).result(30)[0],
        ):
            assert (got.dtype.newbyteorder("="), got.shape) == (native, view.shape)
            np.testing.assert_array_equal(got, view)
        np.testing.assert_array_equal(pool.submit(lambda a: a, view).result(30), view)


def test_arguments_are_private(pool: ProcessExecutor) -> None:
    x = np.zeros(100_000)

    def fill(a: Any) -> Any:
        a[:] = 5
        return a.sum()

    assert pool.submit(fill, x).result(30) == 500_000
    assert not x.any()


def test_a_function_may_keep_its_arguments() -> None:
    def keep(a: Any) -> float:
        import builtins

        kept = builtins.__dict__.setdefault("_kept", [])
        kept.append(a)
        return float(sum(k.sum() for k in kept))

    with ProcessExecutor(1) as pool:
        total = 0.0
        for i in range(6):
            total += 10_000.0 * i
            assert pool.submit(keep, np.full(10_000, float(i))).result(30) == total


def test_large_results(pool: ProcessExecutor) -> None:
    for size in (10, 10_000, 3_000_000, 10, 3_000_000, 3_000_000):
        got = pool.submit(np.full, size, 2.5).result(30)
        assert got.shape == (size,) and (got == 2.5).all()
    assert len(pool.submit(bytes, 50_000_000).result(30)) == 50_000_000
    futures = [pool.submit(np.full, 500_000, float(i)) for i in range(40)]
    assert [f.result(30)[-1] for f in futures] == list(range(40))


def test_arguments_larger_than_the_store(pool: ProcessExecutor) -> None:
    x = np.ones(12_000_000)
    assert pool.submit(np.sum, x).result(60) == 12_000_000
    assert pool.submit(len, bytes(100_000_000)).result(60) == 100_000_000


def test_shared_arrays(pool: ProcessExecutor) -> None:
    x = leveret.shared_array((100, 100))

    def fill(a: Any, value: float) -> Any:
        a[:] = value
        return a

    assert pool.submit(fill, x[::2, 10:20], 3).result(30).base is not None
    assert (x[::2, 10:20] == 3).all() and x.sum() == 3 * 500
    back = pool.submit(fill, x, 4).result(30)
    back[0, 0] = 9
    assert x[0, 0] == 9 and (x[1:] == 4).all()


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "python" / "survive_a_crash.py"
    if not example.exists():
        pytest.skip("only the package is here")
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "parse('a nested one') ended its worker process" in done.stdout


def test_functions_of_the_extension_go_by_their_names(pool: ProcessExecutor) -> None:
    from leveret import available_cores, worker_index

    def both() -> Any:
        return available_cores(), worker_index()

    cores, index = pool.submit(both).result(30)
    assert cores == leveret.available_cores() and index in (0, 1)
    assert pool.submit(available_cores).result(30) == leveret.available_cores()
    assert {pool.submit(worker_index).result(30) for _ in range(20)} <= {0, 1}
    assert leveret.worker_index() is None


def gives_much(_: bytes) -> bytes:
    return bytes(100_000)


def test_room_for_a_result_goes_with_a_call_that_cannot_be_handed_over(
    pool: ProcessExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: Any) -> None:
        raise leveret.OutOfMemory("no room", leveret.Status.OUT_OF_MEMORY)

    assert len(pool.submit(gives_much, b"").result()) == 100_000
    monkeypatch.setattr("leveret.executor.pool.in_shared", refuses)
    with pytest.raises(leveret.OutOfMemory):
        pool.submit(gives_much, bytes(20 << 20)).result()
    assert pool._pool.space.reserved == 0


def test_who_closes_what_has_ended_needs_no_thread_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may fork next, which Python warns of where there are others."""
    started: list[str] = []
    start = threading.Thread.start

    def note(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    with ProcessExecutor(1) as pool:
        assert pool.submit(int).result(30) == 0
    assert pool._pool.closed.is_set() and "leveret-closer" not in started
