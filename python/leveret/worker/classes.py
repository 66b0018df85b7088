"""The classes of calls, in a worker: made once, and set again where a call has changed them.

The host sends a class's pickle with each call that needs it (wire/beside.py).
"""

from __future__ import annotations

from collections import OrderedDict

from ..wire import spaces
from ..wire.beside import split_sent
from ..wire.by_value import Made
from ..wire.class_watch import ClassWatch
from .functions import functions

KEPT_MAX = 256


class _Kept:
    def __init__(self, watch: ClassWatch, made: Made) -> None:
        self.watch = watch
        self.given = made.given
        self.seen = spaces.Changes.count

    def refresh(self) -> bool:
        """Sets the globals that came with it, if others were set since; False: it has changed."""
        if not self.watch.holds():
            return False
        if self.seen != spaces.Changes.count:
            for space, names in self.given:
                space.receive(names)
            self.seen = spaces.Changes.count
        return True


class Classes:
    """What this process has made, by the digests of their pickles."""

    def __init__(self) -> None:
        self.kept: OrderedDict[bytes, _Kept] = OrderedDict()
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
        watch = ClassWatch(kind, names)
        if watch.takes_class():
            self.kept[digest] = _Kept(watch, made)
            while len(self.kept) > KEPT_MAX:
                self.kept.popitem(last=False)
        made_kind: type = kind
        return made_kind


classes = Classes()
