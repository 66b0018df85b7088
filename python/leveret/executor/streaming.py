"""ProcessExecutor.stream(): outcomes on an event loop, as calls end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Callable

from .ending import end_mapping
from .mapping import Mapping, Part

if TYPE_CHECKING:
    from .pool import Pool


class Arrivals:
    """Parts that are done, on their way to the loop's thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.parts: deque[Part] = deque()
        self.news = asyncio.Event()

    def tell(self, part: Part | None) -> None:
        """Called on whatever thread; None: there will be no more."""
        if part is not None:
            self.parts.append(part)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self.loop.call_soon_threadsafe(self.news.set)


async def as_they_come(
    pool: Pool, make: Callable[[Callable[[Part | None], object]], Mapping]
) -> AsyncIterator[tuple[int, Any]]:
    """(index, result or exception) of each item. What runs at the end of the loop is ended."""
    arrivals = Arrivals()
    mapping = make(arrivals.tell)
    try:
        mapping.start()
        while True:
            arrivals.news.clear()
            mapping.refill(lambda: bool(arrivals.parts))
            if not arrivals.parts:
                if mapping.is_over():
                    return
                await arrivals.news.wait()
                continue
            part = arrivals.parts.popleft()
            mapping.note_given(part)
            for each in part.numbered():
                yield each
    finally:
        mapping.close()
        end_mapping(pool, mapping)
