"""What objects of the program's say of themselves, for messages.

Their str(), repr() and attributes are code of the program's: they may raise what they like, and
whoever writes a message has something to end, to pass on or to report meanwhile.
"""

from __future__ import annotations

from .interrupts import raise_signals


def text_of(value: object) -> str:
    """Its str(), or what stands for it."""
    try:
        return str(value)
    except BaseException as error:
        raise_signals(error)
        return f"<{type(value).__qualname__}: its str() failed>"


def shown(value: object) -> str:
    """Its repr(), or what stands for it."""
    try:
        return repr(value)
    except BaseException as error:
        raise_signals(error)
        return f"<{type(value).__qualname__}: its repr() failed>"


def said_error(error: BaseException) -> str:
    """The class of an exception, and its text if it has one."""
    text = text_of(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


_OF_PYBIND11 = ("pybind11_detail_function_", "PyCapsule.")  # of version 3; before


def name_of(function: object) -> str:
    """The name of a function; empty for an object without one."""
    try:
        name = getattr(function, "__qualname__", "")
    except BaseException as error:
        raise_signals(error)
        return ""
    if type(name) is not str:
        return ""
    # To Python a function of pybind11 is a method of an object that its user has never seen.
    return name.rpartition(".")[2] if name.startswith(_OF_PYBIND11) else name
