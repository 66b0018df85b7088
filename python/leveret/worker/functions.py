"""The functions of calls, in a worker: loaded for each call, or kept when they cannot change.

The host says which may be kept. What a function that went by value did to itself shows after the
call; then it is loaded again for the next one. Its globals are those of wire/spaces.py.
"""

from __future__ import annotations

import operator
import pickle
from typing import Any

from ..wire import by_value, spaces, tables

_NOTHING = pickle.dumps(None, 5)
KEPT_BYTES_MAX = 4 << 20  # of their pickles; the oldest are dropped


_slots = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")


class Kept:
    """A function that is kept, and what would show that it has changed."""

    def __init__(self, function: Any, made: by_value.Made) -> None:
        self.function = function
        self.made = made.functions
        self.slots = [_slots(each) for each in self.made]
        self.given = made.given
        self.seen = spaces.Changes.count

    def refresh(self) -> None:
        """Before a call: undoes what calls that were given the same functions did to them.

        So it sets the globals that came with it, if others were set since.
        """
        for each in self.made:
            if each.__dict__:
                each.__dict__.clear()
        if self.seen != spaces.Changes.count:
            for space, names in self.given:
                space.receive(names)
            self.seen = spaces.Changes.count

    def is_same(self) -> bool:
        for each, before in zip(self.made, self.slots):
            if each.__dict__ or _slots(each) != before:
                return False
        return True


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
            value = pickle.loads(pickled, buffers=buffers)
            if type(value) is tables.Table:
                rows, rest = value.parts(memoryview(pickled))
                tables.take_values(pickle.loads(rows))
                value = pickle.loads(rest, buffers=buffers)
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
