"""Exceptions of signal handlers, which come up in the middle of whatever the main thread does.

Python runs a handler between two instructions of the main thread, mostly where a call has returned:
what the call gave is lost then, if nothing else has it. So what must not be lost is looked at where
it is, and taken away by at_once() with what takes its place.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any


def _code_of(handler: Any) -> Any:
    """Of the function that runs: handlers are functions, methods, partials, or can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = vars(type(handler)).get("__call__")
    return getattr(handler, "__code__", None)


def is_of_signal(error: BaseException) -> bool:
    """Whether a signal's handler has raised it, as far as its traceback shows."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    codes = {_code_of(signal.getsignal(each)) for each in signal.valid_signals()}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def is_interrupted() -> bool:
    """Whether the program ends because nobody has caught a Ctrl-C."""
    last = getattr(sys, "last_type", None)
    is_asked = hasattr(sys, "ps1") or sys.flags.interactive
    return not is_asked and isinstance(last, type) and issubclass(last, KeyboardInterrupt)


class LoopInterrupts:
    """Ctrl-Cs in a `with` block that asyncio.run() turns into a cancellation of its main task.

    It does so from Python 3.11 on, and raises KeyboardInterrupt when all is over. Nothing else
    tells such a cancellation from that of a time-out, say.
    """

    def __init__(self) -> None:
        """Where the block begins."""
        handler = signal.getsignal(signal.SIGINT)
        is_loops = (
            isinstance(handler, functools.partial)
            and getattr(handler.func, "__name__", None) == "_on_sigint"
        )
        self._handler: Any = handler if is_loops else None
        self._before = self._count()

    def _count(self) -> int:
        runner = getattr(getattr(self._handler, "func", None), "__self__", None)
        return getattr(runner, "_interrupt_count", 0)

    def _have_come(self) -> bool:
        if self._count() == self._before:
            return False
        main = self._handler.keywords.get("main_task")
        cancelling = getattr(main, "cancelling", None)
        # A task that has taken its cancellation back (uncancel()) goes on.
        return cancelling is None or main.done() or cancelling() > 0

    def is_left_by_one(self, error: type[BaseException] | None) -> bool:
        """Whether a Ctrl-C is why an exception of this class leaves the block."""
        if error is None:
            return False
        if issubclass(error, KeyboardInterrupt):
            return True
        if not self._have_come():
            return False
        from asyncio import CancelledError  # here: it takes long to import, and is there

        return issubclass(error, CancelledError)

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Has a Ctrl-C raise KeyboardInterrupt: the loop stands still while this thread waits."""
        handler = self._handler
        now: Any = signal.getsignal(signal.SIGINT)
        has_signals = threading.current_thread() is threading.main_thread()
        if handler is None or now is not handler or not has_signals:
            yield
            return

        def interrupt(*about: Any) -> None:
            handler(*about)
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, interrupt)
        try:
            if self._have_come():  # in the block, and the program has awaited nothing since
                raise KeyboardInterrupt
            yield
        finally:
            signal.signal(signal.SIGINT, handler)


class NotOfSignal(contextlib.suppress):
    """As contextlib.suppress, but for what a signal's handler has raised."""

    def __exit__(self, *about: Any) -> bool:
        error = about[1]
        if error is not None and is_of_signal(error):
            return False
        return bool(super().__exit__(*about))


def raise_signals(error: BaseException) -> None:
    """For those who catch everything: what a signal's handler has raised is not for them."""
    if is_of_signal(error):
        raise error


def _of_lock(name: str) -> Any:
    return property(operator.attrgetter(f"_lock.{name}"))


class Condition(threading.Condition):
    """One whose lock no signal's handler leaves taken: `with` takes and gives it back in C.

    There is one for each call, and few are waited for: methods of the lock are looked up when they
    are asked for, where the base keeps them all.
    """

    __enter__, __exit__ = _of_lock("__enter__"), _of_lock("__exit__")
    acquire, release = _of_lock("acquire"), _of_lock("release")
    _is_owned, _release_save = _of_lock("_is_owned"), _of_lock("_release_save")
    _acquire_restore = _of_lock("_acquire_restore")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiters: deque[Any] = deque()

    def __getattr__(self, name: str) -> Any:
        """What the base of a later Python keeps of its lock, too."""
        return getattr(self._lock, name)

    def wait(self, timeout: float | None = None) -> bool:
        """Its caller has the lock afterwards, also where a handler comes before it is there."""
        try:
            return super().wait(timeout)
        except BaseException:
            lock: Any = self._lock
            if not lock._is_owned():
                lock.acquire()
            raise


_NEVER = object()


def at_once(*steps: functools.partial[Any]) -> None:
    """Runs all of these, with no signal's handler between them. They must be functions in C."""
    deque(map(functools.partial.__call__, steps), 0)


def dropped(items: deque[Any], count: int) -> functools.partial[Any]:
    """A step that drops so many items from the left; they must be there."""
    pops = itertools.islice(iter(items.popleft, _NEVER), count)
    return functools.partial(deque, pops, 0)
