"""Arrays in shared memory: worker processes use them where they are."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _core
from .errors import OutOfMemory, Status

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BYTES_MAX = 1 << 47  # what a process can address


def shared_array(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = float
) -> np.ndarray[Any, np.dtype[Any]]:
    """A NumPy array of zeros in shared memory, contiguous, aligned to 128 bytes.

    On machine 'processes', tasks read and write it in place, without copying, as `in` and `out`;
    `inout` is copied, so that a task whose worker dies can be run again, unless the Runtime was
    opened with staging='in_place'. As an argument of a ProcessExecutor's call, it and its views
    arrive as the same memory: the function may write to it. Views keep the memory alive.

    Raises OutOfMemory when there is none left, TypeError for Python objects. Thread safety: any
    thread. Cost: microseconds, and the clearing of the memory.
    """
    import numpy as np

    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"shared memory cannot hold Python objects (dtype {kind})")
    try:
        sizes: Any = (shape,) if hasattr(shape, "__index__") else shape
        whole = tuple(map(operator.index, sizes))
    except TypeError:
        raise TypeError(f"shape must be an int or a tuple of them, not {shape!r}") from None
    if any(each < 0 for each in whole):
        raise ValueError(f"shape must have no negative number, not {shape!r}")
    count = math.prod(whole)
    if count * kind.itemsize > BYTES_MAX:
        text = f"a shared array of {count * kind.itemsize} bytes: no machine has so much memory"
        raise OutOfMemory(text, Status.OUT_OF_MEMORY)
    block = _core.SharedBlock(max(1, count * kind.itemsize), is_array=True)
    flat: np.ndarray[Any, np.dtype[Any]] = np.frombuffer(memoryview(block), kind, count)
    return flat.reshape(whole)


def array_at(
    address: int, shape: Any, strides: Any, dtype: Any, offset: int = 0, can_write: bool = True
) -> Any:
    """The array that another process knows by its lowest address.

    offset: bytes from there to the array's first item, for one that runs backwards. can_write:
    False for one that is read-only there.
    """
    import numpy as np

    extent = sum((n - 1) * abs(s) for n, s in zip(shape, strides)) + dtype.itemsize
    block = _core.block_at(address)
    if block is None or not block.is_array:  # where it was, something else may be by now
        if not _core.is_shared(address, extent):
            raise ValueError("an array in shared memory that this process does not have")
        if _core.worker_index() is None:
            raise ValueError("an array in shared memory that was dropped here: keep it meanwhile")
        flat = np.frombuffer(_core.memory_at(address, extent), np.uint8)
    else:
        flat = np.frombuffer(memoryview(block), np.uint8, extent, address - block.address)
    made = np.ndarray(shape, dtype, flat, offset, strides)
    if not can_write:
        made.flags.writeable = False
    return made
