"""The end of the program: pools that are open then are waited for, as concurrent.futures does.

If it ends by a Ctrl-C that nobody has caught, what they run is ended.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from ..interrupts import is_interrupted
from .ending import end_all
from .ends import Ends

if TYPE_CHECKING:
    from .pool import Pool

pools: weakref.WeakSet[Pool] = weakref.WeakSet()


class Exit:
    """What ends the use of executors that are open in this process."""

    has_begun = False
    forks = 0  # how many lie between it and the first process


def close_apart(pool: Pool) -> None:
    """Closes what has ended, on a thread of its own.

    The runtime cannot be closed from its own thread, and nobody may be waiting. The closer may be
    the one to free the runtime, which needs the GIL: the interpreter waits for it.
    """
    if sys.is_finalizing():  # a thread that begins now never comes to run
        return
    with contextlib.suppress(RuntimeError):  # the interpreter ends: its exit handler closes
        threading.Thread(target=pool.close, name="leveret-closer", daemon=False).start()


def _at_exit() -> None:
    """Waits for what is pending.

    Afterwards no pool is open: a thread of one that is left could not end with the interpreter.
    """
    Exit.has_begun = True
    try:
        _close_all(is_interrupted())
    except BaseException:  # a Ctrl-C while this waits
        _close_all(True)
        raise


def _close_all(ends_calls: bool) -> None:
    for pool in list(pools):
        with contextlib.suppress(Exception):
            if ends_calls:
                end_all(pool, True)
            pool.shut_down(True, False)


def _after_fork() -> None:
    """In the child: what is open is the parent's."""
    Exit.forks += 1
    for pool in list(pools):
        _leave(pool)
    pools.clear()


def _leave(pool: Pool) -> None:
    """Leaves a pool to the parent: whoever waits here is told, and the locks are new ones.

    Threads that are not here may have had them. Where this thread has one, it keeps the old.
    """
    pool.lock = threading.RLock()
    pool.sources.renew()
    pool.idle, pool.closed = threading.Event(), threading.Event()
    pool.idle.set()
    pool.closed.set()
    pool.is_shut_down = True  # so that submit() comes to check_open()
    left = [*pool.running, *pool.ends.open, *pool.waiting]
    pool.running, pool.waiting = set(), deque()
    pool.ends = Ends(pool)
    pool.is_pumping = False
    pool.last = None
    for work in left:
        work.future._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
# Before threads are joined, while new ones can be started: as concurrent.futures, which is older.
try:
    getattr(threading, "_register_atexit")(_at_exit)  # noqa: B009
except RuntimeError:  # the main thread has ended already, and others go on
    Exit.has_begun = True
