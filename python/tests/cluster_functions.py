"""Functions that tests of a Cluster call: nodes import this module, which needs nothing."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any


def crash_at_7(x: int) -> int:
    if x == 7:
        os.abort()
    return x * x


def fail_at_3(x: int) -> int:
    if x == 3:
        raise KeyError(x)
    return x


def fail_and_log(path: str) -> None:
    """An initializer that raises."""
    with Path(path).open("a") as log:
        log.write("x")
    raise ValueError("no such licence")


def fail_on_slow_node() -> None:
    """An initializer that raises on one node."""
    if "SLOW_NODE" in os.environ:
        raise ValueError("no such licence")


class Placed:
    """An object that only one process can read, or all but that one."""

    def __init__(self, pid: int, is_there: bool) -> None:
        self.pid, self.is_there = pid, is_there

    def __reduce__(self) -> Any:
        return place, (self.pid, self.is_there)


def place(pid: int, is_there: bool) -> Placed:
    if (os.getpid() == pid) != is_there:
        raise RuntimeError("not in this process")
    return Placed(pid, is_there)


def odd_at_2(x: int, pid: int) -> Any:
    return Placed(pid, False) if x == 2 else x


class _Once:
    """What can be pickled, and read as something that cannot."""

    def __reduce__(self) -> Any:
        return _make_generator, ()


def _make_generator() -> Any:
    return (each for each in range(3))


def generator_at_2(x: int) -> Any:
    return _Once() if x == 2 else x


def kind_of(x: object) -> str:
    return type(x).__name__


def rest(seconds: float) -> None:
    """A call that takes its time."""
    select.select([], [], [], seconds)


def sum_below(x: int) -> int:
    return sum(range(x))


def node_pid() -> int:
    """Of a Dask worker, by Client.run()."""
    return os.getpid()


def pools_here() -> Any:
    """What `leveret top` shows of a Dask worker, by Client.run()."""
    import leveret

    try:
        return leveret._core.look_at_pools(os.getpid())
    except leveret.Unavailable:
        return []


def names_of_executors(dask_worker: Any) -> list[str]:
    """Of a Dask worker, by Client.run()."""
    return list(dask_worker.executors)


def come_and_wait(here: str, go: str) -> str:
    """A call that says that it runs, and runs until it may end."""
    Path(here).touch()
    end = time.monotonic() + 300
    while not Path(go).exists() and time.monotonic() < end:
        rest(0.01)
    return go


def fate_of(fate: str, x: int) -> int:
    """A call that gives a value, raises, or ends its process."""
    if fate == "x":
        os.abort()
    if fate == "e":
        raise KeyError(x)
    return x * x
