"""run() and stream() of executors: what calls give, on an event loop of asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Callable

from .ending import end_mapping
from .mapping import Mapping, Part

if TYPE_CHECKING:
    from .future import Future, Result
    from .pool import Pool


async def result(submit: Callable[[], Future[Result]]) -> Result:
    """The result of a call that ends when whoever awaits it is cancelled."""
    loop = asyncio.get_running_loop()
    future = submit()
    is_done = loop.create_future()

    def wake() -> None:
        if not is_done.done():
            is_done.set_result(None)

    def on_end(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(wake)

    future.add_done_callback(on_end)
    try:
        await is_done
    finally:
        future.cancel()  # of a call that is done nothing
    if future.cancelled():
        raise asyncio.CancelledError
    # Not by a future of the loop's, which a StopIteration would never end.
    return future.result()


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
