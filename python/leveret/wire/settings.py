"""Settings of the interpreter that change what functions return: workers have the host's.

A program makes them at its beginning, in the main module, which does not run again in a worker: the
precision of decimal numbers, what NumPy does about a division by zero, how deep a recursion may go.
Only what is a plain value can be sent, and only libraries that are loaded have settings.
"""

from __future__ import annotations

import _locale
import contextlib
import importlib
import sys
from typing import Any, Callable, NamedTuple

Settings = dict[str, Any]  # by the names of _WAYS

_CONTEXT = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_PLAIN = (bool, int, float, str, type(None))


class _Way(NamedTuple):
    """How a setting of a module is asked for (None: it has none), and changed.

    new: what it is as the module is loaded. A module that is not is loaded for others; with None it
    is left alone.
    """

    module: str
    get: Callable[[Any], Any]
    change: Callable[[Any, Any], object]
    new: Any = None


def settings() -> Settings:
    """Those of the calling thread."""
    found: Settings = {}
    for name, way in _WAYS.items():
        module = sys.modules.get(way.module)
        with contextlib.suppress(Exception):  # a module of the program's that has such a name
            value = None if module is None else way.get(module)
            if value is not None:
                found[name] = value
    return found


def change_settings(new: Settings) -> Settings:
    """Changes those that differ; returns what they were."""
    before: Settings = {}
    for name, value in new.items():
        way = _WAYS[name]
        module = sys.modules.get(way.module)
        with contextlib.suppress(Exception):  # a locale, say, that is not here
            old = way.new if module is None else way.get(module)
            if module is None and old not in (None, value):
                module = importlib.import_module(way.module)
            if module is not None and old != value:
                way.change(module, value)
            if module is None or old != value:
                before[name] = old
    return before


def _decimal(decimal: Any) -> Any:
    """(attributes, names of the traps) of the context."""
    context = decimal.getcontext()
    traps = {kind.__name__ for kind, is_set in context.traps.items() if is_set}
    return tuple(getattr(context, name) for name in _CONTEXT), tuple(sorted(traps))


_NEW_CONTEXT = (
    (28, "ROUND_HALF_EVEN", -999999, 999999, 1, 0),
    ("DivisionByZero", "InvalidOperation", "Overflow"),
)


def _set_decimal(decimal: Any, value: Any) -> None:
    attributes, traps = value
    context = decimal.getcontext()
    for name, each in zip(_CONTEXT, attributes):
        setattr(context, name, each)
    for kind in context.traps:
        context.traps[kind] = kind.__name__ in traps


def _numpy_errors(numpy: Any) -> Any:
    # Errors that call a function, or log to one, are left to an initializer.
    return {k: v for k, v in numpy.geterr().items() if v not in ("call", "log")}


_NEW_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _numpy_printing(numpy: Any) -> Any:
    return {k: v for k, v in numpy.get_printoptions().items() if type(v) in _PLAIN}


def _arguments(_: Any) -> Any:
    arguments: Any = getattr(sys, "argv", None)
    is_plain = type(arguments) is list and all(type(each) is str for each in arguments)
    return list(arguments) if is_plain else None


def _set_arguments(_: Any, value: list[str]) -> None:
    sys.argv[:] = value


def _digits(_: Any) -> Any:
    get = getattr(sys, "get_int_max_str_digits", None)  # not in the first releases of 3.9 and 3.10
    return None if get is None else get()


_WAYS: dict[str, _Way] = {
    "recursion": _Way(
        "sys", lambda _: sys.getrecursionlimit(), lambda _, value: sys.setrecursionlimit(value)
    ),
    "digits": _Way("sys", _digits, lambda sys, value: sys.set_int_max_str_digits(value)),
    "decimal": _Way("decimal", _decimal, _set_decimal, _NEW_CONTEXT),
    "numpy errors": _Way(
        "numpy", _numpy_errors, lambda numpy, value: numpy.seterr(**value), _NEW_ERRORS
    ),
    "numpy printing": _Way(
        "numpy", _numpy_printing, lambda numpy, value: numpy.set_printoptions(**value)
    ),
    "socket": _Way(
        "_socket",
        lambda socket: (socket.getdefaulttimeout(),),
        lambda socket, value: socket.setdefaulttimeout(*value),
        (None,),
    ),
    "locale": _Way(
        _locale.__name__,
        lambda locale: locale.setlocale(locale.LC_ALL, None),
        lambda locale, value: locale.setlocale(locale.LC_ALL, value),
    ),
    "arguments": _Way("sys", _arguments, _set_arguments),
}
