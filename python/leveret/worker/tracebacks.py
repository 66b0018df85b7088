"""Tracebacks of calls that failed, as text."""

from __future__ import annotations

import itertools
import traceback
import types
from collections import deque
from collections.abc import Iterator

from ..said import shown

FRAMES_MAX = 200  # of an exception's; to write a million, of an endless recursion, takes a minute
_CHAIN_MAX = 1000
_HEAD = "Traceback (most recent call last):\n"
_HERE = __name__.rpartition(".")[0]  # the package


def describe(error: BaseException) -> str:
    """The traceback without the frames of this package; of a deep one its end."""
    try:
        return _described(error)
    except BaseException as other:  # a __str__, say, may raise what it likes
        return f"{type(error).__qualname__} (its traceback cannot be written: {shown(other)})\n"


def _described(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_HERE):
        trace = trace.tb_next
    is_deep = any(map(_is_deep, (trace, *(each.__traceback__ for each in _chain(error)))))
    limit = -FRAMES_MAX if is_deep else None
    if is_deep and trace is not None:  # before others walk it, which takes longer
        trace = deque(_frames(trace), FRAMES_MAX)[0]
    text = "".join(traceback.format_exception(type(error), error, trace, limit))
    if is_deep:
        text = text.replace(_HEAD, f"Traceback (most recent call last; the last {FRAMES_MAX}):\n")
    return text


def _frames(trace: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_deep(trace: types.TracebackType | None) -> bool:
    return next(itertools.islice(_frames(trace), FRAMES_MAX, None), None) is not None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Its causes and contexts."""
    following = _before(error)
    for _ in range(_CHAIN_MAX):
        if following is None:
            return
        yield following
        following = _before(following)


def _before(error: BaseException) -> BaseException | None:
    return error.__cause__ if error.__cause__ is not None else error.__context__
