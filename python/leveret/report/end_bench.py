"""The benches of calls that are ended: how soon, and what they leave.

ctrl-c    4 calls of 8 s on 2 workers, in a program of its own that gets one SIGINT: seconds until
          it has ended, and its processes that are there a second later
time-out  calls that never end, under a limit: milliseconds from it to the exception, the worst of a
          hundred

Calls under a limit begin on an idle worker, one after another.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..errors import Overran
from ..executor import ProcessExecutor
from ..process_stat import GROUP, SESSION, STATE, stat_of
from .figures import RIVAL, figure, report

CALL_SECONDS, GONE_SECONDS = 8, 1.0
LIMITS = (0.02, 0.1, 0.3)

_PROGRAM = """
import os, time
{imported}
def slow(i):
    print("begun", os.getpid(), flush=True)
    time.sleep({seconds})
if __name__ == "__main__":
    with {made} as executor:
        for future in [executor.submit(slow, i) for i in range(4)]:
            future.result()
"""
_POOL = "from concurrent.futures import ProcessPoolExecutor"
_CONTESTANTS = {
    "": ("from leveret import ProcessExecutor", "ProcessExecutor(2)"),
    "ppe_": (_POOL, "ProcessPoolExecutor(2)"),
    "loky_": ("from loky import ProcessPoolExecutor", "ProcessPoolExecutor(2)"),
}


def _processes(of: int, number: int) -> list[int]:
    """Those of a process GROUP, which a terminal sends its signals to, or of a SESSION."""
    pids = [each.name for each in Path("/proc").glob("[0-9]*")]
    stats = {int(pid): stat_of(pid) for pid in pids}
    return [
        pid
        for pid, stat in stats.items()
        if stat and int(stat[of]) == number and stat[STATE] != "Z"
    ]


def _interrupt(imported: str, made: str, seconds: float) -> tuple[float, int] | None:
    """Seconds to the end of the program, and processes left; None where it does not run."""
    text = _PROGRAM.format(imported=imported, made=made, seconds=seconds)
    folder = Path(__file__).parent
    program = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=folder,
    )
    assert program.stdout is not None
    begun = [program.stdout.readline(), program.stdout.readline()]
    if not all(begun):
        program.wait()
        return None
    start = time.monotonic()
    for each in {program.pid, *_processes(GROUP, program.pid)}:  # as a terminal does
        _send(each, signal.SIGINT)
    program.wait()
    spent = time.monotonic() - start
    end = time.monotonic() + GONE_SECONDS
    while _processes(SESSION, program.pid) and time.monotonic() < end:
        pass
    left = _processes(SESSION, program.pid)
    for each in left:
        _send(each, signal.SIGKILL)
    return spent, len(left)


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def measure_ctrl_c(quick: bool) -> dict[str, Any]:
    """Runs the bench ctrl-c and returns its report."""
    rounds = 1 if quick else 5
    values: dict[str, list[float]] = {}
    for _ in range(rounds):
        for prefix, contestant in _CONTESTANTS.items():
            got = _interrupt(*contestant, 1 if quick else CALL_SECONDS)
            if got is None:
                continue
            values.setdefault(f"{prefix}seconds_to_exit", []).append(got[0])
            values.setdefault(f"{prefix}processes_left", []).append(float(got[1]))
    goals = {"seconds_to_exit": "<= 1", "processes_left": "= 0"}
    figures = {}
    for key, all_of in values.items():
        unit = "s" if key.endswith("exit") else ""
        rival = RIVAL if key.startswith("ppe_") else None
        figures[key] = figure(all_of, unit, goals.get(key, ""), rival)
    return report("ctrl-c", figures)


def forever() -> None:
    """The call of time-out."""
    while True:
        signal.pause()


def measure_time_out(quick: bool) -> dict[str, Any]:
    """Runs the bench time-out and returns its report."""
    calls = 4 if quick else 100
    over: list[float] = []
    with ProcessExecutor(2) as executor:
        executor.submit(int).result()
        for i in range(calls):
            limit = LIMITS[i % len(LIMITS)]
            start = time.perf_counter()
            error = executor.options(timeout=limit).submit(forever).exception()
            spent = time.perf_counter() - start
            assert isinstance(error, Overran)
            over.append((spent - limit) * 1e3)
    over.sort()
    worst = over[max(0, int(len(over) * 0.99) - 1)]
    figures = {
        "overrun_ms": figure([worst], "ms", "<= 20"),
        "overrun_ms_p50": figure([statistics.median(over)], "ms"),
    }
    return report("time-out", figures)
