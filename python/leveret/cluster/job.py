"""A job: what one submit() or map() has under way, and its pieces, which nodes run.

Steps of a piece: the driver takes() it, the engine runs it, and it lands() here once; what a dead
node had is taken again. All of a job's methods run on the driver's thread.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from typing import Any, Callable

from ..errors import Cancelled, DependencyFailed, LeveretError, Status
from .names import Failure, Head, Report
from .pace import Pace

HEAD_ALWAYS = 4096  # a head up to this size goes with each piece; a larger one is asked for


class Piece:
    """Elements [begin, end) of a job. losses: nodes that died with it. sent: when, the last time.

    downs: how often the worker processes of a node could not start with it, by node. avoid: nodes
    that have it already, or are slow. has_copy: whether it was sent to two. is_apart: whether each
    item is pickled by itself.
    """

    __slots__ = (
        "avoid",
        "begin",
        "data",
        "downs",
        "end",
        "has_copy",
        "is_apart",
        "is_landed",
        "job",
        "key",
        "losses",
        "parcels",
        "sent",
        "tries",
    )

    def __init__(self, job: Job, number: int, begin: int, end: int, data: Any = None) -> None:
        self.job = job
        self.key = f"leveret-{job.key[4:]}-{number}"
        self.begin, self.end = begin, end
        self.data = data
        self.losses = self.tries = 0
        self.downs: dict[str, int] = {}
        self.parcels: dict[str, bytes] = {}
        self.is_landed = self.has_copy = self.is_apart = False
        self.sent = 0.0
        self.avoid: frozenset[str] = frozenset()

    def note_down(self, node: str) -> int:
        """How often the node's worker processes could not start with it, this time too."""
        self.downs[node] = count = self.downs.get(node, 0) + 1
        return count


class Job:
    """The base of tasks and calls.

    after: jobs that must end well before this one begins. total: elements, None while not known.
    """

    stays = False
    may_copy = False  # whether a piece may run on two nodes at a time, when one is slow

    def __init__(self, key: str, pace: Pace, priority: int = 0, after: tuple[Job, ...] = ()):
        self.key = f"job:{key}"
        self.pace = pace
        self.priority = priority
        self.after = after
        self.again: deque[Piece] = deque()
        self.formed = 0
        self.under_way: dict[str, Piece] = {}
        self.parcels: dict[str, bytes] = {}  # what goes with each piece
        self.head = b""
        self.head_to_pack: Head | None = None
        self.done = self.failed = self.pieces = self.lost = 0
        self.total: int | None = None
        self.failures: list[Failure] = []
        self.error: BaseException | None = None  # of the job as a whole
        self.nodes: set[str] = set()
        self.unfit: set[str] = set()  # nodes that cannot run it, a library of which they lack
        self.leaves_copies = False  # some run, and nobody waits for them
        self.finished = threading.Event()
        self.callbacks: list[Callable[[], object]] = []
        self.callback_lock = threading.Lock()

    def begin_with(self, head: Head) -> None:
        """What each piece needs; its arrays are read when what must be done before is done."""
        if self.after:
            self.head_to_pack = head
        else:
            self.pack(head)

    def pack(self, head: Head) -> None:
        self.head = pickle.dumps(head, 5)
        if len(self.head) <= HEAD_ALWAYS:
            self.parcels = {self.key: self.head}

    # What a kind of job does its own way.

    def cut(self, nodes: int, slots: int) -> tuple[int, int, Any] | None:
        """The next elements, and what else the piece has; None: there are none now."""
        raise NotImplementedError

    def piece_bytes(self) -> int:
        """What a piece brings along, about."""
        return 0

    def arrays(self, piece: Piece) -> tuple[Any, ...]:
        """What the piece brings along."""
        raise NotImplementedError

    def take_in(self, piece: Piece, report: Report, handle: Any) -> None:
        """What the piece has made becomes visible."""
        raise NotImplementedError

    def parcel(self, key: str) -> bytes | None:
        """What a node has asked for."""
        raise NotImplementedError

    # Pieces.

    def is_ready(self) -> bool:
        """Whether what must be done before is done; if it has failed, so has this."""
        if not all(other.finished.is_set() for other in self.after):
            return False
        bad = next((each for each in self.after if each.outcome() is not None), None)
        if bad is not None and not self.finished.is_set():
            text = f"did not run: what it was to come after has failed: {bad.outcome()}"
            self.finish(DependencyFailed(text, Status.DEPENDENCY_FAILED))
        self.after = ()
        head, self.head_to_pack = self.head_to_pack, None
        if head is not None and not self.finished.is_set():
            try:
                self.pack(head)
            except Exception as error:  # no memory, say
                self.finish(error)
        return not self.finished.is_set()

    def take(self, nodes: int, slots: int) -> Piece | None:
        if self.again:
            piece = self.again.popleft()
        else:
            found = self.cut(nodes, slots)
            if found is None:
                return None
            piece = Piece(self, self.formed, *found)
            self.formed += 1
        self.number(piece)
        return piece

    def number(self, piece: Piece) -> None:
        """The piece is sent, once more maybe: under another key then."""
        piece.tries += 1
        if piece.tries > 1:
            piece.key = piece.key.partition("+")[0] + f"+{piece.tries}"
        piece.sent = time.monotonic()
        self.under_way[piece.key] = piece

    def copies(self, piece: Piece) -> list[str]:
        """The keys under which it is on its way."""
        if not piece.has_copy:
            return []
        return [key for key, each in self.under_way.items() if each is piece]

    def goes_on(self, piece: Piece) -> bool:
        """Whether it is under way elsewhere, so that this end of it does not count."""
        keys = self.copies(piece)
        if not keys:
            return False
        piece.key, piece.has_copy = keys[0], len(keys) > 1
        piece.avoid = frozenset()
        return True

    def late(self, now: float) -> list[Piece]:
        """Pieces that are under way for far longer than others took, and are so but once."""
        if not self.may_copy or self.again or not self.pace.seconds:
            return []
        return [
            piece
            for piece in self.under_way.values()
            if not piece.has_copy
            and now - piece.sent > self.pace.late_seconds(piece.end - piece.begin)
        ]

    def land(self, piece: Piece, report: Report, handle: Any) -> None:
        """Takes in what a piece has made, once."""
        if piece.is_landed or self.finished.is_set():
            return
        piece.is_landed = True
        self.nodes.add(report.node)
        self.pace.note(piece.end - piece.begin, report.seconds)
        self.take_in(piece, report, handle)
        self.failures += report.failures
        lost = sum(end - begin for begin, end, _ in report.failures)
        self.failed += lost
        self.done += piece.end - piece.begin - lost
        self.pieces += 1

    def look_for_end(self) -> None:
        if self.finished.is_set() or self.under_way or self.again:
            return
        if self.total is not None and self.done + self.failed >= self.total:
            self.finish(None)

    def finish(self, error: BaseException | None) -> None:
        """The job has its outcome, and lets go of everything else."""
        if self.finished.is_set():
            return
        self.error = error
        self.let_go()
        with self.callback_lock:
            self.finished.set()
            called, self.callbacks = self.callbacks, []
        for each in called:
            each()

    def let_go(self) -> None:
        """Frees what only pieces need."""
        self.head, self.parcels, self.head_to_pack = b"", {}, None

    def call_back(self, function: Callable[[], object]) -> None:
        """Calls it when the job has ended, on the driver's thread, or now. Any thread."""
        with self.callback_lock:
            if not self.finished.is_set():
                self.callbacks.append(function)
                return
        function()

    def outcome(self) -> BaseException | None:
        """Why a job that has finished did not end well."""
        return self.error or (self.failures[0].error if self.failures else None)


def cancelled() -> LeveretError:
    return Cancelled("cancelled; what had landed before stays", Status.CANCELLED)
