"""How messages name a call: by the user's function, whatever it was wrapped in on its way here."""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Iterator
from typing import Any

from ..interrupts import NotOfSignal
from ..said import name_of, shown, text_of

_Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def call_name(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The call as the user would write it, with short arguments."""
    with NotOfSignal(BaseException):  # a wrapper that is not what it seems names itself
        function, args, kwargs = _unwrapped(function, args, kwargs)
    if issubclass(type(function), str):
        return text_of(function)
    words = [_short(each) for each in args]
    words += [f"{key}={_short(each)}" for key, each in kwargs.items()]
    return f"{name_of(function) or _short(function)}({', '.join(words)})"


def _unwrapped(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    """The function inside of partials and of what other libraries wrap calls in."""
    call = (function, args, kwargs)
    while (inner := _inner(*call)) is not None:
        call = inner
    return call


def _inner(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
    """The call that this one makes, if it is only a wrapper of one."""
    if isinstance(function, functools.partial):
        return function.func, (*function.args, *args), {**function.keywords, **kwargs}
    carried = getattr(args[0], "carried_call", None) if args else None
    if callable(carried):  # an argument that carries calls knows which one this is
        found: _Call | None = carried(*args[1:])
        return found
    items = getattr(function, "items", None)
    if type(function).__name__ == "BatchedCalls" and items and len(items) == 1:  # of joblib
        return items[0][0], tuple(items[0][1]), dict(items[0][2])
    if getattr(function, "__module__", "").partition(".")[0] in ("dask", "distributed"):
        return _inner_of_dask(function, args, kwargs)
    return None


def _inner_of_dask(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
    """Dask calls a user's function by apply(function, args, kwargs), or as a task, maybe with data.

    A task is a tuple (function, *args), or an object with `func`, `args` and `kwargs`.
    """
    name = getattr(function, "__name__", "")
    if name.startswith("apply") and args and callable(args[0]):
        given = [each for each in args[1:3] if isinstance(each, (tuple, list))]
        by_name = [each for each in args[1:3] if isinstance(each, dict)]
        return args[0], tuple(given[0]) if given else (), dict(by_name[0]) if by_name else kwargs
    task = args[0] if args and hasattr(function, "__code__") else function
    if hasattr(task, "func") and hasattr(task, "args"):
        return task.func, tuple(task.args), dict(getattr(task, "kwargs", {}))
    if isinstance(task, tuple) and task and callable(task[0]):
        return task[0], task[1:], {}
    return None


SHOWN_MAX = 60  # characters of an argument
OBJECTS_MAX = 100_000  # in a repr() that is not cut: about 0.1 s
LOOKED_AT_MAX = 10_000  # objects whose contents are looked at
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
}


def _short(value: object) -> str:
    """The begin of its repr(). Of a container only so much is looked at: in a few lists and dicts,
    each in the next one more than once, there is a text without end.
    """
    text = ""
    with NotOfSignal(BaseException):  # a container that changes meanwhile
        for piece in _pieces(value, []):
            text += piece
            if len(text) > SHOWN_MAX:
                break
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


def _pieces(value: Any, around: list[Any]) -> Iterator[str]:
    kind: type = type(value)
    if (kind is str or kind is bytes) and len(value) > SHOWN_MAX:
        yield shown(value[: SHOWN_MAX + 1])
        return
    if kind not in _BRACKETS or not value:
        yield (
            f"<{kind.__qualname__}: its repr() is too long>" if _is_endless(value) else shown(value)
        )
        return
    opening, closing = _BRACKETS[kind]
    if any(each is value for each in around):
        yield f"{opening}...{closing}"
        return
    yield opening
    between = ""
    for each in value:
        yield between
        between = ", "
        yield from _pieces(each, [*around, value])
        if kind is dict:
            yield ": "
            yield from _pieces(value[each], [*around, value])
    yield f",{closing}" if kind is tuple and len(value) == 1 else closing


# Their repr() shows nothing of what is in them.
_BARE = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType,
    types.FrameType, types.TracebackType, types.GeneratorType, types.CoroutineType,
)  # fmt: skip


def _is_endless(value: Any) -> bool:
    """Whether a repr() that shows all that is in it shows few objects again and again: each is in
    others more than once, and those are in others.
    """
    counts: dict[int, int] = {}  # by id(): how many objects are shown for it; 0 within itself
    inside: dict[int, list[Any]] = {}
    left = [value]
    while left:
        each = left[-1]
        if id(each) not in inside:
            found = _inside(each) if len(inside) < LOOKED_AT_MAX else []
            inside[id(each)] = found
            left += [other for other in found if id(other) not in inside]
            continue
        left.pop()
        count = 1 + sum(counts.get(id(other), 0) for other in inside[id(each)])
        counts[id(each)] = count
        if count > OBJECTS_MAX and count > 10 * len(inside):
            return True
    return False


def _inside(value: Any) -> list[Any]:
    kind: type = type(value)
    is_bare = type.__getattribute__(kind, "__repr__") is object.__repr__
    if is_bare or issubclass(kind, _BARE):
        return []
    return [each for each in gc.get_referents(value) if each is not kind]
