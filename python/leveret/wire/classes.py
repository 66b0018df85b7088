"""What cloudpickle leaves out of classes that go by value, and things of `typing` that have a name.

Slots: the class there has them, too, so that its instances have the host's shape. Members of an
enumeration: the attributes that its __init__ or __new__ has given them. A functools.cached_property
has a lock before Python 3.12: it is made anew. What __init_subclass__ has done to a class comes
with the class, and with the globals: it does not run again for a class that has nothing in it yet.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import sys
import threading
import types
import typing
from collections.abc import Container, Iterator
from typing import Any

from cloudpickle import cloudpickle

# What Enum itself gives a member.
_OF_ENUM = frozenset({"_name_", "_value_", "__objclass__", "_sort_order_"})

# What cloudpickle leaves out.
_LISTS_OF_ENUM = {"_generate_next_value_", "_member_names_", "_member_map_", "_member_type_"}
_LEFT_OUT = {"__slotnames__", "__dict__", "__weakref__", "_abc_impl", "_value2member_map_"}

_changing = threading.Lock()


def own_names(kind: type) -> list[str]:
    """The attributes of a class that are sent."""
    left_out = _LEFT_OUT | _LISTS_OF_ENUM if issubclass(kind, enum.Enum) else _LEFT_OUT
    return [name for name in list(vars(kind)) if name not in left_out]


def reduce(kind: type, by_value: bool) -> Any:
    """What cloudpickle makes of a class. by_value: also if it could be found by its name.

    It drops a slot's descriptor by the slot's name. One that has no such name, as that of
    __weakref__ or a private one, is an error to it where __slots__ is one text, not in a tuple.
    """
    slots = vars(kind).get("__slots__")
    if not isinstance(slots, str) or (slots in vars(kind) and slots != "__weakref__"):
        return _reduce(kind, by_value)
    with _changing:
        type.__setattr__(kind, "__slots__", (slots,))
        try:
            return _reduce(kind, by_value)
        finally:
            type.__setattr__(kind, "__slots__", slots)


def _reduce(kind: type, by_value: bool) -> Any:
    made = cloudpickle._class_reduce(kind)
    if made is NotImplemented and by_value:
        made = cloudpickle._dynamic_class_reduce(kind)
    is_typed = made is not NotImplemented and type(kind).__name__ == "_TypedDictMeta"
    return _as_typed_dict(kind, made) if is_typed else made


def _as_typed_dict(kind: type, made: Any) -> Any:
    """With the base that typing gives such a class only when it is made of TypedDict."""
    module = sys.modules.get(type(kind).__module__)
    typed = getattr(module, "TypedDict", None)
    constructor, name, bases, *others = made[1]
    if typed is None or not isinstance(bases, tuple) or dict not in bases:
        return made
    about = (constructor, name, tuple(typed if each is dict else each for each in bases), *others)
    return (made[0], about, *made[2:])


@contextlib.contextmanager
def made_before(bases: tuple[Any, ...], by_value: Container[type]) -> Iterator[None]:
    """For a subclass of these, which the host has made: __init_subclass__ has run there."""
    changed = {}
    for kind in {kind for base in bases for kind in getattr(base, "__mro__", ())}:
        own = vars(kind).get("__init_subclass__")
        if own is not None and kind in by_value:
            changed[kind] = own
    try:
        for kind in changed:
            type.__setattr__(kind, "__init_subclass__", classmethod(_passing_on(kind)))
        yield
    finally:
        for kind, own in changed.items():
            type.__setattr__(kind, "__init_subclass__", own)


def _passing_on(kind: Any) -> Any:
    """To bases that can be imported, which may keep books of their subclasses."""

    def pass_on(made: type, **named: Any) -> None:
        super(kind, made).__init_subclass__(**named)

    return pass_on


def complete(kind: type, made: Any) -> Any:
    """What cloudpickle makes of a class, with what it leaves out."""
    if issubclass(kind, enum.Enum):
        return _with_members(kind, made)
    made = _in_order(kind, _with_class(_with_same_as_bases(kind, made)))
    slots = vars(kind).get("__slots__")
    if slots is None or not isinstance(slots, (str, tuple, list, dict)):
        return made
    if typing.NamedTuple in made[1][2]:  # which gives the class its slots, and lets nobody else
        return made
    attributes = {key: each for key, each in made[2][0].items() if key != "__slots__"}
    for each in _names(slots):
        if each.startswith("__") and not each.endswith("__"):  # as the compiler has named it
            attributes.pop(f"_{kind.__name__.lstrip('_')}{each}", None)
    return with_attributes(made, attributes, {"__slots__": slots})


def with_attributes(
    made: Any, attributes: dict[str, Any], early: dict[str, Any] | None = None
) -> Any:
    """What cloudpickle makes of a class, with other attributes. early: it is made with them."""
    maker, about, state, *rest = made
    if early:
        about = (*about[:3], {**about[3], **early}, *about[4:])
    return (maker, about, (attributes, *state[1:]), *rest)


_BY_ITSELF = frozenset({"__module__", "__slots__", "__dict__", "__weakref__", "_abc_impl"})


def _with_same_as_bases(kind: type, made: Any) -> Any:
    """Attributes that a base has, too: there, the class may have another, or the base get one."""
    attributes = dict(made[2][0])
    for name, value in list(vars(kind).items()):
        if name in attributes or name in _BY_ITSELF:
            continue
        if any(vars(base).get(name, _BY_ITSELF) is value for base in kind.__bases__):
            attributes["".join(name)] = value
    return with_attributes(made, attributes)


def _in_order(kind: type, made: Any) -> Any:
    """With attributes as vars() of the class has them: cloudpickle sorts their names."""
    given = made[2][0]
    attributes = {name: given[name] for name in own_names(kind) if name in given}
    return with_attributes(made, {**attributes, **given})


def _with_class(made: Any) -> Any:
    """__class__ of a proxy, which says what it stands for: afterwards it would be another's."""
    if "__class__" not in made[2][0]:
        return made
    attributes = dict(made[2][0])
    early = {"__class__": attributes.pop("__class__")}
    return with_attributes(made, attributes, early)


def other_home(kind: type) -> types.ModuleType | None:
    """The module of a class that says that it is of another one (as pytest's skips do), by the
    functions of the class and its bases: it is found there under its name.
    """
    for base in kind.__mro__[:-1]:
        for each in vars(base).values():
            name = each.__globals__.get("__name__") if type(each) is types.FunctionType else None
            module = sys.modules.get(name) if type(name) is str else None
            if module is not None and vars(module).get(kind.__qualname__) is kind:
                return module
    return None


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


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
TYPING = frozenset((typing.TypeVar, *(each for each in _KINDS if isinstance(each, type))))


def reduce_typing(value: Any) -> Any:
    """For one of a module that the other process cannot import: there is one of it there."""
    if type(value) is typing.TypeVar:
        return cloudpickle._make_typevar, cloudpickle._decompose_typevar(value)
    about: tuple[Any, ...] = ()
    if type(value).__name__ == "NewType":
        about = (value.__supertype__,)
    number = cloudpickle._get_or_create_tracker_id(value)
    return _make_typing, (type(value).__name__, value.__name__, value.__module__, number, *about)


def _make_typing(kind: str, name: str, module: str, number: str, *about: Any) -> Any:
    made = getattr(typing, kind)(name, *about)
    made.__module__ = module
    return cloudpickle._lookup_class_or_track(number, made)
