"""Functions that tests of a Cluster call: nodes import this module, which needs nothing."""

from __future__ import annotations

import os
import select


def crash_at_7(x: int) -> int:
    if x == 7:
        os.abort()
    return x * x


def fail_at_3(x: int) -> int:
    if x == 3:
        raise KeyError(x)
    return x


def rest(seconds: float) -> None:
    """A call that takes its time."""
    select.select([], [], [], seconds)


def sum_below(x: int) -> int:
    return sum(range(x))


def node_pid() -> int:
    """Of a Dask worker, by Client.run()."""
    return os.getpid()
