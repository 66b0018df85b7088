"""In which order what is in a class is read, where it goes by value with what needs it.

Among that may be instances of the class itself: an attribute of it is one (`Point.origin`), or of a
class that a method names. To make one as it arrives the class must have its __new__, __init__ or
__setstate__ by then. So functions are set first, those with special names before all others.
What those change of the class meanwhile they have changed in the host before: in the end all
attributes are set to what they are there.
"""

from __future__ import annotations

import enum
import functools
import types
from typing import Any

from cloudpickle import cloudpickle

from . import spaces
from .instead import Instead

_FUNCTIONS = (types.FunctionType, classmethod, staticmethod, property, functools.cached_property)
_CALLED, _FUNCTION, _CLASS, _OTHER = range(4)


def in_steps(kind: type, made: Any) -> Any:
    """What pickle is told of a class, with the steps in front of its state.

    A metaclass has none: its __new__ has run for the classes among what is in it, and must not.
    Nor has a class whose attributes are set in a way of its own, which may let each be set once.
    """
    is_set_by_python = type(kind).__setattr__ in (type.__setattr__, enum.EnumMeta.__setattr__)
    is_whole = made[5] is cloudpickle._class_setstate
    if issubclass(kind, type) or not is_whole or not is_set_by_python:
        return made
    attributes = made[2][0]
    steps: list[dict[str, Any]] = [{}, {}, {}, {}]
    for name, value in attributes.items():
        # What the class itself has: what stands for a global is none of these kinds.
        steps[_step_of(name, vars(kind).get(name, value))][name] = value
    steps = [each for each in steps if each]
    if len(steps) < 2:
        return made
    early = [Instead(_set_early, kind, each) for each in steps[:-1]]  # set as soon as it is read
    return (*made[:2], (early, made[2]), *made[3:5], _set_last)


def _step_of(name: str, value: Any) -> int:
    if isinstance(value, _FUNCTIONS):
        return _CALLED if name.startswith("__") else _FUNCTION
    if isinstance(value, type):
        return _CLASS
    return _CALLED if _is_plain(value) else _OTHER


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(map(spaces.is_constant, value.values()))
    if type(value) is list or type(value) is set:
        return all(map(spaces.is_constant, value))
    return spaces.is_constant(value)


def _set_early(kind: type, attributes: dict[str, Any]) -> None:
    """Containers as copies: what is put into them meanwhile is not in the host's."""
    given = {name: _copied(value) for name, value in attributes.items()}
    cloudpickle._class_setstate(kind, (given, {}))


def _copied(value: Any) -> Any:
    return type(value)(value) if type(value) in (list, dict, set) else value


def _set_last(kind: type, state: tuple[Any, Any]) -> type:
    _, (attributes, *rest) = state
    cloudpickle._class_setstate(kind, (attributes, *rest))
    _put_in_order(kind, list(attributes))
    return kind


def _put_in_order(kind: type, names: list[str]) -> None:
    """vars() of a class gives them as the program has them."""
    own = [name for name in vars(kind) if name in names and not name.startswith("__")]
    if own == [name for name in names if name in own]:
        return
    for name in sorted(own, key=names.index):
        value = vars(kind)[name]
        type.__delattr__(kind, name)
        type.__setattr__(kind, name, value)
