"""Leveret: tasks with declared data, run by workers with small fast memory.

    import leveret, numpy as np

    x, y = np.arange(1e6), np.ones(1_000_000)
    with leveret.Runtime() as runtime:
        ticket = runtime.submit(leveret.builtin("axpy"), 2.0, x, y)
        ticket.wait()

A task runs native code: see leveret.load(), leveret.procedure() and leveret.builtin().
"""

from . import apps
from ._core import (
    Mutex,
    Procedure,
    Sliced,
    Ticket,
    Whole,
    available_cores,
    version,
)
from .errors import (
    Cancelled,
    Closed,
    DependencyFailed,
    Error,
    InvalidArgument,
    LeveretError,
    OutOfMemory,
    Status,
    TaskFailed,
    TimeoutError,
    Unavailable,
    WouldBlock,
    WouldDeadlock,
)
from .machines import Machine, machines
from .procedures import builtin, load, procedure
from .records import Counters, WorkerCounters
from .runtime import Runtime
from .waiting import as_completed, wait_all, wait_any

__version__ = version()


def sliced(array: object) -> Sliced:
    """Marks an array that dicing may cut along its first axis, for submit() and parallel().

    All sliced arrays of a task, and its ranges, must have the same length along it.
    """
    return Sliced(array)


def whole(array: object) -> Whole:
    """Marks an array that every task of a submit_bulk() gets all of, instead of one row."""
    return Whole(array)


__all__ = [
    "Cancelled",
    "Closed",
    "Counters",
    "DependencyFailed",
    "Error",
    "InvalidArgument",
    "LeveretError",
    "Machine",
    "Mutex",
    "OutOfMemory",
    "Procedure",
    "Runtime",
    "Sliced",
    "Status",
    "TaskFailed",
    "Ticket",
    "TimeoutError",
    "Unavailable",
    "Whole",
    "WorkerCounters",
    "WouldBlock",
    "WouldDeadlock",
    "__version__",
    "apps",
    "as_completed",
    "available_cores",
    "builtin",
    "load",
    "machines",
    "procedure",
    "sliced",
    "version",
    "wait_all",
    "wait_any",
    "whole",
]
