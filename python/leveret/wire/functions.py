"""Which functions are the same for many calls, so that workers may keep them.

A function that can be imported is: it goes by its name. One that goes by value is, too, while
nothing that can change is reachable from it: it has no closure, and its defaults and all that its
code names are constants, modules or such functions. Whether that still holds is looked up before
each call. What else its code names goes beside it: classes (beside.py), and globals that are no
constants (tables.py). Other functions are pickled for each call, and no call sees what another did
to one.
"""

from __future__ import annotations

import pickle
import types
import weakref
from typing import Any

from ..interrupts import raise_signals
from . import spaces
from .beside import Beside
from .pickling import dump_alone
from .watch import Watch, goes_by_name

# What the host keeps of functions that go by value, each and together; the others are few bytes.
PICKLED_BYTES_MAX, ALL_BYTES_MAX = 64 << 10, 8 << 20
KNOWN_MAX = 4096


class Known:
    """A function that workers may keep. watch: None if it goes by its name."""

    __slots__ = ("is_bare", "pickled", "watch")

    def __init__(self, pickled: bytes, watch: Watch | None) -> None:
        self.pickled = pickled
        self.watch = watch
        # Whether nothing goes with it.
        self.is_bare = watch is None or not (watch.kinds or watch.needed)

    def put_beside(self, beside: Beside) -> bool:
        """Has the classes that it names go with the call; False where one must go by value."""
        return self.watch is None or _put_beside(self.watch, beside)

    def needed(self) -> spaces.Needed:
        """Globals that go in front of each call."""
        return {} if self.watch is None else spaces.values_of(self.watch.needed)


def _put_beside(watch: Watch, beside: Beside) -> bool:
    kinds = [ref() for ref in watch.kinds]
    return all(kind is not None and beside.add(kind) for kind in kinds)


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
    needed: spaces.Needed = {}
    beside = Beside()
    if not _put_beside(watch, beside):
        return None
    count = len(beside.known)
    data = dump_alone(function, needed, beside)[0]
    front = watch.constants_in_front(needed)
    if front is None or beside.left_out or len(front) + len(data) > PICKLED_BYTES_MAX:
        return None
    if len(beside.known) != count:  # it has a class that the watch does not know of
        return None
    return Known(front + data, watch)


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
