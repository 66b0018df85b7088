"""The functions of calls, in a worker: loaded for each call, or kept when they cannot change.

The host says which may be kept. What a function that went by value did to itself shows after the
call; then it is loaded again for the next one. Its globals are those of wire/spaces.py.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from pickle import dumps, loads
from typing import Any

from .. import _core
from ..wire import by_value, spaces, tables
from ..wire.unchanged import Contents

_NOTHING = dumps(None, 5)
KEPT_BYTES_MAX = 4 << 20  # of their pickles; the oldest are dropped


def _are_same(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(map(spaces.is_same, a, b))


class Slots:
    """What a call may have set of a function without closure, whose defaults are constants."""

    def __init__(self, function: types.FunctionType) -> None:
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.by_name = _items_of(function.__kwdefaults__)

    def are_of(self, function: types.FunctionType) -> bool:
        return (
            not function.__dict__
            and function.__code__ is self.code
            and _are_same(function.__defaults__, self.defaults)
            and _are_same(_items_of(function.__kwdefaults__), self.by_name)
        )

    def restore(self, function: types.FunctionType) -> None:
        function.__dict__.clear()
        function.__code__ = self.code
        function.__defaults__ = self.defaults
        by_name = dict(zip(self.by_name[::2], self.by_name[1::2])) if self.by_name else None
        function.__kwdefaults__ = by_name


def _items_of(by_name: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return _core.contents_of(by_name) if by_name else None


def has_constants(function: types.FunctionType) -> bool:
    """Whether its defaults cannot change."""
    given = *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()
    return spaces.is_constant(given)


class Kept:
    """A function that is kept, and what would show that it has changed."""

    def __init__(self, function: Any, made: by_value.Made) -> None:
        self.function = function
        self.made = made.functions
        self.slots = [Slots(each) for each in self.made]
        self.given = made.given
        self.seen = spaces.Changes.count

    def refresh(self) -> None:
        """Before a call: undoes what calls that were given the same functions did to them.

        So it sets the globals that came with it, if others were set since.
        """
        for each, before in zip(self.made, self.slots):
            if not before.are_of(each):
                before.restore(each)
        if self.seen != spaces.Changes.count:
            for space, names in self.given:
                space.receive(names)
            self.seen = spaces.Changes.count

    def is_same(self) -> bool:
        return all(before.are_of(each) for each, before in zip(self.made, self.slots))


class Carried:
    """A function of a chunk that went by value, and whether the next call may have it as well.

    That is a functools.partial, or a method of an object, with plain values, such as a table to
    look things up in, which takes long to load: the call before has changed nothing in it, and
    nobody has kept a part of it.
    """

    def __init__(self, function: Any, made: by_value.Made) -> None:
        self.function = function
        self.kept = Kept(function, made)
        self.parts, values = _parts_of(function)
        self.contents: Contents | None = None
        if self.parts and _shows_changes(made):
            contents = Contents(values, may_nest=False)
            if contents.is_plain():
                self.contents = contents
        del values  # which refers to what is counted
        self.references = self._references()

    def _references(self) -> list[int]:
        owner = getattr(self.function, "__self__", None)  # of a method; a partial cannot change
        containers = (self.contents and self.contents.containers) or ()
        counts = [sys.getrefcount(owner), weakref.getweakrefcount(owner)]
        return [*(() if owner is None else counts), *map(sys.getrefcount, containers)]

    def is_as_loaded(self) -> bool:
        contents = self.contents
        if contents is None or not self.kept.is_same():
            return False
        if not self._has_its_parts() or not contents.are_in(contents.value):
            return False
        return self._references() == self.references

    def _has_its_parts(self) -> bool:
        parts = _parts_of(self.function)[0]
        return len(parts) == len(self.parts) and all(a is b for a, b in zip(parts, self.parts))


class _Plain:
    """An object of such a class has attributes, and nothing else."""


def _shows_changes(made: by_value.Made) -> bool:
    """Whether what a call does to what came with its function would be seen."""
    if made.has_classes:
        return False
    return not any(each.__closure__ or not has_constants(each) for each in made.functions)


def _is_bare(function: Any) -> bool:
    """Whether it has nothing of its own that a call changes, as a method's object has."""
    if type(function) is types.BuiltinFunctionType:
        return type(function.__self__) is types.ModuleType
    return type(function) is types.FunctionType or isinstance(function, type)


def _parts_of(function: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """What makes it what it is, and the values in it; nothing where there may be more to it."""
    if type(function) is functools.partial and not function.__dict__ and _is_bare(function.func):
        args, named = function.args, function.keywords
        return (function.func, args, named), [*args, named]
    if type(function) is not types.MethodType or not _is_bare(function.__func__):
        return (), []
    kind: type = type(function.__self__)
    if kind.__basicsize__ != _Plain.__basicsize__ or kind.__itemsize__:
        return (), []
    if any(vars(each).get("__slots__") for each in kind.__mro__):  # they may take no more room
        return (), []
    own = vars(function.__self__)
    return (function.__func__, kind, own), [own]


class Functions:
    """What this process keeps, by its pickle."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Kept] = {}
        self.bytes = 0

    def take(self, front: bytes) -> None:
        """Sets globals."""
        self.load(front + _NOTHING)

    def load(self, pickled: Any, buffers: Any = None) -> tuple[Any, by_value.Made]:
        """Something of the host's, and what was made for it."""
        loading = by_value.loading
        made = by_value.Made()
        before, loading.made = loading.made, made
        try:
            value = loads(pickled, buffers=buffers)
            if type(value) is tables.Table:
                rows, rest = value.parts(memoryview(pickled))
                tables.take_values(loads(rows))
                value = loads(rest, buffers=buffers)
        finally:
            loading.made = before
        return value, made

    def keep(self, pickled: bytes) -> Kept:
        """A function that may be kept."""
        kept = self.kept.get(pickled)
        if kept is not None:
            return kept
        kept = self.kept[pickled] = Kept(*self.load(pickled))
        self.bytes += len(pickled)
        while self.bytes > KEPT_BYTES_MAX and len(self.kept) > 1:
            oldest = next(iter(self.kept))
            del self.kept[oldest]
            self.bytes -= len(oldest)
        return kept

    def look_after(self, pickled: bytes, kept: Kept) -> None:
        """After a call: drops a function that has changed."""
        if not kept.is_same() and self.kept.pop(pickled, None) is not None:
            self.bytes -= len(pickled)


functions = Functions()
