"""Which functions are the same for many calls, so that workers may keep them.

A function that can be imported is: it goes by its name. One that goes by value is, too, while
nothing that can change is reachable from it: it has no closure, and its defaults and all that its
code names are constants, modules or such functions. Whether that still holds is looked up before
each call. Everything else is pickled for each call, and no call sees what another did to it.
"""

from __future__ import annotations

import copyreg
import pickle
import re
import sys
import types
import weakref
from typing import Any

from cloudpickle.cloudpickle import _extract_code_globals

from ..interrupts import raise_signals
from . import by_value, modules
from .pickling import ATOMS, _Pickler, dumps

# What the host keeps of functions that go by value, each and together; the others are few bytes.
PICKLED_BYTES_MAX, ALL_BYTES_MAX = 64 << 10, 8 << 20
KNOWN_MAX = 4096
_CONSTANTS = ATOMS | {range, re.Pattern, type(...), type(NotImplemented)}
_MISSING = object()


class _Seen:
    """A function that goes by value, as it was. It must not be kept alive: it is known weakly."""

    __slots__ = ("by_name", "code", "constants", "defaults", "function", "functions")

    def __init__(self, function: types.FunctionType) -> None:
        self.function = weakref.ref(function)
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.by_name = function.__kwdefaults__
        # What its code names in its globals: other such functions are known weakly, too.
        self.constants: list[tuple[str, Any]] = []
        self.functions: list[tuple[str, weakref.ref[Any]]] = []

    def is_same(self) -> bool:
        function = self.function()
        if (
            function is None
            or function.__code__ is not self.code
            or function.__defaults__ is not self.defaults
            or function.__kwdefaults__ is not self.by_name
            or function.__dict__
        ):
            return False
        space = function.__globals__
        for name, value in self.constants:
            if space.get(name, _MISSING) is not value:
                return False
        for name, known in self.functions:  # noqa: SIM110
            if space.get(name) is not known():
                return False
        return True


class Watch:
    """What a function that goes by value depends on."""

    __slots__ = ("modules", "seen")

    def __init__(self) -> None:
        self.seen: list[_Seen] = []
        # cloudpickle imports the submodules that are imported here.
        self.modules: int | None = None

    def holds(self) -> bool:
        """Whether nothing has changed."""
        if self.modules is not None and self.modules != len(sys.modules):
            return False
        for each in self.seen:  # noqa: SIM110 (this is quicker)
            if not each.is_same():
                return False
        return True

    def takes(self, value: Any) -> bool:
        """Whether a value cannot change."""
        kind = type(value)
        if kind in _CONSTANTS or value is _MISSING:
            return True
        if kind is tuple or kind is frozenset:
            return all(map(self.takes, value))
        if kind is types.ModuleType:
            return self.takes_module(value)
        if kind.__module__ == "numpy" and kind.__name__ == "ufunc":  # before 2.2 it knows no module
            return getattr(sys.modules["numpy"], value.__name__, None) is value
        return goes_by_name(value)

    def takes_module(self, module: Any) -> bool:
        name = module.__name__
        if sys.modules.get(name) is not module or by_value.is_absent(name):
            return False
        if hasattr(module, "__path__"):
            self.modules = len(sys.modules)
        return True

    def takes_function(self, function: types.FunctionType) -> bool:
        """Whether all that is reachable from a function is constant, or noticed if it changes."""
        if any(each.function() is function for each in self.seen):
            return True
        seen = _Seen(function)
        self.seen.append(seen)
        if function.__closure__ is not None or function.__dict__ or modules.asks(function):
            return False
        given = (*(seen.defaults or ()), *(seen.by_name or {}).values())
        if not all(map(self.takes, given)):
            return False
        space = function.__globals__
        for name in _extract_code_globals(function.__code__):
            value = space.get(name, _MISSING)
            if type(value) is types.FunctionType and not goes_by_name(value):
                seen.functions.append((name, weakref.ref(value)))
                if not self.takes_function(value):
                    return False
            elif self.takes(value):
                seen.constants.append((name, value))
            else:
                return False
        return True


class Known:
    """A function that workers may keep. watch: None if it goes by its name."""

    __slots__ = ("pickled", "watch")

    def __init__(self, pickled: bytes, watch: Watch | None) -> None:
        self.pickled = pickled
        self.watch = watch


class _Kept:
    """By id(): a weak reference to each function, and what is known of it."""

    def __init__(self) -> None:
        self.functions: dict[int, tuple[Any, Known]] = {}
        self.bytes = 0

    def add(self, function: Any, known: Known) -> None:
        number = id(function)
        if self.bytes > ALL_BYTES_MAX or len(self.functions) >= KNOWN_MAX:
            self.forget()

        def drop(gone: Any) -> None:
            entry = self.functions.get(number)
            if entry is not None and entry[0] is gone:
                del self.functions[number]
                self.bytes -= len(entry[1].pickled)

        before = self.functions.get(number)
        if before is not None:
            self.bytes -= len(before[1].pickled)
        try:
            self.functions[number] = (weakref.ref(function, drop), known)
        except TypeError:  # without weak references; it is its module's, and lives as long
            self.functions[number] = (lambda: function, known)
        self.bytes += len(known.pickled)

    def forget(self) -> None:
        self.functions.clear()
        self.bytes = 0


_kept = _Kept()


def forget() -> None:
    """After sys.path changed: those that went by their names may not be found any more."""
    _kept.forget()


def goes_by_name(value: Any) -> bool:
    """Whether pickle writes it as a module and a name."""
    if not by_value.is_importable(value):
        return False
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return True
    reduce = copyreg.dispatch_table.get(type(value))
    made = value.__reduce_ex__(5) if reduce is None else reduce(value)
    return type(made) is str


def _learn(function: Any) -> Known | None:
    if goes_by_name(function):
        try:
            return Known(pickle.dumps(function, 5), None)
        except Exception as error:  # cloudpickle may know better
            raise_signals(error)
            return None
    if type(function) is not types.FunctionType:
        return None
    watch = Watch()
    if not watch.takes_function(function):
        return None
    pickled = dumps(function, 0, _Pickler)[0]
    return Known(pickled, watch) if len(pickled) <= PICKLED_BYTES_MAX else None


def known_function(function: Any) -> Known | None:
    """What workers may keep of a function; None: it goes with each call."""
    entry = _kept.functions.get(id(function))
    if entry is not None and entry[0]() is function:
        known = entry[1]
        if known.watch is None or known.watch.holds():
            return known
    made = _learn(function)
    if made is not None:
        _kept.add(function, made)
    return made
