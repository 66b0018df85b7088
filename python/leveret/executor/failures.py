"""What a call fails with when its worker process ended, or its exception came from there."""

from __future__ import annotations

import signal
from concurrent import futures
from typing import TYPE_CHECKING

from ..errors import LeveretError, PoolDown, Status, TaskFailed, make_error
from ..wire.errors import RemoteTraceback as RemoteTraceback

if TYPE_CHECKING:
    from .work import Work


class BrokenExecutor(PoolDown, futures.BrokenExecutor):
    """The executor runs no more calls: its initializer failed, or its workers die at once."""


def how_it_ended(task_code: int) -> str:
    if task_code < 0:
        known = {s.value: f" ({s.name})" for s in signal.Signals}
        return f"signal {-task_code}{known.get(-task_code, '')}"
    return f"it called exit({task_code})" if task_code else "it was gone"


def failure_of(
    work: Work, max_attempts: int, status: Status, task_code: int, text: str
) -> LeveretError:
    """The exception for a call whose task failed."""
    name = work.name()
    if status == Status.POISON:
        text = f"{name} ended its worker process on each of {max_attempts} attempts: "
        text += f"{how_it_ended(task_code)}; other calls are not affected"
    elif status == Status.WORKER_DIED:
        text = f"{name} ended its worker process: {how_it_ended(task_code)}; retry=False, so it "
        text += "was not run again"
    elif status == Status.OVERRAN:
        text = f"{name} ran longer than the executor's timeout, and its worker was killed"
    else:
        text = f"{name}: {text or status.name.lower()}"
    return make_error(status, text, -1, task_code, 1)


def unreadable(name: str, error: BaseException) -> TaskFailed:
    """The exception for a call whose result cannot be unpickled here."""
    what = f"{type(error).__qualname__}: {error}"
    made = TaskFailed(f"{name}: its result cannot be unpickled: {what}", Status.TASK_FAILED)
    made.__cause__ = error
    return made


def overwritten(name: str) -> TaskFailed:
    """The exception for a call whose reply is not as its worker wrote it."""
    return TaskFailed(
        f"{name}: its reply was overwritten on the way; it, or another call, writes outside of its "
        "memory",
        Status.TASK_FAILED,
    )
