"""A call, from submit() to the end of its future."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .. import _core
from ..said import name_of, shown
from ..wire import chunks
from ..wire.beside import Beside
from ..wire.functions import Known, known_function
from ..wire.pickling import (
    CALL_BUFFERS_MAX,
    CHUNK,
    REQUEST,
    dump_arguments,
    dump_plain_arguments,
    dumps,
)
from ..wire.stored import Stored, refer
from .future import Future
from .names import call_name
from .options import DEFAULTS

if TYPE_CHECKING:
    from .ends import End
    from .mortem import Death


class Work:
    """A call, from submit() to the end of its future.

    Its address is its number: a worker that is in it says so.
    """

    call: _core.Call | None = None  # set by the port when it has been handed over
    end: End | None = None  # how the latest run has ended
    was_told = False  # its future has ended
    was_interrupted = False  # by a signal, while its result was read
    reserved = 0
    retries = 0
    deaths: tuple[Death, ...] = ()  # of workers that were in it
    blind = 0
    was_ended = False  # somebody had it ended
    hits = 0  # how often it was run again for what others had left behind
    count = 1  # calls of the function

    def __init__(
        self,
        future: Future[Any],
        function: Any,
        flags: int,
        args: Any,
        path: bytes = b"",
        ns_max: int = 0,
        seed: int = 0,
        carried: chunks.Carried | None = None,
    ) -> None:
        """path: the pickle of sys.path, when workers do not know it. ns_max: see REQUEST.

        carried: the function of a chunk's map.
        """
        self.future = future
        self.asked = asked = future._asked
        self.function = function
        self.args = args
        self.held: list[Stored] = []
        self.buffers: list[Any]
        known = known_function(function)
        kinds, plain = b"", None
        # First the usual case: nothing goes with the function, nor with what it is given.
        if known is not None and known.is_bare and not flags & CHUNK:
            pickled, plain = known.pickled, dump_plain_arguments(args)
        if plain is not None:
            more, data, self.buffers = plain
            flags |= more
            if self.buffers:
                self.buffers = refer(self.buffers, self.held)
        else:
            flags, pickled, kinds, data = self._dump(known, flags, carried)
        # Under this, how long calls of the function take and how large results are is known.
        self.key = pickled or key_of(function)
        name = b"" if asked is DEFAULTS else asked.sent_name()
        head = REQUEST.pack(
            flags, len(pickled), len(path), len(name), id(self), ns_max, seed, len(kinds)
        )
        self.request = head + pickled + path + name + kinds + data

    def _dump(
        self, known: Known | None, flags: int, carried: chunks.Carried | None
    ) -> tuple[int, bytes, bytes, bytes]:
        """(flags, function, classes, rest) of a request, as pickling.py describes them."""
        function, args = self.function, self.args
        beside = Beside()
        if known is not None and not known.is_bare and not known.put_beside(beside):
            known, beside = None, Beside()
        if flags & CHUNK:
            self.count = len(args)
            given = chunks.Carried(function) if carried is None else carried
            more, data, self.buffers = chunks.dump_chunk(given, known, beside, args, self.held)
            flags |= more
        elif known is None:
            data, buffers = dumps(
                (function, *args), CALL_BUFFERS_MAX, held=self.held, beside=beside
            )
            self.buffers = refer(buffers, self.held)
        else:
            data, buffers = dump_arguments(args, self.held, beside, known.needed())
            self.buffers = refer(buffers, self.held)
        return flags, b"" if known is None else known.pickled, beside.sent(), data

    def size(self) -> int:
        return len(self.request) + sum(map(len, self.buffers))

    def seconds_max(self) -> float:
        """Its time limit, as its worker is told of it."""
        ns_max: int = REQUEST.unpack_from(self.request)[5]
        return ns_max / 1e9

    def name(self) -> str:
        """The call as messages name it."""
        if self.asked.name is not None:
            return self.asked.name
        if isinstance(self.args, list):
            function = name_of(self.function) or shown(self.function)
            return f"{function} on {len(self.args)} items"
        return call_name(self.function, *self.args)


def place_in(waiting: deque[Work], priority: int) -> int:
    """Where a call goes in a queue, the most urgent first: behind those that are as urgent."""
    low, high = 0, len(waiting)
    while low < high:
        middle = (low + high) // 2
        try:
            is_before = waiting[middle].asked.priority < priority
        except IndexError:  # a signal's handler has handed some over
            is_before = True
        if is_before:
            high = middle
        else:
            low = middle + 1
    return low


def key_of(function: Any) -> bytes:
    """What stands for a function that is pickled for each call."""
    kind = type(function)
    name = name_of(function) or f"{kind.__module__}.{kind.__qualname__}"
    return name.encode("utf-8", "backslashreplace")
