"""Exceptions on their way from a worker: of their own class, with the traceback as text."""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
from pickle import loads as _loads
from typing import Any

from ..said import shown, text_of
from .instead import Instead
from .pickling import _ReplyPickler, dumps


class RemoteTraceback(Exception):
    """The cause of an exception that came from a worker process: its traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def rebuilt(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any], text: str | None = None
) -> Any:
    """An exception without a call of its own constructor, only of Python's for its base.

    For those whose class cannot be called with their args alone.

    text: what its str() is, where that of its class needs what was left out.
    """
    base: Any = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    made = kind if text is None else _that_says(text, kind, args, state)
    error: BaseException = base.__new__(made, *args)
    base.__init__(error, *args)
    slots = _slots_of(kind)
    error.__dict__.update({name: each for name, each in state.items() if name not in slots})
    for name in slots.keys() & state.keys():
        with contextlib.suppress(AttributeError, TypeError):  # one of C that is only read
            slots[name].__set__(error, state[name])
    return error


def _slots_of(kind: type) -> dict[str, Any]:
    """What reads and sets the attributes that its classes have by __slots__."""
    return {
        name: each
        for base in reversed(kind.__mro__)
        if base.__module__ != "builtins"
        for name, each in vars(base).items()
        if type(each) is types.MemberDescriptorType
    }


class _Unnoted:
    """In front of another base: that one's __init_subclass__ does not run."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pass


def _that_says(text: str, kind: type[BaseException], *about: Any) -> type[BaseException]:
    """A class of the same name under this one."""
    own = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__str__": lambda error: text,
        "__reduce__": lambda error: (rebuilt, (kind, *about, text)),
    }
    # No code of the program's runs: a base or metaclass of its own may note each class by its name.
    made: type[BaseException] = type.__new__(type(kind), kind.__name__, (_Unnoted, kind), own)
    return made


def is_error(value: object) -> bool:
    return issubclass(type(value), BaseException)


_NOTHING = object()


def _as_read(value: Any) -> Any:
    """What comes of it when it is written and read again."""
    try:
        return _loads(dumps(value, 0, _ReplyPickler)[0])
    except BaseException:  # a __reduce__ may raise what it likes
        return _NOTHING


def _says(error: BaseException) -> bool:
    """Whether it has a str()."""
    try:
        str(error)
    except BaseException:
        return False
    return True


def _arrives(value: Any) -> bool:
    """Whether it can be written and read again, an exception as one that says what it says."""
    came = _as_read(value)
    return came is not _NOTHING and _is_as(came, value)


def _is_as(came: Any, value: Any) -> bool:
    """A constructor that makes a text of what it is given has made another one of that text.

    It is seen by the texts in args: str() may say addresses, times, or a set in another order.
    """
    met: set[int] = set()
    left = [(came, value)]
    while left:
        came, value = left.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        if is_error(value):
            if not is_error(came) or (_says(value) and not _says(came)):
                return False
            left += [(_args.__get__(came), _args.__get__(value)), (_grouped(came), _grouped(value))]
        elif type(value) in (list, tuple):
            if type(came) is not type(value) or _texts(came) != _texts(value):
                return False
            left += zip(came, value) if len(came) == len(value) else ()
    return True


_args: Any = vars(BaseException)["args"]


def _texts(values: list[Any] | tuple[Any, ...]) -> list[str]:
    return [each for each in values if type(each) is str]


def _grouped(error: BaseException) -> tuple[BaseException, ...]:
    group = getattr(builtins, "BaseExceptionGroup", None)  # from Python 3.11 on
    if group is None or not isinstance(error, group):
        return ()
    grouped: tuple[BaseException, ...] = group.exceptions.__get__(error)
    return grouped


def _portable(value: Any) -> Any:
    """The value, or as much of it as can be pickled."""
    if _arrives(value):
        return value
    if is_error(value):
        return _portable_error(value)
    if type(value) in (list, tuple):
        return type(value)(_portable(each) for each in value)
    return shown(value)


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """What the base's constructor takes: for errors about files that is more than args."""
    base: Any = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
    try:
        given = base.__reduce__(error)[1]
    except BaseException:
        return error.args
    return given if isinstance(given, tuple) else error.args


def _portable_error(error: BaseException) -> Any:
    kind = type(error)
    can_be_read = is_error(_as_read(error))  # with another text, then
    own = {**vars(error), **(_in_slots(error) if can_be_read else {})}
    state = {name: _portable(each) for name, each in own.items() if _as_read(each) is not _NOTHING}
    args = tuple(_portable(each) for each in _arguments(error))
    made = Instead(rebuilt, kind, args, state)
    came = _as_read(made)
    if not is_error(came):
        return error if can_be_read else _described(error)
    if _says(came) or not _says(error):
        return made
    left = ", ".join(name for name in own if name not in state)
    text = f"{error} (left out, as it cannot be pickled: {left})" if left else str(error)
    saying = Instead(rebuilt, kind, args, state, text)
    return saying if is_error(_as_read(saying)) else made


def _in_slots(error: BaseException) -> dict[str, Any]:
    found = {}
    for name, slot in _slots_of(type(error)).items():
        with contextlib.suppress(AttributeError):  # nothing is in it
            found[name] = slot.__get__(error)
    return found


def _described(error: BaseException) -> RuntimeError:
    name = type(error).__qualname__
    return RuntimeError(f"{name}: {text_of(error)} (an exception that cannot be pickled)")


def dump_error(error: BaseException, text: str) -> bytes:
    """In the worker: the pickle of (exception, traceback)."""
    BaseException.with_traceback(error, None)  # its class may not let its attributes be set
    try:
        portable = error if _arrives(error) else _portable_error(error)
    except BaseException:  # of an attribute of its own
        portable = _described(error)
    return dumps((portable, text), 0, _ReplyPickler)[0]


_cause: Any = vars(BaseException)["__cause__"]


def with_cause(error: Any, text: str) -> BaseException:
    """The exception with the traceback as its cause, whatever its class makes of attributes."""
    if not is_error(error):
        kind = type(error).__qualname__
        error = RuntimeError(f"an exception of the call's was read as {kind}: {shown(error)}")
    if type(error) is ModuleNotFoundError:
        _say_what_is_here(error)
    _cause.__set__(error, RemoteTraceback(text))
    made: BaseException = error
    return made


def _say_what_is_here(error: ModuleNotFoundError) -> None:
    """A module that is no plain one is not sent: a lazy one, say, or a Mock in its place."""
    kind = type(sys.modules.get(str(error.name)))
    if kind not in (type(None), types.ModuleType) and len(error.args) == 1:
        text = f"{error.msg}; here it is of type {kind.__qualname__!r}, which is not sent to"
        error.msg = f"{text} processes: have an initializer make it there"
        error.args = (error.msg,)


def load_error(pickled: bytes) -> BaseException:
    """In the host: the exception, with the traceback as its cause."""
    return with_cause(*_loads(pickled))
