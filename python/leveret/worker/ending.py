"""The end of a worker that ends in order: after shutdown(), or after max_tasks_per_child calls."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import weakref


def forget() -> None:
    """What was registered before the fork is for the process that registered it."""
    atexit._clear()
    for each in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        each.atexit = False
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    atexit.register(logging.shutdown)


def end() -> None:
    """Runs what calls have registered with atexit, and writes what files still hold."""
    atexit._run_exitfuncs()
    # By their types: what is asked for its class may be a proxy, and run code of the program's.
    try:
        files = [each for each in gc.get_objects() if issubclass(type(each), io.IOBase)]
    except MemoryError:  # under a limit
        return
    # Those that write text first: what they hold goes through others.
    files.sort(key=lambda each: not isinstance(each, io.TextIOBase))
    for each in files:
        with contextlib.suppress(Exception):
            if not each.closed and each.writable():
                each.flush()
