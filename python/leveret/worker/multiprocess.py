"""This process as multiprocessing sees it: a child of the host, which has the host's tracker.

multiprocessing is not imported for that: what it has to be told, it is told when something else
imports it. A worker starts no resource tracker of its own, which at the worker's end would unlink
the shared memory that it has only opened. It uses the host's, if there is one, as the children of
multiprocessing do.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from typing import Any, Callable

from .. import _core
from ..wire.setup import About, Depth
from .imports import change_when_imported

_TRACKER = "from multiprocessing.resource_tracker import main;main("


class _Now:
    """The host whose calls this process runs."""

    about = About(0, b"")


def set_up(about: About) -> None:
    """Tells multiprocessing now, and when it is imported; again when the host is another one."""
    if about == _Now.about:
        return
    is_first = _Now.about.pid == 0
    _Now.about = about
    Depth.here = about.depth
    for name in [name for name in _CHANGES if name in sys.modules]:
        _CHANGES[name](sys.modules[name])
    if is_first:
        change_when_imported(_CHANGES, _change)


def _change(module: types.ModuleType) -> None:
    with contextlib.suppress(Exception):  # it is not what it was
        _CHANGES[module.__name__](module)


def _become_child(process: Any) -> None:
    me, about = process.current_process(), _Now.about
    me._name = f"LeveretWorker-{_core.worker_index()}"
    if about.authkey:
        me.authkey = about.authkey
    before = process._parent_process
    with contextlib.suppress(OSError):
        ends = os.pidfd_open(about.pid)  # ready when the host has ended
        process._parent_process = process._ParentProcess(about.name, about.pid, ends)
        if before is not None:
            os.close(before._sentinel)


def _share_tracker(module: Any) -> None:
    known = module._resource_tracker
    if hasattr(type(known), "is_of_host"):  # another one's
        file, known._fd = known._fd, None
        if file is not None:
            os.close(file)
        return
    base: Any = module.ResourceTracker

    class Tracker(base):  # type: ignore[misc]
        """The host's; or none, while the host has none."""

        is_of_host = True

        def ensure_running(self) -> None:
            if getattr(self, "_fd", None) is None:
                self._launch()

        def _launch(self) -> None:  # what Python 3.14 calls when it writes
            self._fd = _open_tracker(_Now.about.pid)

    known.__class__ = Tracker
    module.ensure_running = known.ensure_running


def _open_tracker(host: int) -> int:
    """A descriptor to write to the resource tracker of the host; or to nothing."""
    from pathlib import Path  # here: it takes long to import

    for children in Path(f"/proc/{host}/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):
            for child in children.read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_bytes().decode("utf-8", "replace")
                _, found, rest = words.partition(_TRACKER)
                if found:
                    end = f"/proc/{child}/fd/{int(rest.partition(')')[0])}"
                    return os.open(end, os.O_WRONLY | os.O_CLOEXEC)
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


_CHANGES: dict[str, Callable[[Any], None]] = {
    "multiprocessing.process": _become_child,
    "multiprocessing.resource_tracker": _share_tracker,
}
