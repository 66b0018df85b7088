"""The program that worker processes of a Python host are forked from.

It imports what workers need and is then forked for each of them (see lev::run_worker_program). It
runs nothing of the host's main module.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable
from typing import Callable

from .. import _core


def main(preload: Iterable[str] = (), runs_python: bool = False) -> None:
    """Becomes the source of worker processes; returns only if no runtime started this program."""
    run: Callable[..., None] | None = None
    if runs_python:
        from . import calls

        run = calls.run
    for name in preload:
        with contextlib.suppress(Exception):  # the task that needs it reports what is wrong
            importlib.import_module(name)
    _core.run_worker_program(run)
