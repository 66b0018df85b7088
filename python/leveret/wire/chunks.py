"""The calls of a chunk: each gets its own copy of what it is given, and its result is its own.

Constants are pickled together. What can change is pickled for each call apart, so that no call sees
what the one before did to it, and so is each result, before the next call can change it. Classes
that go by value, and globals, go once for all items. In front of each call the worker sees that the
classes are what they were sent as.
"""

from __future__ import annotations

from collections.abc import Iterator
from pickle import PickleBuffer
from pickle import dumps as _dumps
from pickle import loads as _loads
from time import perf_counter_ns
from typing import Any

from ..interrupts import raise_signals
from .beside import Beside
from .errors import load_error
from .functions import Known
from .pickling import (
    APART,
    ATOMS,
    CALL_BUFFERS_MAX,
    dump_item,
    dump_result,
    dumps,
    globals_in_front,
)
from .spaces import Needed
from .stored import Held, Stored, refer

# A worker stops between two calls of a chunk after so long.
CHUNK_NS_MAX = 10_000_000

# A function that takes so long to pickle does so in a tenth of the time at most.
LONG_NS, SHARE = 10_000_000, 10

# A value that was pickled apart: its pickle, and its buffers.
Apart = tuple[bytes, list[Any]]


def _is_constant(value: Any) -> bool:
    kind = type(value)
    return kind in ATOMS or (kind is tuple and ATOMS.issuperset(map(type, value)))


def _apart(value: Any, needed: Needed, beside: Beside, held: Held) -> Apart:
    data, buffers = dump_item(value, needed, beside)
    return data, [PickleBuffer(each) for each in refer(buffers, held)]


class _Made:
    """A function as chunks take it along."""

    def __init__(self, function: Any, known: Known | None) -> None:
        self.stored: list[Stored] = []
        self.known = known
        beside = Beside()
        needed = {} if known is None else known.needed()
        if known is not None:
            known.put_beside(beside)
        self.apart = _apart(function, needed, beside, self.stored) if known is None else None
        self.front = globals_in_front(needed, self.stored, beside)
        self.homes = needed.keys()
        self.kinds = list(beside.known)

    def goes_with(self, known: Known | None, beside: Beside) -> bool:
        """Whether it is of that function, and its classes still go beside it."""
        return known is self.known and all(map(beside.add, self.kinds))


class Carried:
    """The function of a map, as its chunks take it along. Thread safety: none.

    Where its globals are so large that they take long to write, the chunks of some time get them as
    they were at its begin: else the host would do little else.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.latest: _Made | None = None  # what took long
        self.end_ns = 0  # of the time for which that is sent

    def make(self, known: Known | None, beside: Beside) -> _Made:
        """known: what workers keep of it. beside: gets its classes."""
        begin = perf_counter_ns()
        latest = self.latest
        if latest is not None and begin < self.end_ns and latest.goes_with(known, beside):
            return latest
        self.latest = None
        made = _Made(self.function, known)
        end = perf_counter_ns()
        if end - begin >= LONG_NS:
            self.latest, self.end_ns = made, end + SHARE * (end - begin)
        made.goes_with(known, beside)
        return made


def dump_chunk(
    carried: Carried, known: Known | None, beside: Beside, items: list[Any], held: list[Stored]
) -> tuple[int, bytes, list[memoryview]]:
    """(flag, pickle, buffers) of a chunk. known: what workers keep of its function."""
    is_bare = known is not None and known.is_bare
    if is_bare and all(ATOMS.issuperset(map(type, item)) for item in items):
        return 0, _dumps(items, 5), []
    made = carried.make(known, beside)
    held += made.stored
    needed: Needed = {}
    apart = [_apart(item, needed, beside, held) for item in items]
    more = {home: value for home, value in needed.items() if home not in made.homes}
    fronts = [each for each in (made.front, globals_in_front(more, held, beside)) if each]
    return APART, *dumps((made.apart, fronts, apart), CALL_BUFFERS_MAX)


class Results:
    """What a worker gives back of a chunk."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.buffers: dict[int, list[Any]] = {}  # of those that were pickled apart
        self.errors: dict[int, bytes] = {}  # of those that raised

    def add(self, value: Any) -> None:
        if _is_constant(value):
            self.done.append(value)
            return
        data, buffers = dump_result(value)
        self.buffers[len(self.done)] = [PickleBuffer(each) for each in buffers]
        self.done.append(data)

    def add_error(self, pickled: bytes) -> None:
        self.errors[len(self.done)] = pickled
        self.done.append(None)

    def parts(self) -> tuple[list[Any], dict[int, list[Any]], dict[int, bytes]]:
        return self.done, self.buffers, self.errors


class Unreadable(Exception):
    """A result, or what a call has raised, cannot be unpickled: why."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def outcomes_of(parts: Any) -> Iterator[tuple[Any, BaseException | None]]:
    """In the host: (result, None) or (None, error) of each call; the error may be Unreadable."""
    done, buffers, errors = parts
    del parts
    done.reverse()
    for index in range(len(done)):
        value = done.pop()
        error: BaseException | None = None
        try:
            if index in errors:
                error = load_error(errors.pop(index))
            elif index in buffers:
                value = _loads(value, buffers=buffers.pop(index))
        except BaseException as why:  # an unpickler may raise what it likes
            raise_signals(why)
            error = Unreadable(why)
        if error is not None:
            yield None, error
            continue
        last = [value]
        del value
        yield last.pop(), None  # nothing here keeps what the caller has got
