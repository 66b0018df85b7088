"""Exceptions of signal handlers, which come up in the middle of whatever the main thread does."""

from __future__ import annotations

import functools
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .work import Work


def _code_of(handler: Any) -> Any:
    """Of the function that runs: handlers are functions, methods, partials, or can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = vars(type(handler)).get("__call__")
    return getattr(handler, "__code__", None)


def is_of_signal(error: BaseException) -> bool:
    """Whether a signal's handler has raised it, as far as its traceback shows."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    codes = {_code_of(signal.getsignal(each)) for each in signal.valid_signals()}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def raise_if_of_signal(work: Work, error: BaseException) -> None:
    """Raises an error of reading a call's result that is no fault of the result.

    It is read again then. Once: an unpickler may raise anything, too.
    """
    if not work.was_interrupted and is_of_signal(error):
        work.was_interrupted = True
        raise error
