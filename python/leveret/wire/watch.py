"""Whether functions that go by value are what they were, with all that is reachable from them.

What is noted are objects that cannot change, by identity: constants, what goes by its name, code,
and such functions. Of two kinds of globals less is noted. A class that goes by value is watched by
itself (class_watch.py). Other values go in front of each call (tables.py); only their names stay.
"""

from __future__ import annotations

import copyreg
import operator
import re
import sys
import types
import typing
import weakref
from typing import Any

from .. import _core
from . import absent, by_value, modules, spaces
from .modules import Home
from .pickling import ATOMS, globals_in_front

CONSTANTS = ATOMS | {range, re.Pattern, type(...), type(NotImplemented)}
MISSING = object()
ALIASES = (
    type(typing.List[int]),  # noqa: UP006
    type(typing.Union[int, str]),
    *(getattr(types, name) for name in ("GenericAlias", "UnionType") if hasattr(types, name)),
)

about_function = operator.attrgetter(
    *("__code__", "__defaults__", "__kwdefaults__", "__annotations__"),
    *("__name__", "__qualname__", "__doc__"),
)


def goes_by_name(value: Any) -> bool:
    """Whether pickle writes it as a module and a name."""
    if not by_value.is_importable(value):
        return False
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return True
    reduce = copyreg.dispatch_table.get(type(value))
    made = value.__reduce_ex__(5) if reduce is None else reduce(value)
    return type(made) is str


def parts_of_alias(value: Any) -> list[Any]:
    args = (*getattr(value, "__args__", ()), *getattr(value, "__metadata__", ()))
    return [getattr(value, "__origin__", None), *args]


def parts_of_variable(value: Any) -> list[Any]:
    default = getattr(value, "__default__", None)
    is_none = default is getattr(typing, "NoDefault", None)
    return [value.__bound__, *value.__constraints__, None if is_none else default]


class _Seen:
    """A function that goes by value, as it was. It must not be kept alive: it is known weakly."""

    __slots__ = ("about", "by_name", "constants", "function", "functions", "notes")

    def __init__(self, function: types.FunctionType) -> None:
        self.function = weakref.ref(function)
        self.about = about_function(function)
        self.by_name = _core.contents_of(function.__kwdefaults__ or {})
        self.notes = _core.contents_of(function.__annotations__)
        # What its code names in its globals: other such functions are known weakly, too.
        self.constants: list[tuple[str, Any]] = []
        self.functions: list[tuple[str, weakref.ref[Any]]] = []

    def is_same(self) -> bool:
        function = self.function()
        if function is None or function.__dict__:
            return False
        about = about_function(function)
        if not _core.has_contents(about, self.about):
            return False
        if about[2] and not _core.has_contents(about[2], self.by_name):
            return False
        if not _core.has_contents(about[3], self.notes):
            return False
        return self.has_globals(function)

    def has_globals(self, function: types.FunctionType) -> bool:
        space = function.__globals__
        for name, value in self.constants:
            if space.get(name, MISSING) is not value:
                return False
        for name, known in self.functions:
            value = known()
            if value is None or space.get(name) is not value:
                return False
        return True


class Watch:
    """What a function that goes by value depends on."""

    __slots__ = ("kinds", "modules", "needed", "seen", "unsent")

    def __init__(self) -> None:
        self.seen: list[_Seen] = []
        self.kinds: list[weakref.ref[type]] = []  # classes that go by value
        self.needed: dict[Home, None] = {}  # globals that go in front
        # That code names, but that are not there, and that no worker has got: once one has, and
        # they are gone again, it must be told so.
        self.unsent: list[Home] = []
        # cloudpickle imports the submodules that are imported here.
        self.modules: int | None = None

    def holds(self) -> bool:
        """Whether nothing has changed."""
        if self.modules is not None and self.modules != len(sys.modules):
            return False
        for each in self.seen:
            if not each.is_same():
                return False
        return self.has_needed()

    def has_needed(self) -> bool:
        """Whether the globals that go in front are there, and still do."""
        if self.unsent and spaces.has_sent(self.unsent):
            return False
        for key, name in self.needed:
            names = spaces.names_of(key)
            if name not in names or spaces.goes_inline(names[name]):
                return False
        return True

    def takes(self, value: Any) -> bool:
        """Whether a value cannot change."""
        kind = type(value)
        if kind in CONSTANTS or value is MISSING:
            return True
        if kind is tuple or kind is frozenset:
            return all(map(self.takes, spaces.leaves(value)))
        if kind is types.ModuleType:
            return self.takes_module(value)
        if kind.__module__ == "numpy" and kind.__name__ == "ufunc":  # before 2.2 it knows no module
            return getattr(sys.modules["numpy"], value.__name__, None) is value
        if kind is types.BuiltinFunctionType and isinstance(value.__self__, type):
            return goes_by_name(value.__self__)
        return goes_by_name(value)

    def takes_module(self, module: Any) -> bool:
        name = module.__name__
        if sys.modules.get(name) is not module or absent.is_absent(name):
            return False
        if hasattr(module, "__path__"):
            self.modules = len(sys.modules)
        return True

    def takes_function(self, function: types.FunctionType) -> bool:
        """Whether all that is reachable from a function is constant, or noticed if it changes."""
        if any(each.function() is function for each in self.seen):
            return True
        if function.__closure__ is not None or function.__dict__:
            return False
        seen = _Seen(function)
        self.seen.append(seen)
        given = (*(function.__defaults__ or ()), *seen.by_name)
        if not all(map(self.takes, given)) or not all(map(self.takes_note, seen.notes)):
            return False
        return self.takes_globals(function, seen)

    def takes_note(self, note: Any) -> bool:
        """Whether this is so for an annotation, or a part of one."""
        if isinstance(note, ALIASES):
            return all(map(self.takes_note, parts_of_alias(note)))
        if type(note) is typing.TypeVar:
            return all(map(self.takes_note, parts_of_variable(note)))
        if isinstance(note, type) and not goes_by_name(note):
            return self.takes_type(note)
        return self.takes(note)

    def takes_globals(self, function: types.FunctionType, seen: _Seen) -> bool:
        """Whether this is so for what its code names."""
        if by_value.imported_home(function) is not None:
            return True
        if modules.asks(function) or any(map(absent.is_absent, modules.imported_by(function))):
            return False
        space = function.__globals__
        key = spaces.key_of(space)
        for name, value in modules.noted(function).items():
            if not self.takes(value):
                return False
            seen.constants.append((name, value))
        for name in modules.named_by(function):
            value = space.get(name, MISSING)
            if value is MISSING and not spaces.has_sent([(key, name)]):
                self.unsent.append((key, name))
            if type(value) is types.FunctionType and not goes_by_name(value):
                seen.functions.append((name, weakref.ref(value)))
                if not self.takes_function(value):
                    return False
            elif not spaces.is_large(value) and self.takes(value):
                seen.constants.append((name, value))
            elif isinstance(value, type):
                seen.functions.append((name, weakref.ref(value)))
                if not self.takes_type(value):
                    return False
            elif "#" in key or spaces.goes_inline(value):
                return False
            else:
                self.needed[key, name] = None
        return True

    def takes_type(self, kind: type) -> bool:
        """Whether this is so for a class that goes by value: it is watched by itself."""
        if not absent.is_absent(kind.__module__):
            return False
        self.kinds.append(weakref.ref(kind))
        return True

    def constants_in_front(self, needed: spaces.Needed) -> bytes | None:
        """What of the globals that a pickle needs stays with it: they are constants.

        None: some are neither constants nor known to go in front of each call.
        """
        known: set[Home] = set()
        for each in self.seen:
            function = each.function()
            if function is not None:
                key = spaces.key_of(function.__globals__)
                known.update((key, name) for name, _ in each.constants)
        here = {home: value for home, value in needed.items() if home not in self.needed}
        count = len(here)
        front = globals_in_front(here)
        return front if known.issuperset(here) and len(here) == count else None
