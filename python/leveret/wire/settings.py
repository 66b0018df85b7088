"""Settings of the interpreter that change what functions return: workers have the host's.

A program makes them at its beginning, in the main module, which does not run again in a worker: the
precision of decimal numbers, what NumPy does about a division by zero, how deep a recursion may go.
Only what is a plain value can be sent, and only libraries that are loaded have settings.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable

Settings = dict[str, Any]  # by the names of _WAYS

_CONTEXT = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_PLAIN = (bool, int, float, str, type(None))


def settings() -> Settings:
    """Those of the calling thread."""
    found: Settings = {}
    for name, (get, _) in _WAYS.items():
        with contextlib.suppress(Exception):  # a module of the program's that has such a name
            value = get()
            if value is not None:
                found[name] = value
    return found


def change_settings(new: Settings) -> Settings:
    """Changes those that differ; returns what they were."""
    before: Settings = {}
    for name, value in new.items():
        get, change = _WAYS[name]
        with contextlib.suppress(Exception):  # a locale, say, that is not here
            old = get()
            if old != value:
                change(value)
                before[name] = _NEW.get(name) if old is None else old
    return before


def _decimal() -> Any:
    """(attributes, names of the traps) of the context, if it is not as decimal makes it."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None
    context = decimal.getcontext()
    traps = {kind.__name__ for kind, is_set in context.traps.items() if is_set}
    return tuple(getattr(context, name) for name in _CONTEXT), tuple(sorted(traps))


_NEW_CONTEXT = (
    (28, "ROUND_HALF_EVEN", -999999, 999999, 1, 0),
    ("DivisionByZero", "InvalidOperation", "Overflow"),
)


def _set_decimal(value: Any) -> None:
    if value == _NEW_CONTEXT and "decimal" not in sys.modules:
        return
    import decimal

    attributes, traps = value
    context = decimal.getcontext()
    for name, each in zip(_CONTEXT, attributes):
        setattr(context, name, each)
    for kind in context.traps:
        context.traps[kind] = kind.__name__ in traps


def _numpy_errors() -> Any:
    numpy = sys.modules.get("numpy")
    # Errors that call a function, or log to one, are left to an initializer.
    return None if numpy is None else {k: v for k, v in numpy.geterr().items() if v not in _ASKING}


_ASKING = ("call", "log")
_NEW_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _set_numpy_errors(value: Any) -> None:
    if value == _NEW_ERRORS and "numpy" not in sys.modules:
        return
    import numpy as np

    np.seterr(**value)


def _numpy_printing() -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    return {k: v for k, v in numpy.get_printoptions().items() if type(v) in _PLAIN}


def _set_numpy_printing(value: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.set_printoptions(**value)


def _socket_timeout() -> Any:
    socket = sys.modules.get("_socket")
    return None if socket is None else (socket.getdefaulttimeout(),)


def _set_socket_timeout(value: Any) -> None:
    if value != (None,) or "_socket" in sys.modules:
        import _socket

        _socket.setdefaulttimeout(*value)


def _locale() -> Any:
    import _locale

    return _locale.setlocale(_locale.LC_ALL, None)


def _set_locale(value: str) -> None:
    import _locale

    _locale.setlocale(_locale.LC_ALL, value)


def _arguments() -> Any:
    arguments: Any = getattr(sys, "argv", None)
    is_plain = type(arguments) is list and all(type(each) is str for each in arguments)
    return list(arguments) if is_plain else None


def _set_arguments(value: list[str]) -> None:
    sys.argv[:] = value


def _digits() -> Any:
    get = getattr(sys, "get_int_max_str_digits", None)  # not in the first releases of 3.9 and 3.10
    return None if get is None else get()


def _set_digits(value: int) -> None:
    getattr(sys, "set_int_max_str_digits")(value)  # noqa: B009


_WAYS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "digits": (_digits, _set_digits),
    "decimal": (_decimal, _set_decimal),
    "numpy errors": (_numpy_errors, _set_numpy_errors),
    "numpy printing": (_numpy_printing, _set_numpy_printing),
    "socket": (_socket_timeout, _set_socket_timeout),
    "locale": (_locale, _set_locale),
    "arguments": (_arguments, _set_arguments),
}
# What they are where their module is loaded only now.
_NEW: Settings = {"decimal": _NEW_CONTEXT, "numpy errors": _NEW_ERRORS, "socket": (None,)}
