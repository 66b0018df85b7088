"""Handlers of signals that call the runtime in the middle of a wait of the main thread."""

from __future__ import annotations

import os
import signal
import threading
from typing import Callable

import pytest
from conftest import Gate, wait_until

import leveret

NULL = leveret.builtin("null")


@pytest.mark.parametrize(
    "wait", [leveret.Ticket.wait, lambda ticket: leveret.wait_any([ticket])], ids=["one", "any"]
)
def test_what_is_done_is_no_ones_wait(
    threads: leveret.Runtime, gate: Gate, wait: Callable[[leveret.Ticket], object]
) -> None:
    """The ticket of the wait below: a task after it, and a wait for it, do as at any time."""
    seen: list[leveret.Ticket] = []

    def handle(number: int, frame: object) -> None:
        gate.open()
        wait_until(ticket.done)
        next_one = threads.submit(NULL, after=ticket)
        next_one.wait(30)
        ticket.wait(30)
        seen.append(next_one)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        ticket = gate.submit(threads)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        wait(ticket)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1
