"""Types, libraries and functions of ctypes that pickle cannot send.

Arrays, pointers and prototypes are made anew of their parts: ctypes gives the same type for the
same parts. A structure's fields are set when it has all else, since they fix its layout; its
attributes for them come of that. A library is opened again by its name, and its functions are told
the types that they were told here.
"""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

from cloudpickle import cloudpickle

from .classes import with_attributes

_PYTHON_API, _USE_ERRNO = 4, 8  # flags of functions, of ctypes.h
_TOLD_AT_BIRTH = ("_type_", "_length_", "_flags_", "_restype_", "_argtypes_", "_swappedbytes_")


def has_ctypes() -> bool:
    return "_ctypes" in sys.modules and "ctypes" in sys.modules


def reduce_type(kind: Any) -> Any:
    """For a type that ctypes has made of others; else None."""
    import ctypes

    if issubclass(kind, ctypes.Array):
        own = vars(kind).get("_type_")
        if own is not None and kind is own * kind._length_:
            return operator.mul, (own, kind._length_)
    elif issubclass(kind, ctypes._Pointer):
        own = vars(kind).get("_type_")
        if own is not None and ctypes.POINTER(own) is kind:
            return ctypes.POINTER, (own,)
    elif issubclass(kind, _function_type()):
        if kind.__module__ == "ctypes" and kind.__name__ == "CFunctionType":
            return _prototype, (kind._flags_, kind._restype_, kind._argtypes_)
    elif issubclass(kind, type):  # they have no name of ctypes'
        bases = (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes.c_int, ctypes._Pointer)
        made_by = (each for each in (*bases, _function_type()) if type(each) is kind)
        return next(((type, (each,)) for each in made_by), None)
    elif kind.__name__.endswith(("_be", "_le")):  # of the other order of bytes
        order = f"__ctype{kind.__name__[-3:]}__"
        plain = vars(kind).get("__ctype_le__" if order == "__ctype_be__" else "__ctype_be__")
        if plain is not None and vars(kind).get(order) is kind:
            return getattr, (plain, order)
    return None


def _function_type() -> type:
    import _ctypes

    return _ctypes.CFuncPtr


def _prototype(flags: int, result: Any, arguments: tuple[Any, ...]) -> Any:
    import ctypes

    if flags & _PYTHON_API:
        return ctypes.PYFUNCTYPE(result, *arguments)
    return ctypes.CFUNCTYPE(result, *arguments, use_errno=bool(flags & _USE_ERRNO))


def complete(kind: Any, made: Any) -> Any:
    """What cloudpickle makes of a class of the program's, if that is one of ctypes', too."""
    import ctypes

    # The base of all data is a base of Array's, and no name of ctypes'.
    if not issubclass(kind, ctypes.Array.__mro__[1]):
        return made
    attributes = {key: each for key, each in made[2][0].items() if not _is_field(each)}
    first = {key: attributes.pop(key) for key in _TOLD_AT_BIRTH if key in attributes}
    return (*with_attributes(made, attributes, first)[:5], _set_class)


def _is_field(value: Any) -> bool:
    return (type(value).__module__, type(value).__name__) == ("_ctypes", "CField")


def _set_class(kind: Any, state: Any) -> Any:
    attributes, about = state
    fields = attributes.pop("_fields_", None)
    cloudpickle._class_setstate(kind, (attributes, about))
    if fields is not None and "_fields_" not in vars(kind):  # they are set once
        kind._fields_ = fields
    return kind


def reduce_object(value: Any) -> Any:
    """For a library, or a function of one; else None."""
    import ctypes

    kind = type(value)
    if kind is ctypes.CDLL or kind is ctypes.PyDLL:
        told = {name: _told(each) for name, each in vars(value).items() if _is_function(each)}
        about = {name: each for name, each in told.items() if each}
        flags = value._FuncPtr._flags_
        made = (kind, _place(value._name), bool(flags & _USE_ERRNO))
        return _library, made, about, None, None, _tell_all
    if not _is_function(value):
        return None
    libraries = [each for each in (value._objects or {}).values() if isinstance(each, ctypes.CDLL)]
    if len(libraries) != 1:
        return None
    return _function, (libraries[0], value.__name__, _told(value))


def _is_function(value: Any) -> bool:
    kind = type(value)
    return kind.__qualname__ == "CDLL.__init__.<locals>._FuncPtr" and "__name__" in vars(value)


def _told(function: Any) -> dict[str, Any]:
    """What a function was told of its types, by attribute."""
    import ctypes

    told = {"argtypes": function.argtypes, "errcheck": getattr(function, "errcheck", None)}
    about = {name: each for name, each in told.items() if each is not None}
    if function.restype is not ctypes.c_int:
        about["restype"] = function.restype
    return about


def _place(name: str | None) -> str | None:
    """A path, from wherever the worker is; a name that the loader searches for, as it is."""
    if name is None or "/" not in name:
        return name
    # A folder that is gone matters to relative paths alone.
    return name if name.startswith("/") else os.path.join(os.getcwd(), name)  # noqa: PTH109, PTH118


def _library(kind: Any, name: str | None, use_errno: bool) -> Any:
    return kind(name, use_errno=use_errno)


def _function(library: Any, name: str, told: dict[str, Any]) -> Any:
    function = getattr(library, name)
    _tell(function, told)
    return function


def _tell(function: Any, told: dict[str, Any]) -> None:
    for name, each in told.items():
        setattr(function, name, each)


def _tell_all(library: Any, state: dict[str, dict[str, Any]]) -> None:
    for name, told in state.items():
        _tell(getattr(library, name), told)
