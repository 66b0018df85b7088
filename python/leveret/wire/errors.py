"""Exceptions on their way from a worker: of their own class, with the traceback as text."""

from __future__ import annotations

import pickle
from typing import Any

from .pickling import _ReplyPickler, dumps


class RemoteTraceback(Exception):
    """The cause of an exception that came from a worker process: its traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class _Rebuilt:
    """Stands for an exception whose class cannot be called with its args alone."""

    def __init__(self, kind: type, args: tuple[Any, ...], state: dict[str, Any]) -> None:
        self.about = kind, args, state

    def __reduce__(self) -> Any:
        return rebuilt, self.about


def rebuilt(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """An exception without a call of its own constructor, only of Python's for its base."""
    base: Any = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    error: BaseException = base.__new__(kind, *args)
    base.__init__(error, *args)
    error.__dict__.update(state)
    return error


def _arrives(value: Any) -> bool:
    """Whether it can be written and read again."""
    try:
        pickle.loads(dumps(value, 0, _ReplyPickler)[0])
    except BaseException:  # a __reduce__ may raise what it likes
        return False
    return True


def _text(value: object) -> str:
    try:
        return str(value)
    except BaseException:
        return "<its str() failed>"


def _portable(value: Any) -> Any:
    """The value, or as much of it as can be pickled."""
    if _arrives(value):
        return value
    if isinstance(value, BaseException):
        return _portable_error(value)
    if type(value) in (list, tuple):
        return type(value)(_portable(each) for each in value)
    try:
        return repr(value)
    except BaseException:
        return f"<{type(value).__qualname__}>"


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
    state = {name: each for name, each in vars(error).items() if _arrives(each)}
    made = _Rebuilt(kind, tuple(_portable(each) for each in _arguments(error)), state)
    if _arrives(made):
        return made
    name = kind.__qualname__
    return RuntimeError(f"{name}: {_text(error)} (an exception that cannot be pickled)")


def dump_error(error: BaseException, text: str) -> bytes:
    """In the worker: the pickle of (exception, traceback)."""
    error.__traceback__ = None
    portable = error if _arrives(error) else _portable_error(error)
    return dumps((portable, text), 0, _ReplyPickler)[0]


def with_cause(error: BaseException, text: str) -> BaseException:
    error.__cause__ = RemoteTraceback(text)
    return error


def load_error(pickled: bytes) -> BaseException:
    """In the host: the exception, with the traceback as its cause."""
    return with_cause(*pickle.loads(pickled))
