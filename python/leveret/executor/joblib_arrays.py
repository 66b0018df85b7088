"""Large arrays of the batches of one Parallel call: each is put into shared memory once.

An array is known by its place and shape. Its copy is used by all batches of the call, and dropped
with the array, when the call is over, or when there are too many that no batch under way uses. So a
program may change an array between two calls of Parallel; between two tasks of one call it cannot,
as joblib looks ahead: it takes some tasks from the program's generator at a time.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    import numpy as np

    _Array = np.ndarray[Any, np.dtype[Any]]

# What copies that no batch uses may take. (Sliding windows over one array make new ones for ever.)
IDLE_BYTES_MAX = 256 << 20


class Lent:
    """A copy in shared memory."""

    def __init__(self, array: _Array) -> None:
        import numpy as np

        self.block = _core.SharedBlock(array.nbytes, False)
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        self.order = order
        place = memoryview(self.block)
        self.copy: _Array = np.ndarray(array.shape, array.dtype, place, 0, None, order)
        self.copy[...] = array
        self.users = 0  # batches under way
        self.owner: weakref.ref[Any] | None = None


class LentArrays:
    """The copies of one Parallel call. Thread safety: any thread."""

    def __init__(self, bytes_min: int | None, mode: str | None) -> None:
        self.bytes_min = bytes_min
        self.mode = mode
        self.lock = threading.RLock()
        self.known: OrderedDict[Any, Lent] = OrderedDict()  # the latest used last

    def is_large(self, array: Any) -> bool:
        return (
            self.bytes_min is not None
            and array.nbytes > self.bytes_min
            and not array.dtype.hasobject
        )

    def lend(self, array: _Array) -> Lent:
        """The copy of an array; give_back() it. Raises MemoryError."""
        address: int = array.__array_interface__["data"][0]
        key = (address, array.shape, array.strides, array.dtype)
        with self.lock:
            lent = self.known.get(key)
            if lent is None:
                lent = self.known[key] = Lent(array)
                lent.owner = weakref.ref(_owner_of(array), lambda owner: self.forget(key, owner))
            self.known.move_to_end(key)
            lent.users += 1
            return lent

    def forget(self, key: Any, owner: weakref.ref[Any]) -> None:
        """For an array that is no more; another one may have its place."""
        with self.lock:
            lent = self.known.get(key)
            if lent is not None and lent.owner is owner:
                del self.known[key]

    def give_back(self, taken: list[Lent]) -> None:
        """For a batch that has ended."""
        with self.lock:
            for each in taken:
                each.users -= 1
            idle = [(key, each) for key, each in self.known.items() if each.users == 0]
            size = sum(each.block.size for _, each in idle)
            for key, each in idle:
                if size <= IDLE_BYTES_MAX:
                    break
                size -= each.block.size
                del self.known[key]

    def clear(self) -> None:
        with self.lock:
            self.known.clear()


def _owner_of(array: _Array) -> Any:
    """What lives as long as the array's memory: views are made anew for each task."""
    import numpy as np

    return array.base if isinstance(array.base, np.ndarray) else array
