"""Workers that had no call for a while are ended, and others are there when calls come."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, rest

import leveret
from leveret import ProcessExecutor, _core

pytestmark = needs_processes

kept: list[Any] = []
others: set[int] = set()


@pytest.fixture
def brief() -> Iterator[ProcessExecutor]:
    gc.collect()
    others.clear()
    with contextlib.suppress(leveret.Unavailable):  # none is open
        others.update(pid for pid in workers_here() if pid)
    with ProcessExecutor(2, idle_worker_timeout=0.02, preload=()) as made:
        yield made


def keep(megabytes: int) -> int:
    kept.append(bytearray(os.urandom(1)) * (megabytes << 20))
    return os.getpid()


def private_bytes(pid: int) -> int:
    """What is this process's alone; 0 when it is not there."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def workers_here() -> list[int]:
    """Processes of this process's pools, but for those that other tests have left open."""
    pools = _core.look_at_pools(os.getpid())
    pids = [each["pid"] for seen in pools for each in seen["workers"]]
    return [pid for pid in pids if pid not in others]


def await_gone(pid: int) -> None:
    end = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        rest(0.005)


def test_memory_goes_back(brief: ProcessExecutor) -> None:
    pid = brief.submit(keep, 64).result()
    await_gone(pid)
    end = time.monotonic() + 60
    while 0 in workers_here():
        assert time.monotonic() < end
    assert max(map(private_bytes, workers_here())) < 16 << 20
    assert brief.submit(keep, 1).result() != pid


def test_calls_that_come_as_workers_end_are_done_once(tmp_path: Path) -> None:
    """Whatever the moment: no attempt is counted, and none is told of as a death."""
    told: list[Any] = []
    with ProcessExecutor(
        2,
        idle_worker_timeout=0.002,
        preload=(),
        retry=False,
        on_death=lambda *about: told.append(about),
    ) as executor:
        for i in range(60):
            executor.submit(os.mkdir, str(tmp_path / str(i))).result()  # a second one would raise
            rest(0.0001 * (i % 40))
    assert len(list(tmp_path.iterdir())) == 60
    assert told == []


def test_each_process_is_set_up(tmp_path: Path) -> None:
    with ProcessExecutor(
        1,
        idle_worker_timeout=0.01,
        preload=(),
        initializer=tempfile.mkdtemp,
        initargs=("", "made", str(tmp_path)),
    ) as executor:
        for _ in range(3):
            await_gone(executor.submit(os.getpid).result())
    assert len(list(tmp_path.iterdir())) == 3


def test_who_is_at_work_stays() -> None:
    """The time is that between calls: one that takes longer is not cut short."""
    with ProcessExecutor(1, idle_worker_timeout=0.01, preload=(), retry=False) as executor:
        assert executor.submit(rest, 0.1).result() is None


@pytest.mark.parametrize("seconds", [0, -1, 1e10, float("nan")])
def test_times_that_make_no_sense(seconds: float) -> None:
    with pytest.raises(ValueError, match="idle_worker_timeout must be None or a number of sec"):
        ProcessExecutor(1, idle_worker_timeout=seconds)
    with pytest.raises(TypeError, match="idle_worker_timeout must be None or a number"):
        leveret.ProcessExecutor(1, idle_worker_timeout="1")  # type: ignore[arg-type]
