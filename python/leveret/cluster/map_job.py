"""Calls of a Python function as a job: batches of items, and their outcomes in order.

What has a length is taken at once. Anything else, which may be without an end, is taken by the
thread that asks for results, and only so far ahead of them.
"""

from __future__ import annotations

import itertools
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent import futures
from typing import TYPE_CHECKING, Any, Callable

import cloudpickle

from ..interrupts import raise_signals
from ..wire.chunks import Unreadable, outcomes_of
from .items import Apart, dump_item
from .job import Job, Piece
from .names import Head, NodeSettings, Report
from .pace import Pace

if TYPE_CHECKING:
    from .driver import Driver

AHEAD_ITEMS = 65_536  # of what has no length, beyond the results that were given
BATCH_MAX = 65_536


# Where a batch begins, its outcomes as chunks have them, and its items.
_Landed = tuple[int, Any, Any]


class MapJob(Job):
    """Calls of `function`, pickled already, with items that feed() brings."""

    def __init__(
        self,
        key: str,
        settings: NodeSettings,
        function: bytes,
        pace: Pace,
        chunksize: int | None,
    ) -> None:
        super().__init__(key, pace)
        self.chunksize = chunksize
        self.items: deque[tuple[Any, ...]] = deque()
        self.taken = 0  # items that have come
        self.sent = 0
        self.is_at_end = False
        self.results: queue.SimpleQueue[_Landed | None] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.pack(Head(self.key, settings, function=function))

    # For the thread that asks for results.

    def feed(self, items: Iterable[tuple[Any, ...]], is_all: bool) -> None:
        with self.lock:
            before = len(self.items)
            self.items.extend(items)
            self.taken += len(self.items) - before
            self.is_at_end = is_all

    # For the driver.

    def cut(self, nodes: int, slots: int) -> tuple[int, int, Any] | None:
        with self.lock:
            if self.is_at_end:
                self.total = self.taken
            left = len(self.items)
            if not left:
                return None
            total = self.total or max(self.taken, AHEAD_ITEMS)
            size = self.chunksize or self.pace.size(left, total, nodes, slots, BATCH_MAX)
            data = [self.items.popleft() for _ in range(min(size, left))]
            begin = self.sent
            self.sent += len(data)
        return begin, self.sent, data

    def look_for_end(self) -> None:
        with self.lock:
            if self.is_at_end:
                self.total = self.taken
        super().look_for_end()

    def arrays(self, piece: Piece) -> tuple[Any, ...]:
        if not piece.is_apart:
            try:
                return (cloudpickle.dumps(piece.data, 5),)
            except BaseException as error:  # of one of them
                raise_signals(error)
                piece.is_apart = True
        return (pickle.dumps(Apart([dump_item(each) for each in piece.data]), 5),)

    def parcel(self, key: str) -> bytes | None:
        return self.head if key == self.key else None

    def take_in(self, piece: Piece, report: Report, handle: Any) -> None:
        items, piece.data = piece.data, None
        outcomes = report.outputs[0]
        _, apart, errors = outcomes
        self.failed += len(errors)
        self.done -= len(errors)
        # Messages about results that cannot be read name the call.
        self.results.put((piece.begin, outcomes, items if apart or errors else None))

    def let_go(self) -> None:
        super().let_go()
        with self.lock:
            self.items.clear()
        self.results.put(None)


class Results:
    """The results of a map(), in order; closing it takes back what has not landed."""

    def __init__(
        self,
        driver: Driver,
        job: MapJob,
        fn: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        keeps: Callable[[BaseException], bool],
        timeout: float | None,
        ahead: int | None,
    ) -> None:
        self.driver = driver
        self.job = job
        self.fn = fn
        self.keeps = keeps
        self.ends = None if timeout is None else time.monotonic() + timeout
        self.source: Iterator[tuple[Any, ...]] = zip(*iterables)
        is_sized = any(hasattr(type(each), "__len__") for each in iterables)
        self.ahead = ahead or (None if is_sized else AHEAD_ITEMS)
        self.given = 0
        self.early: dict[int, _Landed] = {}
        self._feed()
        driver.add(job)

    def _feed(self) -> bool:
        """Takes as many items as may be ahead. True: there are new ones."""
        job = self.job
        if job.is_at_end:
            return False
        room = None if self.ahead is None else self.ahead - (job.taken - self.given)
        if room is not None and room <= 0:
            return False
        items = list(itertools.islice(self.source, room))
        job.feed(items, room is None or len(items) < room)
        return True

    def __iter__(self) -> Iterator[Any]:
        try:
            while (found := self._next()) is not None:
                begin, outcomes, items = found
                for value, why in outcomes_of(outcomes):
                    self.given += 1
                    if why is None:
                        yield value
                        continue
                    error = why
                    if isinstance(why, Unreadable):
                        error = self._unreadable(items[self.given - 1 - begin], why)
                    if not self.keeps(error):
                        raise error
                    yield error
        finally:
            if not self.job.finished.is_set():
                self.driver.cancel(self.job)

    def _unreadable(self, item: tuple[Any, ...], why: Unreadable) -> BaseException:
        from ..executor.failures import unreadable  # a Cluster needs none of it else
        from ..executor.names import call_name

        return unreadable(call_name(self.fn, item, {}), why.error)

    def _next(self) -> _Landed | None:
        """The outcomes of the next batch in order; None: that was all."""
        while self.given not in self.early:
            if self._feed():
                self.driver.call(lambda: self.driver._settle(self.job))
            left = None if self.ends is None else max(0.0, self.ends - time.monotonic())
            try:
                found = self.job.results.get(timeout=left)
            except queue.Empty:
                raise futures.TimeoutError from None
            if found is None:
                if self.job.error is not None:
                    raise self.job.error
                return None
            self.early[found[0]] = found
        return self.early.pop(self.given)
