"""Mappings that have calls to make: the pool asks them while workers have room.

One thread at a time makes calls, without the pool's lock: pickling runs code of the user's, which
may take locks that others hold in submit(). For the same reason no call is made within submit(),
which leaves that to the port's own thread. Calls that were submitted and those of mappings take
turns.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Closed, PoolDown
from ..interrupts import at_once
from .mapping import Mapping, TooDeep
from .work import Work

if TYPE_CHECKING:
    from .pool import Pool


# A maker that a signal has stopped tells nobody.
NOTICED_SECONDS = 0.05


class Sources:
    """Thread safety: any thread; what says so is for holders of the pool's lock."""

    def __init__(self, pool: Pool) -> None:
        self.pool: Pool = weakref.proxy(pool)  # which frees itself when it is closed
        self.queue: deque[Mapping] = deque()
        self.is_due = False  # whether the next call to be handed over is a mapping's
        self.maker: int | None = None  # the thread that makes calls
        self.made = threading.Condition(pool.lock)
        # Those whose iterable was not taken to its end, as nobody has asked for a result.
        self.unasked: list[Mapping] = []

    def renew(self) -> None:
        """In a child of os.fork(), where nothing is made any more."""
        self.queue.clear()
        self.unasked.clear()
        self.maker = None
        self.made = threading.Condition(self.pool.lock)

    def enlist(self, mapping: Mapping) -> None:
        with self.pool.lock:
            if not mapping.is_enlisted:
                at_once(
                    partial(setattr, mapping, "is_enlisted", True),
                    partial(self.queue.append, mapping),
                )

    def feed(self, forced: Mapping | None = None) -> None:
        """Has calls made while workers have room, or one at least for `forced`."""
        me = threading.get_ident()
        is_nested = self.maker == me  # a signal's handler has come while this thread makes a call
        try:
            while (mapping := self.next_maker(forced)) is not None:
                forced = None
                work = mapping.make()
                with self.pool.lock:
                    is_late = mapping.is_closed  # by a thread that has not seen this call
                    self.take_in(mapping, None if is_late else work)
                    if not is_nested:
                        self.maker = None
                        if mapping.is_closed:  # nobody makes its calls any more, which have it
                            mapping.redo.clear()
                    self.pump_if_nothing(work)
                if is_late and work is not None:
                    work.future.cancel()
            self.drain()
        except TooDeep:
            self.pool.port.leave(True)
        except BaseException:
            self.pool.leave_rest()
            raise
        finally:
            if self.maker == me and not is_nested:
                self.maker = None

    def leave(self) -> None:
        """As feed(), within submit(): the port's own thread makes the calls."""
        if self.queue:
            with self.pool.lock:
                is_due = self.due() is not None
            if is_due:
                self.pool.port.leave(True)  # at once: workers have room
        self.drain()

    def drain(self) -> None:
        """Delivers calls that ended while others were handed over here."""
        if self.pool.port.has_finished:
            self.pool.port.drain()

    def next_maker(self, forced: Mapping | None) -> Mapping | None:
        """Whom this thread is to have a call made."""
        if forced is None and not self.queue:  # the usual case
            return None
        pool = self.pool
        me = threading.get_ident()
        with pool.lock:
            if forced is not None:
                while self.maker not in (None, me):
                    self.made.wait(NOTICED_SECONDS)
                self.maker = me
                return forced
            mapping = self.due()
            if mapping is not None:
                self.maker = me
            return mapping

    def due(self) -> Mapping | None:
        """The one whose turn it is, if workers have room and no thread is at it. With the lock."""
        pool = self.pool
        if self.maker is not None or not self.queue:
            return None
        first = self.queue[0]
        if not pool.pace.has_room_for(len(pool.running), first.key, first.next_count()):
            return None
        return None if pool.waiting and not self.is_due else first

    def take_in(self, mapping: Mapping, work: Work | None) -> None:
        """After a call of make(). With the lock."""
        self.is_due = False
        if work is not None:
            self.pool.take_in(mapping, work)
        elif mapping.is_enlisted and (mapping.is_closed or mapping.next_count() == 0):
            at_once(
                partial(self.queue.remove, mapping),
                partial(setattr, mapping, "is_enlisted", False),
            )

    def pump_if_nothing(self, work: Work | None) -> None:
        """Hands over what was left to a mapping, if it had nothing. With the lock."""
        if work is None:
            self.pool.pump()
        self.made.notify_all()

    def withdraw(self, why: BaseException) -> None:
        """Has no more calls made. With the lock."""
        for mapping in (*self.queue, *self.unasked):
            mapping.is_enlisted = False
            mapping.withdraw(why)
        self.queue.clear()
        self.unasked.clear()

    def note_asked(self, mapping: Mapping) -> None:
        """Somebody asks for its results, or has closed it: it is kept no longer."""
        with contextlib.suppress(ValueError):
            self.unasked.remove(mapping)

    def send_unasked(self) -> None:
        """Takes the iterables to their ends: there will be no other time for it."""
        while True:
            try:
                mapping = self.unasked[-1]  # where withdraw() and another shutdown() find it
            except IndexError:  # another thread may have asked for the last one's results
                return
            if not (mapping.is_asked or mapping.is_closed):
                with contextlib.suppress(Closed, PoolDown):  # by another thread, or as it broke
                    mapping.send_all()
            self.note_asked(mapping)
