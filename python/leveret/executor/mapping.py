"""map(): calls of one function for many items, some of them sent together as a chunk."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

from ..errors import Overran, Poison
from ..wire.chunks import Unreadable, results_of
from ..wire.pickling import CHUNK
from .failures import unreadable
from .future import Future
from .names import call_name

CHUNKS_PER_WORKER = 16
CHUNK_MAX = 256

# Calls in order; with the items of a chunk.
_Calls = deque[tuple[Future, Optional[list[tuple[Any, ...]]]]]


class Mapping:
    """One map() under way.

    submit: takes the function, flags of the request and the arguments. workers: for how many
    processes chunks are made; 0 when each item must be a call of its own.
    """

    def __init__(self, submit: Callable[..., Future], fn: Callable[..., Any], workers: int) -> None:
        self.submit = submit
        self.fn = fn
        self.workers = workers
        self.calls: _Calls = deque()

    def run(
        self, arguments: Iterable[tuple[Any, ...]], timeout: float | None, chunksize: int | None
    ) -> Iterator[Any]:
        """Submits everything, and returns the results in order."""
        if chunksize is not None and chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        end = None if timeout is None else time.monotonic() + timeout
        items = list(arguments)
        size = chunksize or self.chunk_size(len(items))
        if size == 1:
            for each in items:
                self.add(each)
        else:
            rest = iter(items)
            for chunk in iter(lambda: list(itertools.islice(rest, size)), []):
                self.calls.append((self.submit(self.fn, CHUNK, chunk), chunk))
        return self.results(end)

    def add(self, item: tuple[Any, ...]) -> None:
        self.calls.append((self.submit(self.fn, 0, (item, {})), None))

    def chunk_size(self, count: int) -> int:
        if self.workers == 0:
            return 1
        return max(1, min(CHUNK_MAX, count // (self.workers * CHUNKS_PER_WORKER)))

    def results(self, end: float | None) -> Iterator[Any]:
        def left() -> float | None:
            return None if end is None else max(0.0, end - time.monotonic())

        try:
            while self.calls:
                future, items = self.calls.popleft()
                try:
                    got = future.result(left())
                except (Poison, Overran):
                    if items is None or len(items) == 1:
                        raise
                    self.split(items)
                    continue
                except BaseException:
                    future.cancel()
                    raise
                del future  # nothing here keeps what the caller has got
                if items is None:
                    last = [got]
                    del got
                    yield last.pop()
                    continue
                results = results_of(got)
                del got
                try:
                    yield from results
                except Unreadable as why:
                    name = call_name(self.fn, items[why.index], {})
                    raise unreadable(name, why.error) from why.error
        finally:
            for future, _ in self.calls:
                future.cancel()

    def split(self, items: list[tuple[Any, ...]]) -> None:
        """Submits the items of a chunk that failed one by one: only the one at fault fails."""
        for each in reversed(items):
            self.calls.appendleft((self.submit(self.fn, 0, (each, {})), None))
