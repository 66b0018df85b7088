"""Batches of joblib's calls on their way: one future for each, whatever becomes of its calls.

A batch is pickled at once, so that the caller may change small arguments afterwards. It runs as one
call of the executor. When its process dies on every attempt, the worker's mark says which call was
running: that one is run alone, those before it and those behind it as smaller batches, until only
calls are left that end their process when they run alone.
"""

from __future__ import annotations

import io
import threading
from concurrent import futures
from functools import partial
from pickle import PickleBuffer, PicklingError
from typing import Any

from .. import _core
from ..errors import Overran, WorkerDied
from ..wire import arrays as wire_arrays
from ..wire.pickling import _Pickler, dumps
from ..wire.stored import Stored
from ..worker.batches import lent_array, run_batch
from .joblib_arrays import Lent, LentArrays
from .joblib_backend import registered
from .process_executor import ProcessExecutor

_BESIDE_BYTES_MIN = 64 << 10  # above that a batch is not copied into the request


class _BatchPickler(_Pickler):
    """Lends large arrays, and lets joblib send memory-mapped ones by the name of their file."""

    def __init__(self, *about: Any, arrays: LentArrays, taken: list[Lent], **options: Any) -> None:
        super().__init__(*about, **options)
        self.arrays = arrays
        self.taken = taken

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind.__module__ == "numpy" and kind.__name__ in ("ndarray", "memmap"):
            made = self.reduce_array(value)
            if made is not None:
                return made
        return super().reducer_override(value)

    def try_out(self, value: Any) -> None:
        _Pickler(io.BytesIO(), {}).dump(value)  # which lends nothing

    def reduce_array(self, array: Any) -> Any:
        mapped = _in_file(array)
        if mapped is not None:
            return mapped
        if not self.arrays.is_large(array) or wire_arrays.is_shared(array):
            return None
        try:
            lent = self.arrays.lend(array)
        except MemoryError:  # it is pickled as others are
            return None
        self.taken.append(lent)
        block, copy = lent.block, lent.copy
        about = (block.address, block.size, copy.shape, copy.dtype, lent.order, self.arrays.mode)
        return lent_array, about


def _in_file(array: Any) -> Any:
    """What joblib makes of an array over a memory-mapped file; None for others."""
    import numpy as np
    from joblib._memmapping_reducer import _get_backing_memmap, _reduce_memmap_backed

    mapped = _get_backing_memmap(array)
    if isinstance(mapped, np.memmap) and mapped.filename is not None:
        return _reduce_memmap_backed(array, mapped)
    return None


class Packed:
    """The pickle of a batch as an argument."""

    def __init__(self, batch: Any, arrays: LentArrays) -> None:
        self.items = batch.items
        self.arrays = arrays
        self.taken: list[Lent] = []
        self.held: list[Stored] = []
        content = (batch.items, batch._backend, batch._n_jobs, tuple(registered))
        pickler = partial(_BatchPickler, arrays=arrays, taken=self.taken)
        try:
            self.data = dumps(content, 0, pickler, self.held)[0]
        except BaseException:
            self.drop()
            raise

    def __reduce__(self) -> Any:
        is_large = len(self.data) >= _BESIDE_BYTES_MIN
        return memoryview, (PickleBuffer(self.data) if is_large else self.data,)

    def drop(self) -> None:
        """When no call needs it any more."""
        taken, self.taken = self.taken, []
        self.arrays.give_back(taken)
        self.items, self.data, self.held = [], b"", []

    def carried_call(self, first: int, last: int, *_: Any) -> Any:
        """For messages: the call that is at fault, if it is one."""
        if last - first == 1:
            function, args, kwargs = self.items[first]
            return function, tuple(args), dict(kwargs)
        return f"a batch of {last - first} calls", (), {}


class BatchFuture(futures.Future[Any]):
    """The results of a batch in order; or the exception of one of its calls."""

    def __init__(self, executor: ProcessExecutor, on_poison: str) -> None:
        super().__init__()
        self.executor = executor
        self.on_poison = on_poison
        self.guard = threading.Lock()
        self.under_way: set[futures.Future[Any]] = set()
        self.left = 0
        self.is_over = False

    def start(self, batch: Any, arrays: LentArrays, is_one_call: bool) -> None:
        """Sends the batch: as one call, or each of its calls alone."""
        try:
            self.packed = Packed(batch, arrays)
        except Exception as error:
            text = f"Could not pickle the task to send it to the workers: {error!r}"
            made = PicklingError(text)
            made.__cause__ = error
            self.set_exception(made)
            return
        count = len(self.packed.items)
        self.results: list[Any] = [None] * count
        self.send([(0, count)] if is_one_call else [(i, i + 1) for i in range(count)])

    def send(self, ranges: list[tuple[int, int]]) -> None:
        with self.guard:
            self.left += len(ranges)
        for first, last in ranges:
            # In which call a process died is asked only of several.
            mark = _core.SharedBlock(8) if last - first > 1 else None
            where = 0 if mark is None else mark.address
            try:
                inner = self.executor.submit(run_batch, self.packed, first, last, where)
            except BaseException as error:
                self.end(error)
                return
            with self.guard:
                self.under_way.add(inner)
            inner.add_done_callback(partial(self.on_end, first, last, mark))

    def on_end(self, first: int, last: int, mark: Any, inner: futures.Future[Any]) -> None:
        """When a call of the executor has ended."""
        with self.guard:
            self.under_way.discard(inner)
            is_last_of_ended = self.is_over and not self.under_way
        if is_last_of_ended:
            self.packed.drop()
        if inner.cancelled():
            self.end(futures.CancelledError())
            return
        error = inner.exception()
        if error is None:
            self.results[first:last] = inner.result()
        elif not isinstance(error, (WorkerDied, Overran)):
            self.end(error)
            return
        elif mark is not None:
            at = int.from_bytes(memoryview(mark)[:8], "little")
            at = min(max(at, first), last - 1)
            parts = [(first, at), (at, at + 1), (at + 1, last)]
            self.send([part for part in parts if part[0] < part[1]])
        elif self.on_poison == "return":
            self.results[first] = error
        else:
            self.end(error)
            return
        with self.guard:
            self.left -= 1
            is_last = self.left == 0
        if is_last:
            self.end(None)

    def end(self, error: BaseException | None) -> None:
        """Ends the future, once, and what is left of the batch."""
        with self.guard:
            if self.is_over:
                return
            self.is_over = True
            rest = list(self.under_way)
        if not rest:
            self.packed.drop()  # else the last of them does it: they use what was lent
        for each in rest:
            each.cancel()
        if error is None:
            self.set_result(self.results)
        else:
            self.set_exception(error)

    def stop(self) -> bool:
        """Cancels what is not begun; True when something still runs."""
        with self.guard:
            rest = list(self.under_way)
        ended = [each.cancel() or each.done() for each in rest]
        return not all(ended)
