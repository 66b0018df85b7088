"""The end of a program by a Ctrl-C that nobody has caught: what worker processes run is ended.

Else the runtimes that are open then would wait for their tasks as they are destroyed, where another
Ctrl-C does not reach them.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING

from .interrupts import is_interrupted

if TYPE_CHECKING:
    from .runtime import Runtime

_open: weakref.WeakSet[Runtime] = weakref.WeakSet()


def ends_if_interrupted(runtime: Runtime) -> None:
    """Has the tasks of a runtime with worker processes ended at such an end."""
    _open.add(runtime)


def _at_exit() -> None:
    if not is_interrupted():
        return
    for runtime in list(_open):
        with contextlib.suppress(Exception):
            runtime._end()


# Before threads are joined, which may wait for such tasks.
with contextlib.suppress(RuntimeError):  # the main thread has ended already, and others go on
    getattr(threading, "_register_atexit")(_at_exit)  # noqa: B009
