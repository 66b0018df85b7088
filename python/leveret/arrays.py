"""NumPy's view of memory that other libraries keep: data frames, Arrow, tensors."""

from __future__ import annotations

from typing import Any


def _from_dlpack(value: Any) -> Any:
    import numpy as np

    return np.from_dlpack(value)


def refuse_masked(where: str, array: Any) -> None:
    """A mask is beside the memory that a task would see: TypeError says what to pass instead."""
    import numpy as np

    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{where}: the array has a mask, which a task does not see; pass a.filled(value), or "
            "a.data and a.mask as two arrays"
        )


def overlaps_itself(array: Any) -> bool:
    """Whether two elements may lie in the same memory: broadcast arrays, windows that slide."""
    reach = array.itemsize
    for stride, count in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if stride < reach:
            return True
        reach += stride * (count - 1)
    return False


def memory_of(value: Any, needs_write: bool) -> Any:
    """The memory of `value` as a NumPy array, without a copy where it can be had so.

    Arrays that a task writes must be the value's own memory: TypeError says why there is none,
    BufferError that it cannot be written.
    """
    import numpy as np

    kind = type(value).__name__
    try:
        if not hasattr(value, "__array__"):
            return _from_dlpack(value)
        array = np.asarray(value)
        # Who makes a copy makes another one the second time.
        is_own = array.ctypes.data == np.asarray(value).ctypes.data
    except Exception as error:  # a tensor of another device, say
        raise TypeError(f"the {kind} gives no memory of this computer: {error}") from error
    if not needs_write or (is_own and array.flags.writeable):
        return array
    reason = "is read-only" if is_own else "is only given as a copy"
    raise BufferError(
        f"the memory of the {kind} {reason}, and the procedure writes it; pass an array"
    )
