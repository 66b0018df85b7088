"""What cloudpickle leaves out of classes that go by value, and things of `typing` that have a name.

Slots: the class there has them, too, so that its instances have the host's shape. Members of an
enumeration: the attributes that its __init__ or __new__ has given them. A functools.cached_property
has a lock before Python 3.12: it is made anew.
"""

from __future__ import annotations

import enum
import functools
import typing
from typing import Any

from cloudpickle import cloudpickle

# What Enum itself gives a member.
_OF_ENUM = frozenset({"_name_", "_value_", "__objclass__", "_sort_order_"})


def complete(kind: type, made: Any) -> Any:
    """What cloudpickle makes of a class, with what it leaves out."""
    if issubclass(kind, enum.Enum):
        return _with_members(kind, made)
    slots = vars(kind).get("__slots__")
    if slots is None or not isinstance(slots, (str, tuple, list, dict)):
        return made
    constructor, name, bases, given, *others = made[1]
    about = (constructor, name, bases, {**given, "__slots__": slots}, *others)
    attributes = {key: each for key, each in made[2][0].items() if key != "__slots__"}
    for each in (slots,) if isinstance(slots, str) else tuple(slots):
        if each.startswith("__") and not each.endswith("__"):  # as the compiler has named it
            attributes.pop(f"_{kind.__name__.lstrip('_')}{each}", None)
    return (made[0], about, (attributes, *made[2][1:]), *made[3:])


def _with_members(kind: Any, made: Any) -> Any:
    extra = {}
    for name, member in kind.__members__.items():
        own = {key: each for key, each in vars(member).items() if key not in _OF_ENUM}
        if own and name == member.name:
            extra[name] = own
    if not extra:
        return made
    state = (made[2][0], {**made[2][1], "members": extra})
    return (*made[:2], state, *made[3:5], _set_enum)


def _set_enum(kind: Any, state: Any) -> Any:
    attributes, about = state
    members = about.pop("members")
    cloudpickle._class_setstate(kind, (attributes, about))
    for name, own in members.items():
        vars(kind.__members__[name]).update(own)
    return kind


def reduce_cached_property(value: functools.cached_property[Any]) -> Any:
    return _cached_property, (value.func, value.attrname)


def _cached_property(function: Any, name: str | None) -> Any:
    made: Any = functools.cached_property(function)
    made.attrname = name
    return made


# Their own pickle is a name in their module. (NewType makes functions before Python 3.10.)
_KINDS = [getattr(typing, name, None) for name in ("NewType", "ParamSpec", "TypeVarTuple")]
TYPING = frozenset(each for each in _KINDS if isinstance(each, type))


def reduce_typing(value: Any) -> Any:
    """For one of a module that the other process cannot import: there is one of it there."""
    about: tuple[Any, ...] = ()
    if type(value).__name__ == "NewType":
        about = (value.__supertype__,)
    number = cloudpickle._get_or_create_tracker_id(value)
    return _make_typing, (type(value).__name__, value.__name__, value.__module__, number, *about)


def _make_typing(kind: str, name: str, module: str, number: str, *about: Any) -> Any:
    made = getattr(typing, kind)(name, *about)
    made.__module__ = module
    return cloudpickle._lookup_class_or_track(number, made)
