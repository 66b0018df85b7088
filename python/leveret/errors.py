"""What went wrong: one base class, with a status code that is the same in C++, C and Python.

Arguments that do not fit raise Python's own TypeError, ValueError, OverflowError or BufferError;
what the runtime refuses or a task suffers raises a class of this module.
"""

from __future__ import annotations

import builtins
import enum
import re


class Status(enum.IntEnum):
    """Status codes, as in <leveret/status.hpp>."""

    OK = 0
    PENDING = 1
    WOULD_BLOCK = 2
    TIMED_OUT = 3
    CANCELLED = 4
    TASK_FAILED = 5
    DEPENDENCY_FAILED = 6
    BAD_PROCEDURE = 7
    BAD_ARGUMENT = 8
    BAD_ARGUMENT_COUNT = 9
    TOO_BIG = 10
    BAD_ADDRESS = 11
    BAD_RANGE = 12
    OVERLAP = 13
    STALE_TICKET = 14
    BAD_TICKET = 15
    CLOSED = 16
    WOULD_DEADLOCK = 17
    DICE_LOOP = 18
    UNAVAILABLE = 19
    EXISTS = 20
    BAD_CONFIG = 21
    OUT_OF_MEMORY = 22
    TOO_DEEP = 23
    NOT_SUPPORTED = 24
    BAD_FILTER = 25
    POISON = 26
    WORKER_DIED = 27
    OVERRAN = 28
    POOL_DOWN = 29
    NOT_IN_TASK = 30
    TOO_MANY_CONTEXTS = 31
    TOO_LATE = 32


class LeveretError(Exception):
    """Base of all errors of the runtime.

    status: what happened. argument: position of the argument at fault among those the caller
    passed, counted from 0, or None.
    """

    def __init__(
        self,
        message: str = "",
        status: Status = Status.BAD_ARGUMENT,
        argument: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.argument = argument

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, which else gives the constructor the message alone."""
        return type(self), (str(self), self.status, self.argument), self.__dict__


class TaskFailed(LeveretError):
    """A procedure returned a code other than 0, or threw.

    code: what it returned, else 0. failures: how many tasks failed, of a bulk or of wait_all().
    elements: begin and end of those elements of sliced arrays that are not done, where they are
    known: of Poison, WorkerDied and Overran. node: of a Cluster's task or call, where it was.
    """

    code: int = 0
    failures: int = 1
    elements: tuple[int, int] | None = None
    node: str | None = None


class DependencyFailed(TaskFailed):
    """A task named in after= did not end well; this one did not run."""


class WorkerDied(TaskFailed):
    """The task's worker process died in it, and it must not be run again.

    code: minus the signal's number, or what the process gave to exit(). traceback: of a call of a
    ProcessExecutor, where it was, as faulthandler tells; None: nothing is known (it called exit(),
    or was killed).
    """

    traceback: str | None = None


class Poison(WorkerDied):
    """The task's worker process died in it on every attempt. Other tasks are not affected."""


class Overran(TaskFailed, builtins.TimeoutError):
    """The task ran longer than its time limit, and its worker process was killed.

    traceback: of a call of a ProcessExecutor, where it was then; None: nothing is known.
    """

    traceback: str | None = None


class PoolDown(LeveretError, RuntimeError):
    """Worker processes die as soon as they start. No task runs any more: open a new runtime."""


class Cancelled(LeveretError):
    """The task was cancelled before it ran, or ended while it did."""


class TimeoutError(LeveretError, builtins.TimeoutError):
    """The time given to a wait is over. Nothing was consumed: wait again."""


class WouldBlock(LeveretError):
    """All tickets are in use, and the runtime was opened with full='fail'."""


class InvalidArgument(LeveretError, ValueError):
    """The runtime refused a task, a name or an option; the message says what to change."""


class Closed(LeveretError, RuntimeError):
    """The runtime is closing or closed."""


class WouldDeadlock(LeveretError, RuntimeError):
    """The call waits for itself."""


class Unavailable(LeveretError, RuntimeError):
    """The machine, or what was asked of it, does not work here."""


class OutOfMemory(LeveretError, MemoryError):
    """Memory could not be reserved."""


Error = LeveretError

CLASSES: dict[Status, type[LeveretError]] = {
    Status.WOULD_BLOCK: WouldBlock,
    Status.TIMED_OUT: TimeoutError,
    Status.CANCELLED: Cancelled,
    Status.TASK_FAILED: TaskFailed,
    Status.DEPENDENCY_FAILED: DependencyFailed,
    Status.BAD_PROCEDURE: InvalidArgument,
    Status.BAD_ARGUMENT: InvalidArgument,
    Status.BAD_ARGUMENT_COUNT: InvalidArgument,
    Status.TOO_BIG: InvalidArgument,
    Status.BAD_ADDRESS: InvalidArgument,
    Status.BAD_RANGE: InvalidArgument,
    Status.OVERLAP: InvalidArgument,
    Status.CLOSED: Closed,
    Status.WOULD_DEADLOCK: WouldDeadlock,
    Status.TOO_DEEP: WouldDeadlock,
    Status.UNAVAILABLE: Unavailable,
    Status.NOT_SUPPORTED: Unavailable,
    Status.EXISTS: InvalidArgument,
    Status.BAD_CONFIG: InvalidArgument,
    Status.OUT_OF_MEMORY: OutOfMemory,
    Status.POISON: Poison,
    Status.WORKER_DIED: WorkerDied,
    Status.OVERRAN: Overran,
    Status.POOL_DOWN: PoolDown,
}


_ELEMENTS = re.compile(r"' at elements \[(\d+), (\d+)\)")  # behind the procedure's name


def make_error(
    code: int, message: str, argument: int, task_code: int, failures: int
) -> LeveretError:
    """Makes the exception for a status of the extension module, which raises it."""
    status = Status(code)
    made = CLASSES.get(status, LeveretError)(
        message or status.name.lower(), status, argument if argument >= 0 else None
    )
    if isinstance(made, TaskFailed):
        made.code = task_code
        made.failures = max(failures, 1)
        found = _ELEMENTS.search(message)
        made.elements = (int(found[1]), int(found[2])) if found else None
    return made
