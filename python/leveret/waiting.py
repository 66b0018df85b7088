"""Waiting for tickets as they complete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Literal

from ._core import Ticket, look_over, wait_all, wait_any
from .errors import Status, TimeoutError

# What a thread does while it waits.
WaitPolicy = Literal["help", "park", "spin", "yield", "directed"]

__all__ = ["as_completed", "wait_all", "wait_any"]


def as_completed(
    tickets: Ticket | Iterable[Ticket],
    timeout: float | None = None,
    policy: WaitPolicy | None = None,
) -> Iterator[Ticket]:
    """Yields each ticket once, as its task completes. Failures are not raised: wait() does that.

    timeout: seconds from the first call for all of them. Raises TimeoutError when it is over;
    ValueError at once for a negative number or NaN, and for tickets of several runtimes. policy: as
    in Ticket.wait(). Cost: each ticket is looked at once per wait, so n tickets that complete one
    by one cost n * n / 2 looks of some 50 ns.
    """
    pending = dict.fromkeys(look_over(tickets, timeout, policy))
    return _yield_completed(pending, timeout, policy)


def _yield_completed(
    pending: dict[Ticket, None], timeout: float | None, policy: WaitPolicy | None
) -> Iterator[Ticket]:
    end = None if timeout is None else time.monotonic() + float(timeout)
    while pending:
        ready = [ticket for ticket in pending if ticket.done()]
        if not ready:
            remaining = None if end is None else max(0.0, end - time.monotonic())
            if remaining == 0.0:
                text = f"{len(pending)} tickets are not complete"
                raise TimeoutError(text, Status.TIMED_OUT)
            ready = [wait_any(pending, remaining, policy)]
        for ticket in ready:
            del pending[ticket]
            yield ticket
