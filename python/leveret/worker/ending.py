"""The end of a worker that ends in order: after shutdown(), or after max_tasks_per_child calls.

And that of a process that a call has forked.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import os
import sys
import threading
import weakref
from typing import Any, NoReturn

from .. import _core


class Worker:
    """The worker process: another one that runs its code was forked by a call."""

    pid = 0


def leave_call(error: BaseException | None = None) -> None:
    """What is due when a call's function has returned or raised.

    A timer that it has left running is ended. So is a process that it has forked, where that comes
    back from the call: it is no worker. It ends as an interpreter does, but for what is registered
    to be run at the end: that is the worker's.
    """
    if _core.leave_call() != Worker.pid:
        _leave(error)


def _leave(error: BaseException | None) -> NoReturn:
    status = 1
    if error is None:
        status = 0
    elif not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif error.code is None or isinstance(error.code, int):
        status = (error.code or 0) & 0xFF
    else:
        print(error.code, file=sys.stderr)
    for each in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or replaced by something else
            each.flush()
    os._exit(status)


def forget() -> None:
    """Before workers are forked: what is registered is for the process that registered it.

    In a worker it would be too late: hooks of the fork have registered what is the worker's own.
    """
    atexit._clear()
    for each in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        each.atexit = False
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    atexit.register(logging.shutdown)


# Files that were there before workers were forked: what is as old is looked at no more, see
# program.py.
_old_files: list[weakref.ref[Any]] = []


def _files() -> list[Any]:
    # By their types: what is asked for its class may be a proxy, and run code of the program's.
    return [each for each in gc.get_objects() if issubclass(type(each), io.IOBase)]


def note_files() -> None:
    for each in _files():
        with contextlib.suppress(TypeError):  # no weak references to it
            _old_files.append(weakref.ref(each))


def end() -> None:
    """Has threads do what calls have left to them, runs what calls have registered with atexit, and
    writes what files still hold.
    """
    _wait_for_threads()
    atexit._run_exitfuncs()
    try:
        files = _files() + [old for old in (each() for each in _old_files) if old is not None]
    except MemoryError:  # under a limit
        return
    # Those that write text first: what they hold goes through others.
    files.sort(key=lambda each: not isinstance(each, io.TextIOBase))
    for each in files:
        with contextlib.suppress(Exception):
            if not each.closed and each.writable():
                each.flush()


def _wait_for_threads() -> None:
    """As the interpreter does at its end, and a process of multiprocessing.

    Executors of concurrent.futures that nobody has shut down do what they were given, and threads
    that are no daemons are waited for. The host waits for this process no longer than it says.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException as error:  # of what somebody has registered there
        sys.excepthook(type(error), error, error.__traceback__)
