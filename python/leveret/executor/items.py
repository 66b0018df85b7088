"""The items of a mapping: what its calls are made of.

What has a length is finite, and taken at once, as concurrent.futures does: all of it is done, also
when nobody asks for a result. Where that shows in nothing (range, tuple), it is taken when calls
are made. Anything else, a generator, say, may be without an end: it is taken by the thread that
asks for results, and only so far ahead of them.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ..interrupts import dropped, is_of_signal

# How far ahead of the results what has no length is taken: so many items, and so many bytes of
# arguments, but four for each worker in any case.
AHEAD_ITEMS_MAX = 16_384
AHEAD_BYTES_MAX = 256 << 20
AHEAD_ITEMS_MIN = 4

Item = tuple[Any, ...]

_UNCHANGING = (range, tuple, str, bytes)
SLICE = 4096  # Ctrl-C is heard between slices


class Items:
    """ahead: how many may be taken beyond those whose results were given; None: by the constants.
    is_lazy: also what has a length is taken so.

    Thread safety: pull() and what it calls is for one thread at a time, the one that asks for
    results or shutdown()'s; look() and drop() for another one.
    """

    def __init__(
        self,
        iterables: tuple[Iterable[Any], ...],
        ahead: int | None,
        workers: int,
        is_lazy: bool,
    ) -> None:
        self.ahead = ahead
        self.workers = workers
        self.item_bytes = 0.0  # of the latest calls' arguments
        self.pulled = 0
        self.given = 0  # items whose results the caller has, or waits for
        self.failure: BaseException | None = None  # what the iterable raised
        self.ready: deque[Item] = deque()
        self.source: Iterator[Item] = zip(*iterables)
        self.left = 0  # of what was taken at once
        is_sized = any(hasattr(type(each), "__len__") for each in iterables)
        self.is_lazy = is_lazy or ahead is not None or not is_sized
        self.is_at_end = not self.is_lazy
        if self.is_lazy:
            return
        if all(type(each) in _UNCHANGING for each in iterables):
            self.left = min(len(each) for each in iterables)  # type: ignore[arg-type]
        else:
            all_items: list[Item] = []
            while some := list(itertools.islice(self.source, SLICE)):
                all_items += some
            self.left = len(all_items)
            self.source = iter(all_items)
        self.pulled = self.left

    def count(self) -> int:
        """How many look() has."""
        return len(self.ready) if self.is_lazy else self.left

    def look(self, count: int) -> list[Item]:
        """The next so many, which stay: see drop()."""
        missing = count - len(self.ready)
        if missing > 0 and not self.is_lazy:
            self.ready.extend(itertools.islice(self.source, missing))
        some = list(itertools.islice(self.ready, count))
        if not some:
            self.left = 0
        return some

    def drop(self, count: int) -> list[functools.partial[Any]]:
        """Steps of at_once() that take away so many."""
        left = max(0, self.left - count)
        return [functools.partial(setattr, self, "left", left), dropped(self.ready, count)]

    def ahead_max(self) -> int:
        if self.ahead is not None:
            return self.ahead
        by_size = AHEAD_BYTES_MAX / max(1.0, self.item_bytes)
        return max(AHEAD_ITEMS_MIN * self.workers, int(min(AHEAD_ITEMS_MAX, by_size)))

    def pull(self, most: int) -> bool:
        """Takes up to so many from the iterable; whether that may be repeated."""
        room = self.ahead_max() - (self.pulled - self.given)
        for _ in range(min(room, most)):
            if self.is_at_end:
                return False
            try:
                item = next(self.source)
            except StopIteration:
                self.is_at_end = True
                return False
            except BaseException as error:
                self.is_at_end = True
                if not isinstance(error, Exception) or is_of_signal(error):
                    raise
                self.failure = error  # for whoever comes to this place
                return False
            self.ready.append(item)
            self.pulled += 1
        return room > most

    def pull_anyway(self) -> None:
        """Takes some more, however many are ahead."""
        self.ahead = self.pulled - self.given + SLICE
        self.pull(SLICE)

    def is_over(self) -> bool:
        """Whether everything there is was given."""
        return self.is_at_end and self.given >= self.pulled
