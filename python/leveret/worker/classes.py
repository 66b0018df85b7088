"""The classes of calls, in a worker: made once, and set again where a call has changed them.

The host sends a class's pickle with each call that needs it (wire/beside.py).
"""

from __future__ import annotations

import gc
import types
import weakref
from collections import OrderedDict

from ..wire import by_value, spaces
from ..wire.beside import split_sent
from ..wire.by_value import Made
from ..wire.class_watch import ClassWatch
from .functions import Slots, functions, has_constants

KEPT_MAX = 256


class _Kept:
    def __init__(self, watch: ClassWatch, kind: type, made: Made) -> None:
        self.watch = watch
        self.names = by_value.sent_names.get(kind)
        self.given = made.given
        self.seen = spaces.Changes.count
        # What its own functions name came with it, and is no global that lives in the process.
        self.helpers: list[tuple[weakref.ref[types.FunctionType], Slots]] = []

    def takes(self, made: Made) -> bool:
        """Whether all that came is noticed if it changes."""
        if not self.watch.takes_class():
            return False
        for each in made.functions:
            if self.watch.has_met(each):
                continue
            if each.__closure__ or each.__dict__ or not has_constants(each):
                if not self.watch.takes_part(each):
                    return False
            else:
                self.helpers.append((weakref.ref(each), Slots(each)))
        return True

    def refresh(self) -> bool:
        """Sets the globals that came with it, if others were set since; False: it has changed."""
        kind = self.watch.kind()
        if kind is None or by_value.sent_names.get(kind) is not self.names:
            return False
        if not self.watch.holds():
            return False
        for ref, slots in self.helpers:
            helper = ref()
            if helper is not None and not slots.are_of(helper):
                slots.restore(helper)
        if self.seen != spaces.Changes.count:
            for space, names in self.given:
                space.receive(names)
            self.seen = spaces.Changes.count
        return True


class Classes:
    """What this process has made, by the digests of their pickles."""

    def __init__(self) -> None:
        self.kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self.dropped = 0
        self.now: list[type | None] = []  # what goes by value is known weakly, but not in a call

    def load(self, sent: memoryview) -> None:
        """Before each call: has the classes that came with it be what they were sent as."""
        self.now = [self.load_one(digest, pickled) for digest, pickled in split_sent(sent)]

    def load_one(self, digest: bytes, pickled: memoryview) -> type | None:
        kept = self.kept.get(digest)
        if kept is not None and kept.refresh():
            return kept.watch.kind()
        self.kept.pop(digest, None)
        (kind, names), made = functions.load(pickled)
        new = _Kept(ClassWatch(kind, names), kind, made)
        if new.takes(made):
            self.kept[digest] = new
            if len(self.kept) > KEPT_MAX:
                self.kept.popitem(last=False)
                self.dropped += 1
                if self.dropped % KEPT_MAX == 0:  # they are old: Python looks for such seldom
                    gc.collect()
        made_kind: type = kind
        return made_kind


classes = Classes()
