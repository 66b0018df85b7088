"""Runtime.ordered(): the order of tasks follows from their arrays."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import needs_processes, wait_until, works

import leveret

AXPY = leveret.builtin("axpy")  # y += a x
SUM = leveret.builtin("sum")
MACHINES = [name for name in ("threads", "sim", "processes") if works(name)]


def steps(rng: np.random.Generator, count: int) -> list[tuple[float, slice, slice]]:
    """Pieces of one vector, of equal length and apart from each other."""
    made: list[tuple[float, slice, slice]] = []
    while len(made) < count:
        size = int(rng.integers(1, 20))
        a, b = (int(at) for at in rng.integers(0, 100 - size, 2))
        if abs(a - b) >= size:
            made.append((float(rng.choice([-1, 1])), slice(a, a + size), slice(b, b + size)))
    return made


@pytest.mark.parametrize("machine", MACHINES)
def test_it_leaves_what_a_serial_run_leaves(machine: str) -> None:
    found = np.arange(100.0)
    expected = found.copy()
    with leveret.Runtime(machine, 2, tickets=64) as runtime, runtime.ordered() as tasks:
        for i, (factor, a, b) in enumerate(steps(np.random.default_rng(5), 400)):
            expected[b] += factor * expected[a]
            tasks.submit(AXPY, factor, found[a], found[b])
            if i == 200:
                tasks.wait()
                assert (found == expected).all()
    assert (found == expected).all()


def test_arrays_live_as_long_as_their_tasks_and_no_longer() -> None:
    class Array(np.ndarray):
        pass

    with leveret.Runtime(workers=1) as runtime:
        tasks = runtime.ordered()
        y = np.zeros(1000)
        x = np.ones(1000).view(Array)
        seen = weakref.ref(x)
        tasks.submit(AXPY, 1.0, x, y)
        del x
        tasks.wait()
        assert (y == 1).all()

        def is_gone() -> bool:
            runtime.counters()  # any call releases what is complete, once its worker has left it
            gc.collect()
            return seen() is None

        wait_until(is_gone)
        del tasks


def test_a_scope_that_is_dropped_waits() -> None:
    y = np.zeros(10)
    with leveret.Runtime(workers=1) as runtime:
        tasks = runtime.ordered()
        for _ in range(100):
            tasks.submit(AXPY, 1.0, np.ones(10), y)
        del tasks
        assert (y == 100).all()


def test_what_is_refused_is_told_and_nothing_submitted() -> None:
    x = np.ones(10)
    with leveret.Runtime(workers=1) as runtime, runtime.ordered() as tasks:
        with pytest.raises(ValueError, match=r"sum. has a result.*pass an array"):
            tasks.submit(SUM, x)
        with pytest.raises(TypeError, match="procedure must be a Procedure"):
            tasks.submit(abs, x)  # type: ignore[arg-type]
        with pytest.raises(leveret.InvalidArgument, match="overlaps"):
            tasks.submit(AXPY, 1.0, x[:5], x[2:7])
        with pytest.raises(TypeError, match=r"no option 'prioritty'.*priority"):
            tasks.submit(AXPY, 1.0, x, np.ones(10), prioritty=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="priority must be"):
            tasks.submit(AXPY, 1.0, x, np.ones(10), priority="high")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="needs a procedure"):
            tasks.submit()  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="timeout"):
            tasks.wait(-1)
    assert (x == 1).all()
    with pytest.raises(leveret.Closed):
        tasks.submit(AXPY, 1.0, x, np.ones(10))


def test_options_of_tasks() -> None:
    x, ys = np.ones(1000), np.zeros((20, 1000))
    with leveret.Runtime(workers=2) as runtime, runtime.ordered() as tasks:
        lock = runtime.mutex()
        for i, y in enumerate(ys):
            tasks.submit(AXPY, 1.0, x, y, locks=lock, priority=i, key=1)
            tasks.submit(AXPY, 1.0, y, y.copy(), locks=(lock,))
        tasks.wait()
    assert (ys == 1).all()


@needs_processes
def test_a_time_limit_of_one_task() -> None:
    spin = leveret.builtin("spin")
    with leveret.Runtime("processes", 1) as runtime:
        tasks = runtime.ordered()
        tasks.submit(spin, 60_000_000_000, task_timeout=0.2, max_attempts=1)
        tasks.submit(spin, 1)
        with pytest.raises(leveret.Overran) as told:
            tasks.wait()
        assert told.value.failures == 1


@needs_processes
def test_those_behind_a_crash_do_not_run(library: Path) -> None:
    root = leveret.load(library, "root_or_crash", "in f8, out f8, count(1)", name="ordered.root")
    x, y, z, apart = np.array([4.0, -1.0]), np.zeros(2), np.zeros(2), np.zeros(2)
    with leveret.Runtime("processes", 2, max_attempts=1) as runtime:
        tasks = runtime.ordered()
        tasks.submit(root, x, y)
        tasks.submit(AXPY, 1.0, y, z)
        tasks.submit(AXPY, 1.0, x, apart)
        with pytest.raises(leveret.Poison) as told:
            tasks.wait()
        assert told.value.failures == 2
        assert (z == 0).all() and (apart == x).all()
        with pytest.raises(KeyError), tasks:
            tasks.submit(root, x, y)
            raise KeyError


def test_what_comes_after_a_wait_that_told_of_a_failure_runs(library: Path) -> None:
    axpy = leveret.load(library, "axpy_f4", "f4, in f4, inout f4, count(1)")
    fails = leveret.load(library, "fail_with", "i4, inout f4 -> int", name="ordered.fails")
    x, y = np.ones(4, "f4"), np.ones(4, "f4")
    with leveret.Runtime(workers=1) as runtime, runtime.ordered() as tasks:
        tasks.submit(fails, 3, x)
        tasks.submit(axpy, 1.0, x, y)
        with pytest.raises(leveret.TaskFailed) as told:
            tasks.wait()
        assert told.value.failures == 2 and (y == 1).all()
        tasks.submit(axpy, 1.0, x, y)
        tasks.wait()
    assert (y == 2).all()


def test_one_thread_at_a_time() -> None:
    spin = leveret.builtin("spin")
    with leveret.Runtime(workers=1) as runtime, runtime.ordered() as tasks:
        tasks.submit(spin, 500_000_000)
        waiting = threading.Thread(target=tasks.wait)
        waiting.start()
        with pytest.raises(ValueError, match="give each thread its own"):
            while waiting.is_alive():
                tasks.submit(spin, 1)
        waiting.join()


def test_in_a_forked_child_it_is_the_parents() -> None:
    y = np.zeros(10)
    with leveret.Runtime(workers=1) as runtime, runtime.ordered() as tasks:
        tasks.submit(AXPY, 1.0, np.ones(10), y)
        child = os.fork()
        if child == 0:
            try:
                tasks.submit(AXPY, 1.0, np.ones(10), y)
            except leveret.Closed:
                del tasks
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert (y == 1).all()
