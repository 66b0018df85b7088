"""The program that worker processes of a Python host are forked from, and what they run.

The first process imports what workers need and is forked for each of them (see
lev::run_worker_program). It runs nothing of the host's main module.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable

from . import _core


def main(preload: Iterable[str] = ()) -> None:
    """Becomes the source of worker processes; returns only if no runtime started this program."""
    for name in preload:
        with contextlib.suppress(Exception):  # the task that needs it reports what is wrong
            importlib.import_module(name)
    _core.run_worker_program()
