"""The benches of worker processes from Python, beside the standard library's process pool.

python-native    a native null task on machine 'processes'
python-function  a null function in a ProcessExecutor
python-array     1 MiB in and 1 MiB out of a Python function
crash-test       20 calls on 2 workers, one of which crashes: how many are done

Contestants take turns in one process; each figure is the median over the rounds.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Callable

from .. import Runtime, available_cores, builtin, wait_all
from ..executor import ProcessExecutor
from . import contestants
from .figures import figure, ratios, report, timed

CALLS, BAD = 20, 7
CRASHED = ("leveret", "ppe", "loky", "pebble")
CRASH_SECONDS_MAX = 30.0


@contextmanager
def _rival(workers: int) -> Iterator[ProcessPoolExecutor]:
    # spawn, as on every system from Python 3.14 on; the pool is warm before it is measured.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(int, range(workers * 4)))
        yield pool


def _middle(count: int, work: Callable[[], object]) -> float:
    """The median of single calls, in microseconds."""
    return statistics.median(timed(1, work) for _ in range(count))


def _stream(pool: Executor, count: int) -> float:
    def work() -> None:
        for future in [pool.submit(int) for _ in range(count)]:
            future.result()

    return timed(count, work)


def _beside_pool(
    name: str,
    streams: list[float],
    singles: list[float],
    rivals: tuple[list[float], list[float]],
    goals: tuple[str, str],
) -> dict[str, Any]:
    return report(
        name,
        {
            "stream_over_ppe": ratios(streams, rivals[0], goals[0]),
            "p50_over_ppe": ratios(singles, rivals[1], goals[1]),
            "stream_us": figure(streams, "us"),
            "p50_us": figure(singles, "us"),
            "ppe_stream_us": figure(rivals[0], "us"),
            "ppe_p50_us": figure(rivals[1], "us"),
        },
    )


def measure_native(quick: bool) -> dict[str, Any]:
    rounds, pooled, native = (3, 200, 2_000) if quick else (7, 2_000, 20_000)
    workers = max(1, available_cores() - 1)
    null = builtin("null")
    streams: list[float] = []
    singles: list[float] = []
    rivals: tuple[list[float], list[float]] = ([], [])
    with _rival(workers) as pool, Runtime("processes", workers, tickets=1 << 15) as runtime:
        runtime.submit(null).wait()

        def stream() -> None:
            wait_all([runtime.submit(null) for _ in range(native)])

        for _ in range(rounds):
            rivals[0].append(_stream(pool, pooled))
            rivals[1].append(_middle(pooled // 4, lambda: pool.submit(int).result()))
            streams.append(timed(native, stream))
            singles.append(_middle(native // 4, lambda: runtime.submit(null).wait()))
    return _beside_pool("python-native", streams, singles, rivals, ("<= 0.02", "<= 0.05"))


def measure_function(quick: bool) -> dict[str, Any]:
    rounds, count = (3, 200) if quick else (7, 2_000)
    workers = max(1, available_cores() - 1)
    streams: list[float] = []
    singles: list[float] = []
    rivals: tuple[list[float], list[float]] = ([], [])
    with _rival(workers) as pool, ProcessExecutor(workers) as executor:
        list(executor.map(int, range(100), chunksize=1))
        for _ in range(rounds):
            rivals[0].append(_stream(pool, count))
            rivals[1].append(_middle(count // 4, lambda: pool.submit(int).result()))
            streams.append(_stream(executor, count))
            singles.append(_middle(count // 4, lambda: executor.submit(int).result()))
    return _beside_pool("python-function", streams, singles, rivals, ("<= 0.15", "<= 0.15"))


def echo(array: Any) -> Any:
    """The function of python-array."""
    return array


def measure_array(quick: bool) -> dict[str, Any]:
    import numpy as np

    rounds, count = (3, 10) if quick else (7, 100)
    workers = max(1, available_cores() - 1)
    array = np.ones(1 << 17)
    target = np.empty_like(array)
    ours: list[float] = []
    theirs: list[float] = []
    copies: list[float] = []

    def copy() -> None:  # there and back
        np.copyto(target, array)
        np.copyto(array, target)

    with _rival(workers) as pool, ProcessExecutor(workers) as executor:
        for _ in range(4):
            executor.submit(echo, array).result()
        for _ in range(rounds):
            theirs.append(_middle(count, lambda: pool.submit(echo, array).result()))
            ours.append(_middle(count, lambda: executor.submit(echo, array).result()))
            copies.append(_middle(count * 4, copy))
    return report(
        "python-array",
        {
            "over_ppe": ratios(ours, theirs, "<= 0.1"),
            "over_memcpy": ratios(ours, copies, "<= 3", "2 MiB copied in this process"),
            "array_us": figure(ours, "us"),
            "ppe_us": figure(theirs, "us"),
            "memcpy_us": figure(copies, "us"),
        },
    )


def crash_once(flag: str, value: int) -> int:
    """The function of crash-test: dies of SIGSEGV while there is such a file, and removes it."""
    if flag and Path(flag).exists():
        if flag.endswith("once"):
            Path(flag).unlink()
        os.kill(os.getpid(), signal.SIGSEGV)
    return value


def measure_crashes(quick: bool) -> dict[str, Any]:
    figures = {}
    with tempfile.TemporaryDirectory(prefix="leveret-crash-") as folder:
        for name in (each for each in CRASHED if each in contestants.installed()):
            for how in ("once", "always"):
                flag = Path(folder) / how
                flag.touch()
                calls = [(str(flag) if i == BAD else "", i) for i in range(CALLS)]
                executor = contestants.ALL[name](2)
                outcomes = executor.outcomes(crash_once, calls, CRASH_SECONDS_MAX)
                executor.close()
                done = sum(value == i for i, value in enumerate(outcomes))
                goal = {"once": f"= {CALLS}", "always": f"= {CALLS - 1}"}[how]
                key = f"{how}_done" if name == "leveret" else f"{name}_{how}_done"
                figures[key] = figure([done], "calls", goal if name == "leveret" else "")
    return report("crash-test", figures)
