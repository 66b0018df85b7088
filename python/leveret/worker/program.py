"""The program that worker processes of a Python host are forked from.

It imports what workers need and is then forked for each of them (see lev::run_worker_program). It
runs nothing of the host's main module.
"""

from __future__ import annotations

import gc
import importlib
import signal
from collections.abc import Iterable
from typing import Callable

from .. import _core
from ..wire.files import keep_spares


def _pass_over(number: int, frame: object) -> None:
    """SIGINT is for the host, which ends what is to end. (SIG_IGN would be inherited.)"""


def _import(name: str) -> str:
    """What is wrong with a module: told with the first result; a call that needs it reports it."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # a script without a main guard ends by SystemExit
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            return ""  # the host has told that
        return f"preload: {name}: {type(error).__name__}: {error}"
    return ""


def main(preload: Iterable[str] = (), runs_python: bool = False) -> None:
    """Becomes the source of worker processes; returns only if no runtime started this program."""
    signal.signal(signal.SIGINT, _pass_over)
    run: Callable[..., None] | None = None
    end: Callable[[], None] | None = None
    failures: list[str] = []
    if runs_python:
        from . import calls, ending

        run, end, failures = calls.run, ending.end, calls.preload_failures
    gc.enable()  # see leveret/launch.py
    failures.extend(filter(None, map(_import, preload)))
    if runs_python:
        keep_spares()
        ending.note_files()
        ending.forget()
    # A worker's collections pass over what is here before it is forked: where they look at objects,
    # the worker gets pages of its own.
    gc.freeze()
    _core.run_worker_program(run, end)
