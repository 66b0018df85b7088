"""Awaiting tickets: an event loop is woken when their tasks are complete."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import Any

from . import _core
from .errors import Unavailable


class _Awaited:
    """What coroutines of one event loop await."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.bell = _core.Bell()
        self.waiters: dict[_core.Ticket, list[asyncio.Future[None]]] = {}
        loop.add_reader(self.bell.fileno(), self.look)

    def look(self) -> None:
        """Wakes those whose tasks are complete."""
        self.bell.clear()
        for ticket in [each for each in self.waiters if each.done()]:
            for waiter in self.waiters.pop(ticket):
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self, ticket: _core.Ticket) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.setdefault(ticket, []).append(waiter)
        try:
            if ticket._ring(self.bell):
                await waiter
        finally:
            others = self.waiters.get(ticket)
            if others is not None:
                others.remove(waiter)
                if not others:
                    del self.waiters[ticket]


_awaited: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Awaited] = (
    weakref.WeakKeyDictionary()
)


def _awaited_on(loop: asyncio.AbstractEventLoop) -> _Awaited:
    found = _awaited.get(loop)
    if found is None:
        # What waits there for ever keeps its loop. Loops of other threads come and go meanwhile.
        for other in [each() for each in _awaited.keyrefs()]:
            if other is not None and other.is_closed():
                _awaited.pop(other, None)
        found = _awaited[loop] = _Awaited(loop)
    return found


async def outcome(ticket: _core.Ticket) -> Any:
    """What Ticket.__await__() gives."""
    loop = asyncio.get_running_loop()
    if not ticket.done():
        try:
            await _awaited_on(loop).wait(ticket)
        except asyncio.CancelledError:
            with contextlib.suppress(Unavailable):  # what runs goes on; what waits does not run
                ticket.end()
            ticket._give_up()  # the caller is told here
            raise
    return ticket.result()
