"""Ending calls that run: cancel() that kills, Ctrl-C, terminate_workers() and kill_workers()."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ..interrupts import LoopInterrupts

if TYPE_CHECKING:
    from .. import _core
    from .mapping import Mapping
    from .pool import Pool


def end_call(pool: Pool, call: _core.Call | None) -> bool:
    """Ends a call under way. False: it has ended, or has not been handed over."""
    return call is not None and pool.pid_is_own() and pool.port.end(call)


def end_all(pool: Pool, cancels: bool) -> None:
    """Takes back what has not begun, and ends what runs.

    cancels: the futures of calls that ran are cancelled; else they fail with BrokenExecutor.
    """
    if not pool.pid_is_own():
        return
    with pool.lock:
        pool.is_terminated = pool.is_terminated or not cancels
        under_way = list(pool.running)
    pool.shut_down(False, True)
    for work in under_way:
        if cancels:
            work.future._end(work.call)
        else:
            end_call(pool, work.call)


def end_mapping(pool: Pool, mapping: Mapping) -> None:
    """Takes back what a mapping has not begun, and ends what of it runs; it must be closed."""
    if not pool.pid_is_own():
        return
    with pool.lock:
        works = [*pool.waiting, *pool.running]
    for work in works:
        part = work.future
        if getattr(part, "mapping", None) is mapping and not part.cancel():
            part._end(work.call)


def enter(pool: Pool) -> None:
    """The begin of a `with` block."""
    pool.interrupts = LoopInterrupts()


def leave(pool: Pool, error: type[BaseException] | None) -> None:
    """The end of a `with` block: one Ctrl-C, in it or in the wait here, ends what runs."""
    interrupts = pool.interrupts or LoopInterrupts()
    pool.interrupts = None  # it keeps the loop's main task
    if not interrupts.is_left_by_one(error):
        try:
            with interrupts.raised():
                pool.shut_down(True, False)
        except KeyboardInterrupt:
            end_all(pool, True)
            with contextlib.suppress(KeyboardInterrupt):
                pool.shut_down(True, True)
            raise
        return
    end_all(pool, True)
    pool.shut_down(True, True)
