"""Handles of what a Cluster has under way."""

from __future__ import annotations

import contextlib
import functools
import queue
import time
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LeveretError, Status, TaskFailed, TimeoutError
from .here import StaysHere

if TYPE_CHECKING:
    from .._core import Procedure
    from .driver import Driver
    from .job import Job


class Progress(NamedTuple):
    """How far something is. done, failed, total: elements; total is None while it is not known.

    pieces: slices that have landed. under_way: slices that are on their way or run. lost: times
    that a slice went with its node, and was sent again. nodes: those that have had a part in it.
    """

    done: int
    failed: int
    total: int | None
    pieces: int
    under_way: int
    lost: int
    nodes: tuple[str, ...]


class ClusterTicket(StaysHere):
    """The handle of a task on a Cluster, with the manners of a Ticket.

    It remembers its outcome: wait for it again and again, on any thread. The arrays of the task are
    kept alive until it is done. `await ticket` waits for it in a coroutine; one that is cancelled
    meanwhile cancels the task.
    """

    _instead = "wait for it here"

    def __init__(self, driver: Driver, job: Job, procedure: Procedure) -> None:
        self._driver = driver
        self._job = job
        self._procedure = procedure
        self._is_told = False

    @property
    def procedure(self) -> Procedure:
        """What was submitted."""
        return self._procedure

    def done(self) -> bool:
        """Whether it has its outcome."""
        return self._job.finished.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Waits until every slice has landed or failed; timeout in seconds.

        Raises the first failure: Poison, TaskFailed and the like, whose `elements` and `node` say
        where; everything else is done then. Unavailable when the engine cannot go on, Cancelled
        after cancel(), TimeoutError, which loses nothing.
        """
        _check_timeout(timeout)
        if not self._job.finished.wait(timeout):
            text = f"procedure '{self._procedure.name}' is not done: {self.progress()}"
            raise TimeoutError(text, Status.TIMED_OUT)
        self._is_told = True
        error = self._told()
        if error is not None:
            raise error

    def result(self, timeout: float | None = None) -> None:
        """As wait(): what a task on a Cluster makes is in its arrays."""
        self.wait(timeout)

    def __await__(self) -> Generator[Any, None, None]:
        return self._outcome().__await__()

    async def _outcome(self) -> None:
        import asyncio  # here: it takes longer to import than all of leveret

        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed, and nobody waits there
                loop.call_soon_threadsafe(wake)

        self._job.call_back(tell)
        try:
            await woken
        except asyncio.CancelledError:
            self.cancel()
            raise
        self.wait()

    def _told(self) -> BaseException | None:
        """The outcome, as a new exception: each wait() raises one of its own."""
        job = self._job
        found = job.outcome()
        if not isinstance(found, LeveretError):
            return found
        text = str(found)
        if job.error is None:
            count = len(job.failures)
            text += "; all others are done" if count == 1 else f" (the first of {count} failures)"
        made = type(found)(text, found.status)
        made.__dict__.update(found.__dict__)
        if isinstance(made, TaskFailed):
            made.failures = max(1, len(job.failures))
        made.__cause__ = found.__cause__
        return made

    @property
    def failures(self) -> list[BaseException]:
        """All failures so far, each with its `elements` and `node`."""
        return [each.error for each in list(self._job.failures)]

    @property
    def status_code(self) -> int:
        """The outcome as a number of leveret.Status, or pending."""
        if not self.done():
            return Status.PENDING
        found = self._job.outcome()
        if found is None:
            return Status.OK
        return found.status if isinstance(found, LeveretError) else Status.TASK_FAILED

    def cancel(self) -> bool:
        """Ends the task on all nodes. Returns False if it had its outcome already.

        Slices that wait are taken back, those that run are ended with their worker processes, and
        what has landed stays. wait() raises Cancelled. On an Executor, slices that run in other
        processes run to their end, and nothing of them is visible. Returns at once; any thread.
        """
        if self.done():
            return False
        self._is_told = True  # the end of a block need not tell what was asked for
        self._driver.cancel(self._job)
        return True

    end = cancel

    def progress(self) -> Progress:
        """How far it is. Cheap; any thread."""
        return progress_of([self._job])

    def __repr__(self) -> str:
        state = "done" if self.done() else "under way"
        done, _, total = self.progress()[:3]
        return f"<leveret.ClusterTicket of '{self._procedure.name}', {state}: {done} of {total}>"


def progress_of(jobs: Iterable[Job]) -> Progress:
    """The sum of several."""
    found = list(jobs)
    totals = [each.total for each in found]
    total = None if None in totals else sum(each for each in totals if each is not None)
    return Progress(
        sum(each.done for each in found),
        sum(each.failed for each in found),
        total,
        sum(each.pieces for each in found),
        sum(len(each.under_way) for each in found),
        sum(each.lost for each in found),
        tuple(sorted({node for each in found for node in list(each.nodes)})),
    )


def as_completed(
    tickets: ClusterTicket | Iterable[ClusterTicket], timeout: float | None
) -> Iterator[ClusterTicket]:
    """See Cluster.as_completed()."""
    if not isinstance(tickets, (ClusterTicket, Iterable)):
        kind = type(tickets).__name__
        raise TypeError(f"tickets must be a ticket of a Cluster or several, not {kind}")
    pending = dict.fromkeys([tickets] if isinstance(tickets, ClusterTicket) else tickets)
    ready: queue.SimpleQueue[ClusterTicket] = queue.SimpleQueue()
    for each in pending:
        if not isinstance(each, ClusterTicket):
            kind = type(each).__name__
            raise TypeError(f"tickets must be tickets of a Cluster, not {kind}")
    _check_timeout(timeout)
    for each in pending:
        each._job.call_back(functools.partial(ready.put, each))
    return _ready(len(pending), ready, None if timeout is None else time.monotonic() + timeout)


def _ready(count: int, ready: Any, ends: float | None) -> Iterator[ClusterTicket]:
    for number in range(count):
        left = None if ends is None else max(0.0, ends - time.monotonic())
        try:
            yield ready.get(timeout=left)
        except queue.Empty:
            text = f"{count - number} tickets are not complete"
            raise TimeoutError(text, Status.TIMED_OUT) from None


def _check_timeout(timeout: float | None) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not hasattr(timeout, "__float__"):
        raise TypeError(f"timeout must be None or a number of seconds, not {timeout!r}")
    if not timeout >= 0:
        raise ValueError(f"timeout must be None or a number of seconds >= 0, not {timeout}")
