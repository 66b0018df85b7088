"""What a call fails with when its worker process ended, or its exception came from there."""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING

from ..errors import (
    Closed,
    LeveretError,
    Overran,
    PoolDown,
    Status,
    TaskFailed,
    WorkerDied,
    make_error,
)
from ..said import said_error
from ..wire.errors import RemoteTraceback as RemoteTraceback
from .mortem import how_it_ended

if TYPE_CHECKING:
    from .work import Work


class BrokenExecutor(PoolDown, futures.BrokenExecutor):
    """The executor runs no more calls: its initializer failed, or its workers die at once."""


def closed_by_fork() -> Closed:
    """What an executor of the parent answers in a child of os.fork()."""
    text = "this executor was made before os.fork(); make one in this process"
    return Closed(text, Status.CLOSED)


def why_down(text: str) -> str:
    """Why workers cannot be kept alive, of what the runtime says; it may have had no memory."""
    return text.partition("; open a new runtime")[0] or "worker processes die as they start"


def failure_of(
    work: Work, max_attempts: int, status: Status, task_code: int, text: str
) -> LeveretError:
    """The exception for a call whose task failed."""
    name = work.name()
    last = work.deaths[-1] if work.deaths else None
    how = last.how_it_ended() if last is not None else how_it_ended(task_code)
    if last is not None and last.whose:
        how += f", {last.whose}"
    if status == Status.POISON:
        text = f"{name} ended its worker process on each of {max_attempts} attempts: "
        text += f"{how}; other calls are not affected"
    elif status == Status.WORKER_DIED:
        text = f"{name} ended its worker process: {how}; retry=False, so it was not run again"
    elif status == Status.OVERRAN:
        seconds = f"{work.seconds_max():.9f}".rstrip("0").rstrip(".")
        text = f"{name} ran longer than its timeout of {seconds} s, and its worker was killed"
        if last is not None and last.in_initializer:
            text += " while it ran the initializer, which is part of a process's first call"
    else:
        text = f"{name}: {text or status.name.lower()}"
    made = make_error(status, text, -1, task_code, 1)
    if isinstance(made, (WorkerDied, Overran)) and last is not None and last.traceback:
        made.traceback = last.traceback
        made.__cause__ = RemoteTraceback(last.traceback + "\n")
    return made


def unreadable(name: str, error: BaseException) -> TaskFailed:
    """The exception for a call whose result cannot be unpickled here."""
    text = f"{name}: its result cannot be unpickled: {said_error(error)}"
    made = TaskFailed(text, Status.TASK_FAILED)
    made.__cause__ = error
    return made


def overwritten(name: str) -> TaskFailed:
    """The exception for a call whose reply is not as its worker wrote it."""
    return TaskFailed(
        f"{name}: its reply was overwritten on the way; it, or another call, writes outside of its "
        "memory",
        Status.TASK_FAILED,
    )
