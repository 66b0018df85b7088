"""The future of a call.

Its value is set on whatever thread is in the runtime when the call ends; its callbacks run on the
executor's own thread. Only those that there are too late for, as the call is done, or that
cancel() calls, run on their caller's, as concurrent.futures has it; and those of a future that
shutdown() cancels when that thread has ended, on the one that closes the executor, or cancels.
"""

from __future__ import annotations

import threading
import time
from concurrent import futures
from concurrent.futures._base import LOGGER
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from .. import _core
from ..interrupts import Condition
from .checking import wait_seconds
from .counting import note_taken_back
from .ending import end_call
from .failures import closed_by_fork
from .options import DEFAULTS, CallOptions

if TYPE_CHECKING:
    from .ends import End
    from .mapping import Mapping
    from .pool import Pool

Result = TypeVar("Result")


# Python 3.9 to 3.13; a later one may have more.
_IS_BASE_KNOWN = vars(futures.Future()).keys() == {
    "_condition",
    "_state",
    "_result",
    "_exception",
    "_waiters",
    "_done_callbacks",
}


class Future(futures.Future[Result]):
    """A future whose waiter looks after the runtime itself, which is quicker than to be woken."""

    # Of the base.
    _condition: Any
    _state: str
    _result: Any
    _exception: BaseException | None
    _waiters: list[Any]
    _done_callbacks: list[Any]

    _call: _core.Call | None = None
    _pool: Pool | None = None
    _left: End | None = None  # the call has ended, and its reply is left for whoever waits
    _is_withdrawn = False
    _is_counted = False  # on_progress knows of its end; with the pool's lock
    mapping: Mapping | None = None  # whose part it is
    _asked: CallOptions = DEFAULTS

    def __init__(self) -> None:
        if _IS_BASE_KNOWN:  # its condition takes as long to make as all the rest
            self._state, self._result, self._exception = "PENDING", None, None
            self._waiters, self._done_callbacks = [], []
        else:
            super().__init__()
        self._condition = Condition()

    def cancel(self) -> bool:
        """Cancels a call that has not begun; under cancel="kill" also one that runs.

        That one is ended with its process, in 1 to 3 ms; the future is cancelled at once.
        """
        return self._take_back() or (self._asked.kills and self._end(self._call))

    def _take_back(self) -> bool:
        """Cancels a call that has not begun; False: it has."""
        if not super().cancel():
            return False
        note_taken_back(self)
        return True

    def _end(self, call: _core.Call | None) -> bool:
        """Cancels a call that runs; False if it is done."""
        pool = self._pool
        if pool is not None and end_call(pool, call):
            self._note_end()
        return self.cancelled()

    def _note_end(self) -> None:
        """Cancels a call that was told to end; its caller, or the call's end, comes first."""
        condition = self._condition
        with condition:
            if self._state != "RUNNING":
                return
            self._state = "CANCELLED"
            condition.notify_all()
        self._is_withdrawn = True
        self._begin()
        self._invoke_callbacks()

    def _counted(self, value: Any, error: BaseException | None) -> tuple[int, int]:
        """How many calls have ended with this, and how many of them failed."""
        return 1, int(error is not None)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a future, which belongs to this process: send its result()")

    def add_done_callback(self, fn: Callable[[futures.Future[Result]], object]) -> None:
        super().add_done_callback(fn)
        call = self._call
        if call is not None:
            call.set_urgent()

    def _begin(self) -> bool:
        """As set_running_or_notify_cancel(), but more than once: whether the call may run."""
        with self._condition:
            if self._state == "CANCELLED":
                self._state = "CANCELLED_AND_NOTIFIED"
                for waiter in self._waiters:
                    waiter.add_cancelled(self)
            elif self._state == "PENDING":
                self._state = "RUNNING"
            return self._state == "RUNNING"

    def _settle(self, value: Any, error: BaseException | None) -> None:
        """As set_result() or set_exception(), but for a future that is done, which stays so."""
        condition = self._condition
        with condition:
            if self._state not in ("RUNNING", "PENDING"):
                return
            self._result, self._exception = value, error
            self._state = "FINISHED"
            for waiter in self._waiters:
                (waiter.add_result if error is None else waiter.add_exception)(self)
            if condition._waiters:
                condition.notify_all()
        self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        if not self._done_callbacks:
            return
        pool = self._pool
        if pool is not None and (self._state == "FINISHED" or self._is_withdrawn):
            pool.hand_over(self)
        else:
            self._run_callbacks()

    def _is_awaited(self) -> bool:
        """Whether the call's end is to be told to somebody who is not in the runtime."""
        return bool(self._done_callbacks)

    def _run_callbacks(self) -> None:
        super()._invoke_callbacks()  # type: ignore[misc]

    def _call_back(self, is_left: Callable[[], bool]) -> None:
        """_run_callbacks() on the executor's own thread: not in a child that one of them forks."""
        for each in self._done_callbacks:
            try:
                each(self)
            except Exception:
                LOGGER.exception("exception calling callback for %r", self)
            if is_left():
                return

    def _withdraw(self) -> None:
        """Cancels a call on behalf of the executor."""
        self._is_withdrawn = True
        self.cancel()
        self._begin()

    def _leave_to_parent(self) -> None:
        """In a child of os.fork(), where the call's end is never told: this one ends."""
        self._condition = Condition()  # another thread may have had its lock
        if self._state not in ("PENDING", "RUNNING"):
            return
        self._exception, self._state = closed_by_fork(), "FINISHED"
        self._call = self._pool = None
        self._done_callbacks = []  # of the parent
        for waiter in self._waiters:  # an as_completed() under way
            waiter.lock, waiter.event = threading.Lock(), threading.Event()
            waiter.add_exception(self)

    def _look_after(self, timeout: float | None) -> float | None:
        """Waits for a call that is under way; returns what is left of the time."""
        pool, call = self._pool, self._call
        if pool is not None and pool.is_left():
            self._leave_to_parent()
        if call is None or pool is None or self._state != "RUNNING":
            return timeout
        end = 0.0 if timeout is None else time.monotonic() + timeout
        if timeout is None or timeout > 0:
            pool.port.wait(call, timeout)
        left = self._left
        if left is not None:
            pool.ends.read_for_waiter(left)
        if timeout is None:
            return None
        return max(0.0, end - time.monotonic())

    def result(self, timeout: float | None = None) -> Result:
        if self._state == "FINISHED" and self._exception is None:
            return self._result  # type: ignore[no-any-return]
        try:
            result = super().result(self._look_after(wait_seconds(timeout)))
            if self._exception is not None:  # whose bool() is False: the base takes it for none
                raise self._exception
            return result
        finally:
            del self  # which has the exception that has this frame

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return super().exception(self._look_after(wait_seconds(timeout)))
