"""Whether a class that goes by value is what it was, with all that is its own.

Its functions are watched as others are (watch.py). Besides, it may have containers, fields of data
classes, members of an enumeration and the like: what is in them is compared by identity. A class
that has anything else goes with each call that needs it, as pickle has it.

The same is asked in a worker, of what was made of the class there: a call may have changed it. The
globals of its functions are no part of that: they live in the process.
"""

from __future__ import annotations

import abc
import copyreg
import dataclasses
import enum
import functools
import operator
import sys
import types
import typing
import weakref
from collections import namedtuple
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from .. import _core
from ..interrupts import raise_signals
from . import by_value, classes, spaces
from .watch import (
    ALIASES,
    CONSTANTS,
    MISSING,
    Watch,
    _Seen,
    about_function,
    goes_by_name,
    parts_of_alias,
    parts_of_variable,
)

NODES_MAX = 1024  # a class that has more of them goes with each call


_AnyTuple = namedtuple("_AnyTuple", "any")


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _AnyData:
    """With nothing that dataclasses would have to make."""


# Of modules that most programs do not import, and that a worker need not, either.
_PARTLESS_OF = {
    "datetime": ("date", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
}
_WITH_ZONE_OF = {"datetime": ("datetime", "time")}
_DESCRIPTORS = {types.MemberDescriptorType, types.GetSetDescriptorType}
_PARTLESS = (
    CONSTANTS
    | _DESCRIPTORS
    | {type(dataclasses.MISSING)}
    | {type(getattr(dataclasses, name)) for name in ("_FIELD", "_HAS_DEFAULT_FACTORY")}
    | {type(vars(_AnyTuple)["any"])}
)
_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)
_Params: Any = type(getattr(_AnyData, "__dataclass_params__"))  # noqa: B009


def _is_of(kind: type, modules: Mapping[str, tuple[str, ...]]) -> bool:
    found = [
        (sys.modules[name], classes) for name, classes in modules.items() if name in sys.modules
    ]
    return any(getattr(module, name, None) is kind for module, names in found for name in names)


def _of_itself(value: Any) -> Any:
    return value


def _of_params(value: Any) -> list[Any]:
    return [getattr(value, name) for name in getattr(_Params, "__slots__", None) or vars(value)]


def _of_cell(value: types.CellType) -> list[Any]:
    try:
        return [value.cell_contents]
    except ValueError:  # it is empty
        return [MISSING]


def _of_registry(kind: type) -> list[Any]:
    """Classes that were registered with an abstract one."""
    return list(getattr(abc, "_get_dump")(kind)[0])  # noqa: B009


def _of_function(function: types.FunctionType) -> list[Any]:
    """Its annotations are there once something asks for them, and may be filled then."""
    return [*about_function(function), bool(function.__annotations__)]


# Of objects that may change in place, what is in them.
_Read = Callable[[Any], Any]  # gives a list, a tuple or a dict
_READERS: dict[type, _Read] = {
    dict: _of_itself,
    list: _of_itself,
    set: list,
    types.MappingProxyType: dict,
    types.CellType: _of_cell,
    property: operator.attrgetter("fget", "fset", "fdel", "__doc__"),
    functools.cached_property: operator.attrgetter("func", "attrname"),
    _Params: _of_params,
    dataclasses.Field: operator.attrgetter(*getattr(dataclasses.Field, "__slots__")),  # noqa: B009
}
_CONTAINERS = frozenset({dict, list, set})


def _hold(value: Any) -> Callable[[], Any]:
    """Functions and classes must not be kept alive: they are known weakly.

    None is what such a reference has when they are gone, and stands for nothing else.
    """
    if isinstance(value, (types.FunctionType, type)):
        return weakref.ref(value)
    return _none if value is None else lambda: value


_NONE = object()


def _none() -> Any:
    return _NONE


def _is_held(value: Any, held: Callable[[], Any]) -> bool:
    return (_NONE if value is None else value) is held()


class ClassWatch(Watch):
    """Of one class. names: in a worker, the attributes that came from the host."""

    __slots__ = (
        "bases",
        "containers",
        "globals",
        "held",
        "home",
        "is_of_host",
        "kind",
        "met",
        "names",
        "nodes",
        "owned",
        "texts",
    )

    def __init__(self, kind: type, names: Iterable[str] | None = None) -> None:
        super().__init__()
        self.kind = weakref.ref(kind)
        self.is_of_host = names is None
        self.names = classes.own_names(kind) if names is None else list(names)
        own = vars(kind)
        self.held = [_hold(own.get(name, MISSING)) for name in self.names]
        self.bases = [_hold(each) for each in kind.__bases__]
        self.texts = kind.__name__, kind.__qualname__
        self.home = by_value.home_of(kind)
        self.nodes: list[tuple[_Read, Callable[[], Any], tuple[Any, ...]]] = []
        # By id() what is its own, and may be in common to it and others; of them the containers.
        self.met: set[int] = set()
        self.owned: set[int] = set()
        self.containers: set[int] = set()
        # What its functions name, by one function of each module: those do not keep it alive.
        self.globals: list[tuple[weakref.ref[Any], dict[str, Callable[[], Any]]]] = []

    def holds(self) -> bool:
        kind = self.kind()
        if kind is None:
            return False
        own = vars(kind)
        for name, held in zip(self.names, self.held):
            if not _is_held(own.get(name, MISSING), held):
                return False
        if self.is_of_host and not self.holds_in_host(kind):
            return False
        for read, held, before in self.nodes:
            thing = held()
            if thing is None or not _core.has_contents(read(thing), before):
                return False
        return not self.is_of_host or self.has_globals()

    def has_globals(self) -> bool:
        """Whether what its functions name is what it was."""
        if self.modules is not None and self.modules != len(sys.modules):
            return False
        for ref, names in self.globals:
            function = ref()
            if function is None:
                return False
            space = function.__globals__
            for name, held in names.items():
                if not _is_held(space.get(name, MISSING), held):
                    return False
        return self.has_needed()

    def holds_in_host(self, kind: type) -> bool:
        """For what a worker is not sent again, or cannot change."""
        if len(self.names) != len(classes.own_names(kind)) or kind in copyreg.dispatch_table:
            return False
        bases = kind.__bases__
        if len(bases) != len(self.bases) or any(a is not b() for a, b in zip(bases, self.bases)):
            return False
        if (kind.__name__, kind.__qualname__) != self.texts or by_value.home_of(kind) != self.home:
            return False
        if not self.containers:
            return True
        values = spaces.names_of(kind.__module__).values()
        return self.containers.isdisjoint(map(id, list(values)))

    def takes_class(self) -> bool:
        """Whether all of it is constant, or noticed if it changes."""
        try:
            return self.takes_all()
        except (MemoryError, RecursionError):  # the class is not to blame
            raise
        except Exception as error:  # of an annotation that cannot be evaluated, say
            raise_signals(error)
            return False

    def has_met(self, function: types.FunctionType) -> bool:
        return id(function) in self.met

    def takes_all(self) -> bool:
        kind = self.kind()
        if kind is None or type(kind) not in _METACLASSES:
            return False
        if self.is_of_host:
            if not all(map(self.takes_part, kind.__bases__)):
                return False
            if "_abc_impl" in vars(kind):
                self.add_node(_of_registry, kind)
                if _of_registry(kind):
                    return False
        own = vars(kind)
        if not all(self.takes_part(own.get(name, MISSING)) for name in self.names):
            return False
        self.globals = self.all_globals()
        return not self.is_of_host or self.holds_in_host(kind)

    def all_globals(self) -> list[tuple[weakref.ref[Any], dict[str, Callable[[], Any]]]]:
        by_space: dict[int, tuple[weakref.ref[Any], dict[str, Callable[[], Any]]]] = {}
        for each in self.seen:
            function = each.function()
            if function is not None:
                number = id(function.__globals__)
                names = by_space.setdefault(number, (each.function, {}))[1]
                names.update((name, _hold(value)) for name, value in each.constants)
                names.update(each.functions)
        return list(by_space.values())

    def add_node(self, read: _Read, value: Any) -> tuple[Any, ...]:
        parts = _core.contents_of(read(value))
        self.nodes.append((read, _hold(value), parts))
        return parts

    def takes_part(self, value: Any) -> bool:
        kind = type(value)
        if kind in _PARTLESS or value is MISSING or _is_of(kind, _PARTLESS_OF):
            return True
        if kind is tuple or kind is frozenset:
            if id(value) in self.met:
                return True
            self.met.add(id(value))
            return all(map(self.takes_part, value))
        if _is_of(kind, _WITH_ZONE_OF):
            return self.takes_part(value.tzinfo)
        if kind is typing.TypeVar:
            return all(map(self.takes_part, parts_of_variable(value)))
        if isinstance(value, type):
            return goes_by_name(value) or self.takes_type(value)
        if kind is types.FunctionType:
            return goes_by_name(value) or self.takes_own_function(value)
        if kind in (staticmethod, classmethod):
            return self.takes_part(value.__func__)
        if isinstance(value, ALIASES):
            return all(map(self.takes_part, parts_of_alias(value)))
        if isinstance(value, enum.Enum) and kind is self.kind():
            return self.takes_node(vars, value)
        read = _READERS.get(kind)
        return self.takes(value) if read is None else self.takes_node(read, value)

    def takes_node(self, read: _Read, value: Any) -> bool:
        if id(value) in self.met:
            return True
        if len(self.nodes) >= NODES_MAX:
            return False
        self.met.add(id(value))
        if type(value) is not self.kind():
            self.owned.add(id(value))
        if type(value) in _CONTAINERS:
            self.containers.add(id(value))
        return all(map(self.takes_part, self.add_node(read, value)))

    def is_own_cell(self, cell: types.CellType) -> bool:
        """Whether it is what super() looks at, which would keep the class alive."""
        return _of_cell(cell)[0] is self.kind()

    def takes_type(self, kind: type) -> bool:
        return kind is self.kind() or not self.is_of_host or super().takes_type(kind)

    def takes_own_function(self, function: types.FunctionType) -> bool:
        self.owned.add(id(function))
        return self.takes_function(function)

    def takes_function(self, function: types.FunctionType) -> bool:
        if id(function) in self.met:
            return True
        if len(self.nodes) >= NODES_MAX:
            return False
        self.met.add(id(function))
        _, defaults, by_name, notes, *_ = self.add_node(_of_function, function)
        self.add_node(vars, function)
        cells = [each for each in function.__closure__ or () if not self.is_own_cell(each)]
        others = [
            each for each in (by_name, function.__dict__ or None, notes or None) if each is not None
        ]
        if not all(map(self.takes_part, (*(defaults or ()), *cells, *others))):
            return False
        if not self.is_of_host:
            return True
        seen = _Seen(function)
        is_taken = self.takes_globals(function, seen)
        if seen.constants or seen.functions:
            self.seen.append(seen)
        return is_taken
