"""Classes that go by value, beside what needs them: pickled once, as long as they stay the same.

1. The host keeps a class's pickle, and what shows that the class has changed (class_watch.py). It
   is looked at before each call. Other such classes that it names go beside it, each by itself.
2. What needs the class has only its number. Objects that both have would become two; where a pickle
   has one of the class's own, the class goes in that pickle.
3. A worker keeps what it has made of each by the digest of the pickle, which the host sends again
   and again: it cannot know which worker takes a call. Where a call has changed the class, or it is
   gone, the pickle is read again.
"""

from __future__ import annotations

import struct
import types
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from cloudpickle import cloudpickle

from ..interrupts import raise_signals
from . import by_value, classes, spaces
from .class_watch import ClassWatch
from .pickling import dump_alone
from .stored import digest_of

# What the host keeps. A class with a longer pickle goes with each call.
PICKLED_BYTES_MAX, KNOWN_MAX = 64 << 10, 256

_FROM_SPACE = spaces.from_space.__name__.encode()

# In front of a class: its digest, and the bytes of its pickle.
HEAD = struct.Struct("<16sI")


class KnownClass:
    def __init__(self, watch: ClassWatch, pickled: bytes, number: str) -> None:
        self.watch = watch
        self.sent = HEAD.pack(digest_of(pickled), len(pickled)) + pickled
        self.number = number


_known: OrderedDict[int, KnownClass] = OrderedDict()  # by id() of the class
_refused: weakref.WeakSet[type] = weakref.WeakSet()


def forget() -> None:
    """After sys.path changed, and when an executor is closed: what is in classes is kept alive."""
    _known.clear()
    _refused.clear()


class _Alone:
    """Lets one class be pickled, and others only be named: they come beside it."""

    is_alone = True

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.named: set[type] = set()

    def reduce(self, kind: type) -> Any:
        if kind is self.kind:
            return None
        self.named.add(kind)
        return by_value.skeleton_of(kind)

    def reduce_function(self, _: Any) -> Any:
        return None

    def has_own_of(self, _: Any) -> bool:
        return False


def _learn(kind: type) -> KnownClass | None:
    watch = ClassWatch(kind)
    if not watch.takes_class():
        return None
    needed: spaces.Needed = {}
    alone = _Alone(kind)
    try:
        data = dump_alone((kind, classes.own_names(kind)), needed, alone)[0]
        front = watch.constants_in_front(needed)
    except (MemoryError, RecursionError):  # the class is not to blame
        raise
    except Exception as error:  # the call says so
        raise_signals(error)
        return None
    if front is None or len(front) + len(data) > PICKLED_BYTES_MAX:
        return None
    if not alone.named.issubset(ref() for ref in watch.kinds):  # nothing else brings those
        return None
    if watch.needed and _FROM_SPACE in data:  # those globals are set after the class
        return None
    return KnownClass(watch, front + data, cloudpickle._get_or_create_tracker_id(kind))


def _known_class(kind: type) -> KnownClass | None:
    """None: it goes with each call."""
    known = _known.get(id(kind))
    if known is not None and known.watch.kind() is kind and known.watch.holds():
        return known
    _known.pop(id(kind), None)
    if kind in _refused:
        return None
    known = _learn(kind)
    if known is None:
        _refused.add(kind)
        return None
    _known[id(kind)] = known
    while len(_known) > KNOWN_MAX:
        _known.popitem(last=False)
    return known


class Beside:
    """The classes that go beside one call or chunk."""

    is_alone = False

    def __init__(self) -> None:
        self.known: dict[type, KnownClass] = {}
        self.left_out: set[type] = set()
        self.owned: set[int] = set()  # by id(), what is the classes' own
        self.named: set[int] = set()  # of that, what pickles only name

    def reduce(self, kind: type) -> Any:
        """How a class is pickled; None: by value."""
        if not self.add(kind):
            return None
        return by_value.class_beside, (self.known[kind].number,)

    def reduce_function(self, function: types.FunctionType) -> Any:
        """The same for a function that may be one of a class's."""
        kind = by_value.class_with_function(function)
        if kind is None or not self.add(kind):
            return None
        self.named.add(id(function))
        return by_value.function_beside, (self.known[kind].number, function.__name__)

    def add(self, kind: type) -> bool:
        """Takes a class, and those that it names; False where one of them must go by value."""
        if kind in self.known:
            return True
        if kind in self.left_out:
            return False
        found: dict[type, KnownClass] = {}
        owned = set(self.owned)
        left = [kind]
        while left:
            each = left.pop()
            if each in found or each in self.known:
                continue
            known = None if each in self.left_out else _known_class(each)
            if known is None or not owned.isdisjoint(known.watch.owned):
                self.left_out.add(kind)
                return False
            owned |= known.watch.owned
            found[each] = known
            left += [other for ref in known.watch.kinds if (other := ref()) is not None]
        self.known.update(found)
        self.owned = owned
        return True

    def has_own_of(self, memo: Any) -> bool:
        """Whether a pickle, of which this is the memo, has an object that is a class's own."""
        owned = self.owned - self.named
        return bool(owned) and not memo.copy().keys().isdisjoint(owned)

    def needed(self) -> spaces.Needed:
        """Globals that the classes' functions name."""
        homes = {home for known in self.known.values() for home in known.watch.needed}
        return spaces.values_of(homes)

    def sent(self) -> bytes:
        """What goes with the call, bases first."""
        if not self.known:
            return b""
        kinds = sorted(self.known, key=lambda kind: len(kind.__mro__))
        return b"".join(self.known[kind].sent for kind in kinds)


def split_sent(sent: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """(digest, pickle) of each class."""
    at = 0
    while at < len(sent):
        digest, size = HEAD.unpack_from(sent, at)
        at += HEAD.size + size
        yield digest, sent[at - size : at]
