"""Locks, queues, values and manager proxies of multiprocessing as arguments and initargs.

They travel as to a process that is started with the method "spawn": by the name of a semaphore, by
an address and its key, and by file descriptors, which a worker opens in the host's folder of /proc.
Semaphores of the "fork" context have no name and cannot travel. Nothing of multiprocessing is
imported here: who uses it has imported it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import stat
import sys
from typing import Any

_SEMAPHORES = "multiprocessing.synchronize"
_MODULES = frozenset({"multiprocessing.connection", "multiprocessing.heap", _SEMAPHORES, "socket"})
_NO_NAME = (
    "a multiprocessing Lock, Queue, Event, Value or the like of the context 'fork' cannot go to a "
    "worker process; make it with multiprocessing.get_context('spawn'), as in get_context('spawn')"
    ".Lock(), or use a Manager's"
)
_NO_SOCKET = (
    "a socket or a two-way Pipe() cannot go to a worker process; use Pipe(duplex=False), or pass "
    "an address to connect to"
)


class _Descriptor:
    """A file descriptor of the host; open there for as long as its owner is an argument."""

    def __init__(self, number: int) -> None:
        about = os.fstat(number)
        if stat.S_ISSOCK(about.st_mode):
            raise pickle.PicklingError(_NO_SOCKET)
        import fcntl

        flags = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
        self.about = (os.getpid(), number, flags, about.st_ino)

    def detach(self) -> int:
        """What multiprocessing calls in the worker: a descriptor of its own for the same file."""
        pid, number, flags, inode = self.about
        mine = os.open(f"/proc/{pid}/fd/{number}", flags | os.O_CLOEXEC)
        if os.fstat(mine).st_ino != inode:
            os.close(mine)
            raise FileNotFoundError(f"the host has closed its file descriptor {number}")
        return mine


class _Spawning:
    """What multiprocessing asks for descriptors while something is pickled for another process."""

    DupFd = _Descriptor

    @staticmethod
    def duplicate_for_child(number: int) -> int:
        return number


class _While(contextlib.AbstractContextManager[None]):
    """While a call is pickled, multiprocessing takes it for the start of a process."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def __enter__(self) -> None:
        self.before = self.context.get_spawning_popen()
        self.context.set_spawning_popen(_Spawning)

    def __exit__(self, *_: object) -> None:
        self.context.set_spawning_popen(self.before)


_nothing = contextlib.nullcontext()


def spawning() -> contextlib.AbstractContextManager[None]:
    context = sys.modules.get("multiprocessing.context")
    return _nothing if context is None else _While(context)


def may_be_shared(kind: type) -> bool:
    """Whether instances of a class may be multiprocessing's to reduce, now or later."""
    return kind.__module__ in _MODULES or hasattr(kind, "_b_base_")  # ctypes: of sharedctypes


def reduce_shared(value: Any, kind: type) -> Any:
    """How multiprocessing pickles it; NotImplemented for other things."""
    reduction = sys.modules.get("multiprocessing.reduction")
    if reduction is None or not may_be_shared(kind):
        return NotImplemented
    if kind.__module__ == _SEMAPHORES:
        if hasattr(value, "_semlock") and value._semlock.name is None:
            raise pickle.PicklingError(_NO_NAME)
        return NotImplemented
    if kind.__module__ not in _MODULES and not hasattr(value, "_wrapper"):
        return NotImplemented
    reduce = reduction.ForkingPickler._extra_reducers.get(kind)
    return NotImplemented if reduce is None else reduce(value)
