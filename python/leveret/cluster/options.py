"""Options of a Cluster and of its submit(), checked where they are given."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from ..nearest import nearest
from ..runtime import nanoseconds
from .job import Job
from .names import NodeSettings
from .ticket import ClusterTicket

# Of a ProcessExecutor, but what a Cluster has itself, and what cannot reach the driver.
REFUSED = ("max_workers", "on_death", "on_progress", "mp_context", "worker_memory")


def _known() -> tuple[str, ...]:
    from ..executor import ProcessExecutor

    found = inspect.signature(ProcessExecutor).parameters
    own = ("processes", "worker_memory", "pool", "slice_seconds", "wait_for_nodes")
    return (*own, *(name for name in found if name not in (*own, *REFUSED)))


def check_integer(name: str, value: Any, least: int) -> None:
    """Raises TypeError and ValueError that name the option."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, not {value}")


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not 0 < value < 1e9:
        raise ValueError(f"{name} must be a number of seconds > 0, not {value!r}")


def checked_settings(settings: NodeSettings, slice_seconds: Any, wait_for_nodes: Any) -> None:
    """Raises TypeError and ValueError that name the option of a Cluster that makes no sense."""
    known = _known()
    for name, _ in settings.options:
        if name not in known:
            raise TypeError(f"Cluster has no option {name!r}{nearest(name, known)}")
    check_integer("processes", settings.processes, 0)
    if settings.worker_memory is not None:
        check_integer("worker_memory", settings.worker_memory, 0)
    if settings.pool is not None and not isinstance(settings.pool, str):
        raise TypeError(f"pool must be a name or None, not {settings.pool!r}")
    _check_seconds("slice_seconds", slice_seconds)
    _check_seconds("wait_for_nodes", wait_for_nodes)


def checked_submit(
    after: ClusterTicket | Iterable[ClusterTicket],
    priority: int,
    grain: int,
    task_timeout: float | None,
    max_attempts: int,
) -> tuple[tuple[Job, ...], dict[str, Any]]:
    """The jobs that must come before, and what nodes give to Runtime.submit()."""
    if not isinstance(after, Iterable) and not isinstance(after, ClusterTicket):
        raise TypeError(f"after must be tickets of a Cluster, not {type(after).__name__}")
    earlier = (after,) if isinstance(after, ClusterTicket) else tuple(after)
    for each in earlier:
        if not isinstance(each, ClusterTicket):
            raise TypeError(f"after must be tickets of a Cluster, not {type(each).__name__}")
    check_integer("priority", priority, -(2**31))
    check_integer("grain", grain, 0)
    check_integer("max_attempts", max_attempts, 0)
    nanoseconds(task_timeout, "task_timeout")
    given = {"task_timeout": task_timeout, "max_attempts": max_attempts}
    return tuple(each._job for each in earlier), {k: v for k, v in given.items() if v}
