"""Limits on the memory of calls."""

from __future__ import annotations

import functools
import resource
from typing import Any, Callable


def _data_bytes() -> int:
    """Private bytes that this process may write: what RLIMIT_DATA limits.

    Raises OSError where the system does not say: no /proc, or no file can be opened.
    """
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123
        for line in status.read().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) << 10
    return 0


def is_nearly_full() -> bool:
    """Whether this process has a limit, and three quarters of that are taken: by leaks, perhaps.

    A process that cannot look counts as full: it may have leaked files, too.
    """
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    try:
        return limit != resource.RLIM_INFINITY and _data_bytes() > limit // 4 * 3
    except OSError:
        return True


def _bytes_now() -> int:
    try:
        return _data_bytes()
    except OSError as error:
        text = f"options(memory=) limits a call by /proc/self/status: {error.strerror}"
        raise OSError(error.errno, text) from None


class Limited(functools.partial):  # type: ignore[type-arg]
    """A function whose calls may allocate so many bytes beyond what their process has.

    What goes beyond gets a MemoryError, or the null pointer of malloc(). A partial, so that
    messages name the function inside.
    """

    memory: int

    def __new__(cls, fn: Callable[..., Any], *args: Any, memory: int = 0, **kwargs: Any) -> Limited:
        self = super().__new__(cls, fn, *args, **kwargs)
        self.memory = memory
        return self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = _bytes_now() + self.memory
        for other in (soft, hard):
            if other != resource.RLIM_INFINITY:
                limit = min(limit, other)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            return super().__call__(*args, **kwargs)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
