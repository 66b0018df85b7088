"""This process as multiprocessing sees it: a child of the host, which has the host's tracker.

multiprocessing is not imported for that: what it has to be told, it is told when something else
imports it. A worker starts no resource tracker of its own, which at the worker's end would unlink
the shared memory that it has only opened. It uses the host's, if there is one, as the children of
multiprocessing do.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from pathlib import Path
from typing import Any, Callable

from .. import _core
from ..wire.setup import About

_TRACKER = "from multiprocessing.resource_tracker import main;main("


def set_up(about: About) -> None:
    """Tells multiprocessing now, or when it is imported."""
    changes: dict[str, Callable[[Any], None]] = {
        "multiprocessing.process": lambda module: _become_child(module, about),
        "multiprocessing.resource_tracker": lambda module: _share_tracker(module, about.pid),
    }
    for name in [name for name in changes if name in sys.modules]:
        changes.pop(name)(sys.modules[name])
    if changes:
        sys.meta_path.insert(0, _Finder(changes))


class _Finder(importlib.abc.MetaPathFinder):
    """Changes modules after they were imported."""

    def __init__(self, changes: dict[str, Callable[[Any], None]]) -> None:
        self.changes = changes

    def find_spec(
        self, name: str, path: Any, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self.changes.get(name)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                with contextlib.suppress(Exception):  # it is not what it was
                    change(module)

            loader.exec_module = exec_module
        return spec


def _become_child(process: Any, about: About) -> None:
    me = process.current_process()
    me._name = f"LeveretWorker-{_core.worker_index()}"
    if about.authkey:
        me.authkey = about.authkey
    with contextlib.suppress(OSError):
        ends = os.pidfd_open(about.pid)  # ready when the host has ended
        process._parent_process = process._ParentProcess(about.name, about.pid, ends)


def _share_tracker(module: Any, host: int) -> None:
    base: Any = module.ResourceTracker

    class Tracker(base):  # type: ignore[misc]
        """The host's; or none, while the host has none."""

        def ensure_running(self) -> None:
            if getattr(self, "_fd", None) is None:
                self._fd = _open_tracker(host)

    module._resource_tracker.__class__ = Tracker
    module.ensure_running = module._resource_tracker.ensure_running


def _open_tracker(host: int) -> int:
    """A descriptor to write to the resource tracker of the host; or to nothing."""
    for children in Path(f"/proc/{host}/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):
            for child in children.read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_bytes().decode("utf-8", "replace")
                _, found, rest = words.partition(_TRACKER)
                if found:
                    end = f"/proc/{child}/fd/{int(rest.partition(')')[0])}"
                    return os.open(end, os.O_WRONLY | os.O_CLOEXEC)
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
