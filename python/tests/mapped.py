"""Functions that tests call in worker processes; what is imported here each new process imports."""

from __future__ import annotations

import os
import select
import signal


def rest(seconds: float) -> None:
    """A call that takes its time."""
    select.select([], [], [], seconds)


def trouble(item: int) -> int:
    """What becomes of an item is told by its last digit."""
    if item % 10 == 3:
        raise ValueError(item)
    if item % 10 == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return -item


def mark(path: str, place: int) -> None:
    """Leaves a mark at a place of a file."""
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, b"x", place)
    os.close(file)
