"""Leveret: tasks with declared data, run by workers with small fast memory.

    import leveret, numpy as np

    x, y = np.arange(1e6), np.ones(1_000_000)
    with leveret.Runtime() as runtime:
        ticket = runtime.submit(leveret.builtin("axpy"), 2.0, x, y)
        ticket.wait()

A task runs native code: see leveret.load(), leveret.procedure() and leveret.builtin(). Python
functions that may crash, hang or take all memory are called by a leveret.ProcessExecutor.
"""

import sys
from typing import TYPE_CHECKING

from . import main_interpreter as main_interpreter  # first: see there
from ._core import (
    Mutex,
    Ordered,
    Procedure,
    Sliced,
    Ticket,
    Whole,
    available_cores,
    version,
    worker_index,
)
from .errors import (
    Cancelled,
    Closed,
    DependencyFailed,
    Error,
    InvalidArgument,
    LeveretError,
    OutOfMemory,
    Overran,
    Poison,
    PoolDown,
    Status,
    TaskFailed,
    TimeoutError,
    Unavailable,
    WorkerDied,
    WouldBlock,
    WouldDeadlock,
)
from .machines import Machine, machines
from .procedures import builtin, load, procedure
from .runtime import Runtime
from .shared import shared_array
from .waiting import as_completed, wait_all, wait_any

if TYPE_CHECKING:
    from . import apps, mpi
    from . import dask as dask
    from . import progress as progress
    from .cluster import Cluster, ClusterArray, ClusterTicket
    from .executor import BrokenExecutor, ProcessExecutor
    from .executor.joblib_backend import register_joblib
    from .latency import include_folder, interleave
    from .records import Counters, WorkerCounters

__version__ = version()

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    # A free-threaded interpreter has switched it on for the extension, unless it was told not to.
    raise ImportError("leveret needs the GIL: start Python without PYTHON_GIL=0 and -X gil=0")

# Loaded when they are used: a worker process does not need them, and should start quickly.
_LATER = {
    "BrokenExecutor": "executor",
    "Cluster": "cluster",
    "ClusterArray": "cluster",
    "ClusterTicket": "cluster",
    "Counters": "records",
    "ProcessExecutor": "executor",
    "WorkerCounters": "records",
    "apps": "apps",
    "dask": "dask",
    "include_folder": "latency",
    "interleave": "latency",
    "mpi": "mpi",
    "progress": "progress",
    "records": "records",
    "register_joblib": "executor.joblib_backend",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f".{_LATER[name]}", __name__)
    found: object = module if name == _LATER[name] else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def sliced(array: object) -> Sliced:
    """Marks an array that dicing may cut along its first axis, for submit() and parallel().

    All sliced arrays of a task, and its ranges, must have the same length along it.
    """
    return Sliced(array)


def whole(array: object) -> Whole:
    """Marks an array that every task of a submit_bulk() gets all of, instead of one row."""
    return Whole(array)


__all__ = [
    "BrokenExecutor",
    "Cancelled",
    "Closed",
    "Cluster",
    "ClusterArray",
    "ClusterTicket",
    "Counters",
    "DependencyFailed",
    "Error",
    "InvalidArgument",
    "LeveretError",
    "Machine",
    "Mutex",
    "Ordered",
    "OutOfMemory",
    "Overran",
    "Poison",
    "PoolDown",
    "Procedure",
    "ProcessExecutor",
    "Runtime",
    "Sliced",
    "Status",
    "TaskFailed",
    "Ticket",
    "TimeoutError",
    "Unavailable",
    "Whole",
    "WorkerCounters",
    "WorkerDied",
    "WouldBlock",
    "WouldDeadlock",
    "__version__",
    "apps",
    "as_completed",
    "available_cores",
    "builtin",
    "include_folder",
    "interleave",
    "load",
    "machines",
    "mpi",
    "procedure",
    "register_joblib",
    "shared_array",
    "sliced",
    "version",
    "wait_all",
    "wait_any",
    "whole",
    "worker_index",
]
