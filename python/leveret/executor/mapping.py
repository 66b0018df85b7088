"""Calls of one function for many items: map() and submit_many().

1. Items are taken from the iterable (items.py).
2. The pool asks for calls while workers have room for them: make(). The first calls have one item
   each; when they prove short, the next ones have more: chunks, which take about a millisecond.
3. A call ends: settle(). What a chunk has not come to, because it took too long or its worker
   died, becomes calls again. After a death each item goes by itself, so that the one at fault
   fails alone.
4. Results are given in the order of the items, or as they come.

Steps 2 and 3 are done by whatever thread sees that there is work, so everything is done also when
nobody asks for results.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

from ..interrupts import at_once, is_of_signal
from ..wire.chunks import Unreadable, outcomes_of
from ..wire.pickling import say_of_call
from . import counting
from .checking import wait_seconds
from .failures import unreadable
from .future import Future
from .items import AHEAD_ITEMS_MIN, SLICE, Item, Items
from .names import call_name
from .work import Work

if TYPE_CHECKING:
    from .pool import Pool

# A chunk is made to take so long: a round trip of 30 to 100 us is little beside it. It has so many
# items at most, grows by steps, as it proves short, and its arguments and results stay small.
CHUNK_NS = 1_000_000
# While there is much left to do they may take longer, each so small a share of what is left.
LONG_CHUNK_NS, LONG_SHARE = 3_000_000, 64
CHUNK_MAX, CHUNK_GROWTH = 256, 4
CHUNK_BYTES = 1 << 20

Outcome = tuple[Any, "BaseException | None"]


class TooDeep(Exception):
    """A call cannot be pickled where the stack is as deep as here."""


class Part(Future[Any]):
    """The call for one item or several; it is done when `got` or `rest` is there."""

    mapping: Mapping

    def __init__(self, mapping: Mapping, items: list[Item], first: int, is_chunk: bool) -> None:
        super().__init__()
        self.mapping = mapping
        self.items = items
        self.first = first  # the index of the first item
        self.is_chunk = is_chunk
        self.rest: list[Part] = []  # for the items that it did not come to

    def _is_awaited(self) -> bool:
        return self.mapping.tell is not None

    def _invoke_callbacks(self) -> None:
        if self.mapping.tell is not None:
            self.mapping.tell(self)

    def _counted(self, value: Any, error: BaseException | None) -> tuple[int, int]:
        """Of its items."""
        done = len(self.items) - sum(len(each.items) for each in self.rest)
        if error is not None:
            return done, done
        return done, len(value[2]) if self.is_chunk else 0

    def is_plain(self) -> bool:
        """Whether values() has all of its outcomes."""
        if self._exception is not None:
            return False
        got: Any = self._result
        return not self.is_chunk or not (got[1] or got[2])

    def values(self) -> list[Any]:
        """The results, the first one last; they are not kept."""
        got: Any = self._result
        self._result = None
        if not self.is_chunk:
            return [got]
        values: list[Any] = got[0]
        values.reverse()
        return values

    def outcomes(self) -> Iterator[Outcome]:
        """Of its items, but for those of `rest`. Raises what ended the executor."""
        error = self.exception(0)
        if error is not None:
            if self.mapping.pool.has_ended_by(error):
                raise error
            yield None, error
            return
        if self.is_plain():
            values = self.values()
            while values:
                yield values.pop(), None
            return
        got, self._result = self._result, None
        for index, (value, why) in enumerate(outcomes_of(got)):
            if isinstance(why, Unreadable):
                name = call_name(self.mapping.fn, self.items[index], {})
                yield None, unreadable(name, why.error)
                continue
            last = [value]
            del value
            yield last.pop(), why

    def numbered(self) -> Iterator[tuple[int, Any]]:
        """(index, result or exception) of each."""
        for index, (value, error) in enumerate(self.outcomes(), self.first):
            last = [error if error is not None else value]
            del value, error
            yield index, last.pop()


class Mapping:
    """One map() or submit_many() under way.

    chunksize: items for each call; None: as many as time tells. may_chunk: False when each item
    must be a call of its own. make_work: pickles the call of a part. tell: called with each part
    that is done, and with None when there will be no more, on whatever thread; without it results
    are asked for in order.
    """

    def __init__(
        self,
        pool: Pool,
        fn: Callable[..., Any],
        items: Items,
        chunksize: int | None,
        may_chunk: bool,
        make_work: Callable[[Part], Work],
        tell: Callable[[Part | None], object] | None = None,
    ) -> None:
        self.pool = pool
        self.fn = fn
        self.items = items
        self.chunksize = chunksize
        self.may_chunk = may_chunk
        self.make_work = make_work
        self.tell = tell
        self.key = b""  # of the function, for what is known of it
        self.chunk = 1  # items of the latest chunk
        self.formed = 0
        self.tally = counting.Tally()
        self.calls: deque[Part] = deque()  # in the order of the items, where that is wanted
        self.redo: deque[Part] = deque()
        self.is_closed = False
        self.asked: Part | None = None  # the one that is waited for
        self.is_asked = False  # whether somebody has asked for a result
        self.pulling = threading.RLock()  # held while items are taken from the iterables
        self.is_sent_off = False  # shutdown() takes all of them
        self.ended: BaseException | None = None  # why it was withdrawn
        self.is_enlisted = False  # among the pool's sources; with its lock

    # What the pool asks for; one thread at a time but for settle().

    def next_count(self) -> int:
        """How many items the next call has; 0: there are none."""
        if self.redo:
            return len(self.redo[0].items)
        left = self.items.count()
        if self.chunksize is not None or not self.may_chunk:
            return min(left, self.chunksize or 1 if self.may_chunk else 1)
        ns = self.pool.pace.times.get(self.key)
        if ns is None:
            return min(left, 1)
        ns = max(1.0, ns)
        chunk_ns = min(LONG_CHUNK_NS, left * ns / (LONG_SHARE * self.pool.workers))
        most = min(CHUNK_MAX, int(max(CHUNK_NS, chunk_ns) / ns), CHUNK_GROWTH * self.chunk)
        most = min(most, int(CHUNK_BYTES / max(1.0, self.items.item_bytes)))
        most = min(most, CHUNK_BYTES // max(1, self.pool.space.sizes.get(self.key, 1)))
        # The last ones are small, and go to all workers.
        share = self.items.ahead_max() if self.items.is_lazy else left
        return min(left, max(1, min(most, share // (2 * self.pool.workers))))

    def make(self) -> Work | None:
        """The next call; None when there is none now. Its part stays in `redo`: see take()."""
        while not self.is_closed:
            if not self.redo and not self.cut():
                return None
            part = self.redo[0]
            try:
                return self.work_for(part)
            except BaseException as error:  # as in submit(): what cannot be pickled fails
                if is_of_signal(error):  # whoever is in here hears of it, and no item is lost
                    raise
                if isinstance(error, RecursionError) and not self.pool.port.is_own_thread:
                    raise TooDeep from None
                self.fail(part, error)
        return None

    def fail(self, part: Part, error: BaseException) -> None:
        """For one that could not be pickled, the first of `redo`."""
        if part.is_chunk:
            self.part_with(part, 0)
            at_once(partial(self.redo.remove, part))
            if part.set_running_or_notify_cancel():  # withdraw() may have taken it back
                part.set_result(([], {}, {}))
            return
        item = part.items[0]
        say_of_call(error, call_name(self.fn, item, {}), item, {})
        at_once(partial(self.redo.remove, part))
        if part.set_running_or_notify_cancel():
            counting.note_end(self.pool, part, None, error)
            part.set_exception(error)

    def take(self, work: Work, queue: Callable[[Work], None]) -> None:
        """Puts a call that make() gave into the pool's queue. With the pool's lock."""
        part: Any = work.future
        at_once(partial(self.redo.remove, part), partial(queue, work))
        if self.pool.counts and not part._is_counted:
            counting.note_out(self, part)

    def cut(self) -> bool:
        """Makes a part of the items that were taken; False when there are none."""
        count = self.next_count()
        items = self.items.look(count) if count else []
        if not items:
            return False
        is_chunk = count > 1
        part = Part(self, items, self.formed, is_chunk)
        steps = self.items.drop(len(items))
        if self.tell is None:
            steps.append(partial(self.calls.append, part))
        at_once(
            *steps,
            partial(self.redo.append, part),
            partial(setattr, self, "formed", self.formed + len(items)),
        )
        if is_chunk:
            self.chunk = len(items)
        return True

    def work_for(self, part: Part) -> Work:
        work = self.make_work(part)
        self.key = work.key
        self.items.item_bytes = work.size() / len(part.items)
        return work

    def part_with(self, part: Part, ran: int) -> None:
        """Makes calls of the items of a chunk beyond the first `ran`; one by one if none was."""
        if part.rest:  # done before a signal came
            return
        first, items = part.first + ran, part.items[ran:]
        rest = []
        if ran == 0:
            rest = [Part(self, [each], first + i, False) for i, each in enumerate(items)]
        elif items:
            rest = [Part(self, items, first, True)]
        at_once(partial(setattr, part, "rest", rest), partial(self.redo.extend, rest))

    def settle(self, work: Work, value: Any, error: BaseException | None) -> Outcome:
        """What the future of a part gets. The pool must be asked to feed itself afterwards."""
        part = work.future
        if not isinstance(part, Part) or not part.is_chunk or self.pool.has_ended_by(error):
            return value, error
        if error is None:
            self.part_with(part, len(value[0]))
        else:
            self.part_with(part, 0)
            value = [], {}, {}
        if part.rest:
            self.pool.sources.enlist(self)
        return value, None

    def withdraw(self, why: BaseException) -> None:
        """Makes no more calls, on behalf of the executor; whoever asks for more gets the error."""
        self.ended = why
        self.is_closed = True
        counting.drop_rest(self)
        if self.tell is not None:
            self.tell(None)
            return
        for part in list(self.redo):  # nobody makes calls of them; one may be waited for
            part._take_back()

    # For the thread that asks for results.

    def start(self) -> None:
        """Sends off as much as may be before anybody asks; what the iterable raises is raised."""
        try:
            self.pool.check_open()
            if self.items.is_lazy:
                self.refill()
            else:
                self.send()
            if self.items.failure is not None:
                raise self.items.failure
            if not self.items.is_at_end and self.items.ahead is None and self.tell is None:
                self.pool.sources.unasked.append(self)
        except BaseException:
            self.close()
            raise

    def send(self) -> None:
        self.pool.check_open()
        counting.note_items(self)
        self.pool.sources.enlist(self)
        self.pool.sources.feed()

    def send_all(self) -> None:
        """Takes the iterable to its end. Another thread may begin to ask for results meanwhile."""
        with self.pulling:
            if self.is_sent_off:  # by this thread: a signal's handler has come meanwhile
                return
            self.is_sent_off = True
            try:
                while not (self.items.is_at_end or self.is_closed):
                    self.items.pull_anyway()
                    self.send()
            finally:
                self.is_sent_off = False

    def refill(self, has_result: Callable[[], bool] = bool) -> None:
        """Takes items ahead, until there are enough of them or there is a result to go on with."""
        if self.is_sent_off and self.calls:  # another thread takes them; here is one to wait for
            return
        most = AHEAD_ITEMS_MIN * self.pool.workers  # by these the size of others is known
        may_repeat = self.items.is_lazy and not self.is_closed
        with self.pulling:
            while may_repeat:
                before = self.items.pulled
                may_repeat = self.items.pull(most) and not has_result()
                if self.items.pulled != before:
                    self.send()
                most = SLICE

    def is_over(self) -> bool:
        """Whether everything was given; raises what the iterable raised then."""
        if not self.items.is_over():
            if self.ended is not None:
                raise self.ended
            return False
        if self.items.failure is not None:
            raise self.items.failure
        return True

    def note_given(self, part: Part) -> None:
        self.items.given += len(part.items) - sum(len(each.items) for each in part.rest)

    def next_part(self, left: Callable[[], float | None]) -> Part | None:
        """The next one in order, when it is done; None: that was all."""
        self.pool.check_here()
        if not self.is_asked:
            self.is_asked = True
            self.pool.sources.note_asked(self)
        self.refill(lambda: bool(self.calls) and self.calls[0].done())
        while not self.calls:
            if self.is_over():
                return None
            if self.is_closed:  # by another thread: no more are made
                raise futures.CancelledError
            self.pool.sources.feed(self)  # also when workers have no room: to wait for
        self.asked = part = self.calls.popleft()
        if self.ended is not None:  # what runs goes on, also where cancel() would end it
            part._take_back()
        elif self.is_closed:  # by another thread: what has not begun never will
            part.cancel()
        try:
            part.exception(left())
        except BaseException as error:
            part.cancel()
            if self.ended is not None and isinstance(error, futures.CancelledError):
                raise self.ended from None  # what took the part back, a broken executor, say
            raise
        finally:
            self.asked = None  # which has this
        self.note_given(part)
        self.calls.extendleft(reversed(part.rest))
        return part

    def close(self) -> None:
        """Takes back what no worker has. Thread safety: any thread, besides the one that asks."""
        self.is_closed = True
        self.pool.sources.note_asked(self)
        for part in (*list(self.calls), self.asked):
            if part is not None:
                part.cancel()
        counting.drop_rest(self)


def time_left(timeout: float | None) -> Callable[[], float | None]:
    limit = wait_seconds(timeout)
    if limit is None:
        return lambda: None
    end = time.monotonic() + limit
    return lambda: max(0.0, end - time.monotonic())


def in_order(
    mapping: Mapping, left: Callable[[], float | None], keeps: Callable[[BaseException], bool]
) -> Iterator[Any]:
    """The results. keeps: whether an error is given as a value; others are raised."""
    try:
        while (part := mapping.next_part(left)) is not None:
            if part.is_plain():
                values = part.values()
                del part
                while values:
                    yield values.pop()
                continue
            for value, error in part.outcomes():
                if error is None:
                    last = [value]
                    del value
                    yield last.pop()  # nothing here keeps what the caller has got
                elif keeps(error):
                    yield error
                else:
                    raise error
    finally:
        # The calls have the mapping, and it the executor; what is raised has this frame.
        mapping.close()
        mapping.calls.clear()
        part = value = error = None


def _drop(_: Part | None) -> None:
    """For calls that end when nobody wants their outcome any more."""


def as_they_come(
    mapping: Mapping, finished: queue.SimpleQueue[Part | None], left: Callable[[], float | None]
) -> Iterator[tuple[int, Any]]:
    """(index, result or exception) of each item."""
    try:
        while True:
            mapping.pool.check_here()
            mapping.refill(lambda: not finished.empty())
            if mapping.is_over():
                return
            try:
                part = finished.get(timeout=left())
            except queue.Empty:
                raise futures.TimeoutError from None
            if part is not None:
                mapping.note_given(part)
                yield from part.numbered()
    finally:
        mapping.close()
        mapping.tell = _drop  # the calls have the mapping, and it the executor
        with contextlib.suppress(queue.Empty):
            while True:
                finished.get_nowait()
