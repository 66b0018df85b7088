"""The functions of calls, in a worker: loaded for each call, or kept when they cannot change.

The host says which may be kept. What a function that went by value did to itself or its globals
shows after the call; then it is loaded again for the next one. An initializer that went by value
has set globals of a module that this process does not have: every function of that module gets
them.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Iterable
from typing import Any

from ..wire import by_value

KEPT_BYTES_MAX = 4 << 20  # of their pickles; the oldest are dropped
_MISSING = object()


class _Space:
    """The globals that functions were made with."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.before = dict(names)

    def changed(self) -> dict[str, Any]:
        """What was set since."""
        before = self.before
        return {k: v for k, v in self.names.items() if before.get(k, _MISSING) is not v}

    def is_same(self) -> bool:
        names, before = self.names, self.before
        if len(names) != len(before):
            return False
        for name, value in before.items():  # noqa: SIM110 (this is quicker)
            if names.get(name, _MISSING) is not value:
                return False
        return True


def _spaces(functions: Iterable[types.FunctionType]) -> list[_Space]:
    found = {id(f.__globals__): f.__globals__ for f in functions}
    return [_Space(each) for each in found.values()]


class Kept:
    """A function that is kept, and what would show that it has changed."""

    def __init__(self, function: Any, made: list[types.FunctionType]) -> None:
        self.function = function
        self.made = made
        self.spaces = _spaces(made)

    def is_same(self) -> bool:
        for each in self.made:
            if each.__dict__:
                return False
        for space in self.spaces:  # noqa: SIM110 (this is quicker)
            if not space.is_same():
                return False
        return True


class Functions:
    """What this process keeps, by its pickle; and what its initializer has set, by module."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Kept] = {}
        self.bytes = 0
        self.is_set: dict[str, dict[str, Any]] = {}

    def load(self, pickled: Any, buffers: Any = None) -> tuple[Any, list[types.FunctionType]]:
        """Something of the host's, and the functions that were made for it."""
        loading = by_value.loading
        made: list[types.FunctionType] = []
        before, loading.made = loading.made, made
        try:
            value = pickle.loads(pickled, buffers=buffers)
        finally:
            loading.made = before
        if self.is_set:
            for each in made:
                space = each.__globals__
                space.update(self.is_set.get(space.get("__name__", ""), ()))
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

    def set_up(self, initializer: Any, initargs: Any, made: list[types.FunctionType]) -> None:
        """Calls the initializer, and notes which globals it has set."""
        spaces = _spaces(made)
        initializer(*initargs)
        for each in spaces:
            changed = each.changed()
            if changed:
                module = each.names.get("__name__", "")
                self.is_set.setdefault(module, {}).update(changed)


functions = Functions()
