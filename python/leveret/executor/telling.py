"""The user's callbacks on deaths and progress, on a thread of their own."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..interrupts import Condition
from .notes import report_error

if TYPE_CHECKING:
    from .mortem import Death

OnDeath = Callable[[Optional[str], int, int, Optional[str]], object]
OnProgress = Callable[[int, int, int], object]

END_SECONDS_MAX = 5.0  # close() waits so long for callbacks


class Telling:
    """Calls what is to be told; one at a time, in order, and never on a thread of the user's.

    Of progress only the latest is told when it comes faster than the callback takes.
    """

    def __init__(self, on_death: OnDeath | None, on_progress: OnProgress | None) -> None:
        for name, given in (("on_death", on_death), ("on_progress", on_progress)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be a callable, not {given!r}")
        self.on_death = on_death
        self.on_progress = on_progress
        self.total = self.done = self.failed = 0  # calls; in a map(), items
        self.queue: deque[tuple[Any, ...]] = deque()
        self.news = Condition()
        self.has_progress = False
        self.is_closing = False
        self.thread: threading.Thread | None = None
        self.pid = os.getpid()

    def add(self, calls: int) -> None:
        """So many calls, or items, were given. With the pool's lock, as what follows."""
        self.total += calls

    def end(self, done: int, failed: int) -> None:
        """So many have ended, some of which failed."""
        with self.news:
            self.done += done
            self.failed += failed
            self.has_progress = True
            self._wake()

    def take_back(self, calls: int) -> None:
        """So many that were given never begin. With the pool's lock."""
        with self.news:
            self.total -= calls
            self.has_progress = True
            self._wake()

    def tell_death(self, death: Death, name: str | None, attempt: int) -> None:
        """One death, in the call of that name, on its attempt of that number; None, 0: in none."""
        if self.on_death is None:
            return
        with self.news:
            self.queue.append((name, death.signal, attempt, death.traceback or None))
            self._wake()

    def _wake(self) -> None:
        if self.thread is None and not self.is_closing:
            self.thread = threading.Thread(target=self._run, name="leveret-teller", daemon=True)
            try:
                self.thread.start()
            except RuntimeError:  # no room for a thread now: the next one to come here starts it
                self.thread = None
        self.news.notify()

    def _run(self) -> None:
        while True:
            with self.news:
                while not self.queue and not self.has_progress:
                    if self.is_closing:
                        return
                    self.news.wait()
                death = self.queue.popleft() if self.queue else None
                progress = None
                if death is None:
                    self.has_progress = False
                    progress = (self.done, self.failed, self.total)
            if death is not None:
                self._call(self.on_death, death)
            elif progress is not None:
                self._call(self.on_progress, progress)

    def _call(self, callback: Any, args: tuple[Any, ...]) -> None:
        try:
            callback(*args)
        except BaseException as error:
            report_error(error, callback)
        if os.getpid() != self.pid:
            os._exit(0)  # a child that the callback has forked comes back: nobody is here

    @property
    def is_own_thread(self) -> bool:
        return threading.current_thread() is self.thread

    def close(self) -> None:
        """Waits until everything was told, but not for ever."""
        with self.news:
            if self.queue or self.has_progress:
                self._wake()
            self.is_closing = True
            self.news.notify()
        thread = self.thread
        if thread is None or self.is_own_thread or not thread.is_alive():
            return
        thread.join(END_SECONDS_MAX)
