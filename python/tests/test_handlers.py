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
    is_below = threading.Event()

    def handle(number: int, frame: object) -> None:
        if is_below.is_set():
            return
        try:
            ticket.wait(0)
        except leveret.WouldDeadlock:  # this thread waits for it, below
            is_below.set()
        except leveret.TimeoutError:
            return
        gate.open()
        wait_until(ticket.done)
        next_one = threads.submit(NULL, after=ticket)
        next_one.wait(30)
        ticket.wait(30)
        seen.append(next_one)

    def send() -> None:
        while not is_below.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    ticket = gate.submit(threads)
    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        wait(ticket)
    finally:
        is_below.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1
