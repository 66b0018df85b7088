"""On a node: one slice of a task, with private outputs, and what becomes of it when some die.

1. The outputs are this slice's own: nobody sees them before the slice is done.
2. The runtime finds the elements that end their worker; all others are done by the same submit.
3. When several failed, those that are known are left out, and the rest is run again, in halves
   where nothing is known, until each failure has its place or too many were found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .._core import Sliced
from ..errors import Cancelled, Closed, LeveretError, PoolDown, TaskFailed
from .names import Failure, Head

if TYPE_CHECKING:
    from .. import _core

# Past so many failures of one slice what is left of it fails as a whole: each costs deaths.
FAILURES_MAX = 64

# Runs a task, given the arguments and options of Runtime.submit(), to its end.
RunTask = Callable[[tuple[Any, ...], dict[str, Any]], None]


class Slice:
    """Elements [begin, end) of a task on this node."""

    def __init__(
        self,
        head: Head,
        procedure: _core.Procedure,
        begin: int,
        end: int,
        arrays: tuple[Any, ...],
        run_task: RunTask,
    ) -> None:
        self.begin, self.end = begin, end
        self.run_task = run_task
        self.procedure = procedure
        self.options = dict(head.options)
        self.failures: list[Failure] = []
        self.places: list[tuple[str, Any]] = []
        self.originals: list[Any] = []  # of outputs
        self.outputs: list[Any] = []
        self.base: int | None = None
        self._take(head, list(arrays))

    def _take(self, head: Head, arrays: list[Any]) -> None:
        import numpy as np

        for kind, given in head.arguments:
            if kind == "range" and not self.places_cut:
                self.base = given + self.begin  # messages tell the range's own numbers
            if kind in ("value", "range"):
                self.places.append((kind, given))
            elif kind == "whole":
                self.places.append((kind, _in_rows(np, given)))
            else:
                array = arrays.pop(0)
                made = _in_rows(np, array) if kind == "in" else self._private(np, array)
                self.places.append(("array", made))

    @property
    def places_cut(self) -> bool:
        return any(kind in ("array", "range") for kind, _ in self.places)

    def _private(self, np: Any, array: Any) -> Any:
        """The memory of an output. A tuple is the shape and type of one that is no input."""
        is_new = isinstance(array, tuple)
        private = np.zeros(*array) if is_new else np.array(array, order="C", copy=True)
        self.originals.append(0 if is_new else array)
        self.outputs.append(private)
        return private

    def run(self) -> None:
        """Runs it; failures say what is not done. Raises what no element is to blame for."""
        if self.end > self.begin:
            self._run(0, self.end - self.begin)

    def _run(self, begin: int, end: int) -> None:
        todo = [(begin, end)]
        while todo:
            first, last = todo.pop()
            error = self._try(first, last)
            if error is None:
                continue
            found = error.elements
            if found is None or error.failures > 1:
                self._undo(first, last)
            if found is None or len(self.failures) >= FAILURES_MAX:
                self._fail(first, last, error)
                continue
            shift = first if self.base is None else -self.base
            low, high = found[0] + shift, found[1] + shift
            self._fail(low, high, error)
            if error.failures > 1:
                todo += [each for each in ((first, low), (high, last)) if each[1] > each[0]]

    def _try(self, begin: int, end: int) -> TaskFailed | None:
        arguments: list[Any] = []
        for kind, given in self.places:
            if kind == "array":
                arguments.append(Sliced(given[begin:end]))
            elif kind == "range":
                offset = given + self.begin
                arguments.append((offset + begin, offset + end))
            else:
                arguments.append(given)
        try:
            self.run_task((self.procedure, *arguments), self.options)
        except (Cancelled, Closed, PoolDown):
            raise
        except TaskFailed as error:
            return error
        return None

    def _undo(self, begin: int, end: int) -> None:
        """Its elements are as they were: a second run begins from there."""
        for original, private in zip(self.originals, self.outputs):
            private[begin:end] = original if isinstance(original, int) else original[begin:end]

    def _fail(self, begin: int, end: int, error: LeveretError) -> None:
        self._undo(begin, end)
        self.failures.append(Failure(self.begin + begin, self.begin + end, error))


def _in_rows(np: Any, array: Any) -> Any:
    """An input as a Runtime takes it: an engine moves arrays in whatever order they were."""
    if isinstance(array, tuple):  # of a chunk that nobody has written
        return np.zeros(*array)
    first = array[:1] if array.ndim > 1 else array
    return array if first.flags.c_contiguous else np.ascontiguousarray(array)
