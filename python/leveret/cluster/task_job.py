"""Tasks over sliced arrays as a job: which slices there are, and how their outputs land.

What a slice has made is written into the caller's arrays here, on the driver, when its report
comes, and at no other time: a slice that was lost, or ran twice, is visible once.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..errors import LeveretError, TaskFailed
from . import libraries
from .array import ClusterArray
from .job import Job, Piece
from .names import Failure, Head, NodeSettings, ProcedureName, Report
from .pace import Pace

SLICE_BYTES_MAX = 32 << 20  # of arguments: what engines move as one message


class Cut(NamedTuple):
    """An argument that is cut. kind: "in", "out", "inout". place: its position in the call."""

    kind: str
    array: Any
    place: int


class Plan(NamedTuple):
    """A call that was checked. arguments: for the head, one for each that the caller passes.

    cuts: those that are cut. length: of each along its first axis.
    """

    arguments: tuple[tuple[str, Any], ...]
    cuts: list[Cut]
    length: int


class TaskJob(Job):
    """A procedure over sliced arrays.

    bounds: where slices must begin, for arrays that lie on nodes; else as the pace says.
    """

    may_copy = True  # a procedure has its arguments, and nothing else

    def __init__(
        self,
        key: str,
        settings: NodeSettings,
        procedure: ProcedureName,
        plan: Plan,
        options: dict[str, Any],
        grain: int,
        pace: Pace,
        priority: int,
        after: tuple[Job, ...],
    ) -> None:
        super().__init__(key, pace, priority, after)
        self.procedure = procedure
        self.cuts = cuts = plan.cuts
        self.total = plan.length
        self.next = 0
        self.grain = grain
        lying = [each.array for each in cuts if isinstance(each.array, ClusterArray)]
        self.bounds: list[int] | None = list(lying[0].bounds) if lying else None
        self.stays = any(isinstance(c.array, ClusterArray) and c.kind != "in" for c in cuts)
        self.row_bytes = sum(_row_bytes(each.array) for each in cuts)
        self.most = max(1, SLICE_BYTES_MAX // max(1, self.row_bytes))
        head = Head(self.key, settings, procedure, plan.arguments, tuple(options.items()))
        self.begin_with(head)

    def cut(self, nodes: int, slots: int) -> tuple[int, int, Any] | None:
        begin, total = self.next, self.total or 0
        if begin >= total:
            return None
        if self.bounds is not None:
            end = next(each for each in self.bounds if each > begin)
        else:
            size = self.pace.size(total - begin, total, nodes, slots, self.most)
            end = min(total, begin + max(size, self.grain))
        self.next = end
        return begin, end, None

    def piece_bytes(self) -> int:
        return self.row_bytes * (self.next // max(1, self.formed))

    def arrays(self, piece: Piece) -> tuple[Any, ...]:
        return tuple(self._part(each, piece) for each in self.cuts)

    def _part(self, cut: Cut, piece: Piece) -> Any:
        array = cut.array
        if isinstance(array, ClusterArray):
            handle = array.handle_at(piece.begin)
            if handle is not None:
                return handle
            return (piece.end - piece.begin, *array.shape[1:]), array.dtype.str
        part = array[piece.begin : piece.end]
        return (part.shape, part.dtype.str) if cut.kind == "out" else part

    def parcel(self, key: str) -> bytes | None:
        return self.head if key == self.key else libraries.content_of(key)

    def take_in(self, piece: Piece, report: Report, handle: Any) -> None:
        outputs = [each for each in self.cuts if each.kind != "in"]
        if self.stays:
            made = {c.place: (handle, i) for i, c in enumerate(outputs)}
            for each in outputs:
                if isinstance(each.array, ClusterArray):
                    each.array.take(piece.begin, piece.end, made[each.place])
            return
        holes = sorted((begin, end) for begin, end, _ in report.failures)
        for cut, made in zip(outputs, report.outputs):
            at = piece.begin
            for begin, end in [*holes, (piece.end, piece.end)]:
                if begin > at:
                    cut.array[at:begin] = made[at - piece.begin : begin - piece.begin]
                at = max(at, end)

    def land(self, piece: Piece, report: Report, handle: Any) -> None:
        found = tuple(self._failure(each, piece, report) for each in report.failures)
        super().land(piece, report._replace(failures=found), handle)

    def _failure(self, failure: Failure, piece: Piece, report: Report) -> Failure:
        """The failure in the words of the whole call."""
        begin, end, error = failure
        where = f" at elements [{begin}, {end}) on {report.node}"
        text = _ELEMENTS.sub("", str(error), count=1)
        text = _FIRST_OF.sub("", text)
        named = f"procedure '{self.procedure.name}'"
        text = text.replace(named, named + where, 1) if named in text else f"{text}{where}"
        made = type(error)(text, error.status) if isinstance(error, LeveretError) else error
        if isinstance(made, TaskFailed) and isinstance(error, TaskFailed):
            made.code, made.elements, made.node = error.code, (begin, end), report.node
        return Failure(begin, end, made)

    def let_go(self) -> None:
        super().let_go()
        self.cuts = []


_ELEMENTS = re.compile(r" at elements \[\d+, \d+\)")
_FIRST_OF = re.compile(r" \(the first of \d+ tasks that failed\)")


def _row_bytes(array: Any) -> int:
    return int(math.prod(array.shape[1:]) * array.dtype.itemsize)
