"""Globals of plain values that are what they were, so that their pickles need not be made again.

A list of 200,000 numbers takes 2 ms to pickle, and 0.1 to see that the same objects are in it. So
where a value of constants, tuples, lists and dicts has twice had the same pickle, what is in it is
noted, and looked at before the next call. Of arrays that are too small for a file (stored.py) the
bytes are compared.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

from .. import _core
from . import arrays
from .modules import Home
from .stored import FILE_BYTES_MIN, Held, Part, Stored

CONTAINERS_MAX = 4096  # lists and dicts in a value
BYTES_MIN, ALL_BYTES_MAX = 1 << 10, 64 << 20  # of pickles
SEEN_MAX = 1024


def _about(array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype, array.flags.writeable


class Contents:
    """What is in a value, by identity; of an array, a copy of its bytes.

    may_nest: whether tuples may hold lists and dicts. Who keeps such a tuple keeps what can change.
    """

    def __init__(self, value: Any, may_nest: bool = True) -> None:
        self.value = value
        self.copy = b""
        self.containers: list[Any] | None = None  # None: it is no plain value
        self.items: list[tuple[Any, ...]] = []
        if not arrays.is_ndarray(type(value)):
            self.containers = _core.plain_containers(value, CONTAINERS_MAX, may_nest)
            self.items = [_core.contents_of(each) for each in self.containers or ()]
        elif value.nbytes < FILE_BYTES_MIN and value.flags.c_contiguous and arrays.is_plain(value):
            self.containers, self.copy, self.about = [value], value.tobytes(), _about(value)

    def is_plain(self) -> bool:
        return self.containers is not None

    def are_in(self, value: Any) -> bool:
        if value is not self.value or self.containers is None:
            return False
        if self.copy:
            return _about(value) == self.about and _core.same_bytes(value, self.copy)
        return all(map(_core.has_contents, self.containers, self.items))


class Same:
    """The pickle of a value, as it is sent while the value is the same."""

    def __init__(
        self, contents: Contents, digest: bytes, parts: list[Part], held: list[Stored]
    ) -> None:
        self.contents = contents
        self.digest = digest
        self.parts = parts
        self.held = held
        self.size = sum(len(each) for each in parts if isinstance(each, bytes))
        self.size += sum(each.size for each in held)

    def memo(self) -> dict[int, tuple[int, Any]]:
        """As a pickler's, of what may be in common to it and others."""
        return {id(each): (0, each) for each in self.contents.containers or ()}

    def send(self, held: Held) -> list[Part]:
        if held is not None:
            held += self.held
        return self.parts

    def is_sent_for(self, value: Any) -> bool:
        return self.contents.are_in(value) and not any(each.is_spoiled() for each in self.held)


class _Seen:
    """A global as it was pickled last."""

    def __init__(self, value: Any, digest: bytes) -> None:
        self.number = id(value)
        self.digest = digest
        self.is_other = False  # it has more than plain values


_same: OrderedDict[Home, Same] = OrderedDict()
_seen: OrderedDict[Home, _Seen] = OrderedDict()


def forget() -> None:
    """When an executor is closed, as values are kept alive; and in a child, which has others."""
    _same.clear()
    _seen.clear()


os.register_at_fork(after_in_child=forget)


def same_as_sent(home: Home, value: Any) -> Same | None:
    """What is known of a global, if that is still so."""
    same = _same.get(home)
    if same is None:
        return None
    if same.is_sent_for(value):
        return same
    _same.pop(home, None)
    return None


def look(home: Home, value: Any) -> Contents | None:
    """Before a global is pickled: what is in it, if it was the same value before."""
    seen = _seen.get(home)
    if seen is None or seen.number != id(value) or seen.is_other or not seen.digest:
        return None
    contents = Contents(value)
    seen.is_other = not contents.is_plain()
    return None if seen.is_other else contents


def note(
    home: Home,
    value: Any,
    digest: bytes,
    contents: Contents | None,
    parts: list[Part],
    held: list[Stored],
) -> None:
    """After it was pickled. contents: what look() gave."""
    seen = _seen.get(home)
    was_same = seen is not None and seen.number == id(value) and seen.digest == digest
    if seen is None or seen.number != id(value):
        _seen[home] = _Seen(value, digest)
        while len(_seen) > SEEN_MAX:
            _seen.popitem(last=False)
        return
    # A value that changes with each call is looked at with every second.
    seen.digest = digest if was_same or not seen.digest else b""
    if not was_same or contents is None or not contents.are_in(value):
        return
    same = Same(contents, digest, parts, held)
    if BYTES_MIN <= same.size <= ALL_BYTES_MAX:
        _same[home] = same
        while sum(each.size for each in list(_same.values())) > ALL_BYTES_MAX:
            _same.popitem(last=False)
