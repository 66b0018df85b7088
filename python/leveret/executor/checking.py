"""Options and arguments that make no sense: an error that names them, before anything begins."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any

from ..errors import Status, Unavailable
from ..nearest import nearest
from ..wire.setup import Depth

WORKERS_MAX = 1024


def whole(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> int:
    """An integer, NumPy's too."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if not low <= number <= high:
        limits = f">= {low:.0f}" if high == math.inf else f"{low:.0f} to {high:.0f}"
        raise ValueError(f"{name} must be {limits}, not {value!r}")
    return number


def depth() -> None:
    """A module that opens an executor when it is imported does so in each of its workers, too."""
    if Depth.here >= Depth.most:
        text = f"an executor in a call of an executor, and so on, {Depth.most} deep: is it opened "
        raise Unavailable(
            text + "by a module that calls import? Put that under `if __name__ == '__main__':`",
            Status.UNAVAILABLE,
        )


SECONDS_MAX = 9e9  # what the system's waits can count; three centuries


def seconds(name: str, value: Any) -> float:
    """A number of seconds, NumPy's too; infinity is one."""
    is_text = isinstance(value, (str, bytes, bool))  # float() would take them
    try:
        if is_text:
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}") from None
    except OverflowError:  # an int
        return math.inf if value > 0 else -math.inf
    if math.isnan(number):
        raise ValueError(f"{name} must be a number of seconds, not {value!r}")
    return number


def wait_seconds(value: Any) -> float | None:
    """The timeout of a wait; None: for ever."""
    if value is None:
        return None
    number = seconds("timeout", value)
    return None if number > SECONDS_MAX else number


def function(value: Any) -> None:
    if not callable(value):
        raise TypeError(f"fn must be a callable, not {value!r}")


def yes_or_no(name: str, value: Any) -> bool:
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {value!r}")


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of some words; arrays and the like, which == compares item by item, are none."""
    if isinstance(value, str) and value in choices:
        return value
    words = " or ".join(map(repr, choices))
    hint = nearest(value, choices) if isinstance(value, str) else ""
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"{name} must be {words}, not {value!r}{hint}")


def workers(value: Any) -> int:
    number = whole("max_workers", value)
    if number <= 0:
        raise ValueError("max_workers must be greater than 0")  # as concurrent.futures says it
    if number > WORKERS_MAX:
        raise ValueError(f"max_workers must be at most {WORKERS_MAX}, not {value!r}")
    return number


def arguments(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        try:
            return tuple(value)
        except TypeError:  # as of an array without axes
            pass
    raise TypeError(f"{name} must be a tuple of arguments, not {value!r}")


def folder(cwd: Any) -> str | None:
    if cwd is None:
        return None
    try:
        name = os.fsencode(cwd)
    except TypeError:
        raise TypeError(f"cwd must be a path or None, not {cwd!r}") from None
    except UnicodeEncodeError:
        name = b"\0"
    if b"\0" in name:
        raise ValueError(f"cwd: no folder can be named {cwd!r}")
    path = os.path.realpath(os.fsdecode(name))
    if not os.path.isdir(path):  # noqa: PTH112
        raise NotADirectoryError(f"cwd: there is no folder {path!r}")
    return path


def sizes(chunksize: Any, buffersize: Any) -> tuple[int | None, int | None]:
    """Those of map()."""
    if chunksize is not None:
        chunksize = whole("chunksize", chunksize)
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
    if buffersize is not None:
        try:
            buffersize = whole("buffersize", buffersize)
        except TypeError:
            raise TypeError("buffersize must be an integer or None") from None  # as in Python 3.14
        if buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
    return chunksize, buffersize
