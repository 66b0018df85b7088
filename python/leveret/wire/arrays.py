"""NumPy arrays in shared memory, and views of them, go by their address."""

from __future__ import annotations

import copyreg
import sys
from functools import partial
from typing import Any, Callable

from .. import _core

reducers: dict[type, Callable[[Any], Any]] = {}
reply_reducers: dict[type, Callable[[Any], Any]] = {}  # in a worker, for what goes to the host

# In a worker: shared memory (address, bytes) that the host has lent for a call only, so that
# results must not refer to it.
lent: list[tuple[int, int]] = []


def _shared_array(
    low: int, offset: int, shape: Any, strides: Any, dtype: Any, can_write: bool
) -> Any:
    from .. import shared

    return shared.array_at(low, shape, strides, dtype, offset, can_write)


def _shared_view(array: Any, kind: type, state: dict[str, Any]) -> Any:
    view = array.view(kind)
    view.__dict__.update(state)
    return view


def _reach(array: Any) -> tuple[int, int, int]:
    """The lowest address of an array, how far behind it is its first item, and its extent."""
    address = array.__array_interface__["data"][0]
    ways = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    before = -sum(way for way in ways if way < 0)
    extent = before + sum(way for way in ways if way > 0) + array.itemsize
    return address - before, before, extent


def is_shared(array: Any, is_reply: bool = False) -> bool:
    """Whether an array goes by its address, so that who gets it may write to it.

    To this process's own workers arrays of its shared_array() do. What else of its own lies in
    shared memory, such as the result of a call, is copied as ordinary memory is; and so is, for
    workers of a worker, what is its host's. is_reply: to the host its own does, if it was not lent.
    """
    if not _core.is_array_shared(array) or array.dtype.hasobject:
        return False
    low = _reach(array)[0]
    own = _core.block_at(low)
    if not is_reply:
        return own is not None and own.is_array
    return own is None and not any(begin <= low < begin + size for begin, size in lent)


def _reduce_array(array: Any, is_reply: bool = False) -> Any:
    if not is_shared(array, is_reply):
        return array.__reduce_ex__(5)
    low, before, _ = _reach(array)
    about = (low, before, array.shape, array.strides, array.dtype, array.flags.writeable)
    return _shared_array, about


def is_of_subclass(value: Any, kind: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and kind is not numpy.ndarray


def reduce_subclass(array: Any, kind: type, is_reply: bool) -> Any:
    """For a view of another class than ndarray; NotImplemented where it has more to pickle."""
    import numpy as np

    own: Any = kind
    has_own = kind in copyreg.dispatch_table or any(
        getattr(own, name) is not getattr(np.ndarray, name)
        for name in ("__reduce__", "__reduce_ex__")
    )
    if has_own or not is_shared(array, is_reply):
        return NotImplemented
    return _shared_view, (array.view(np.ndarray), kind, dict(getattr(array, "__dict__", ())))


def is_ndarray(kind: type) -> bool:
    """Whether it is ndarray itself."""
    if not reducers:
        watch_for_numpy()
    return kind in reducers


def watch_for_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        reducers.setdefault(numpy.ndarray, _reduce_array)
        reply_reducers.setdefault(numpy.ndarray, partial(_reduce_array, is_reply=True))


# By their numbers: Python objects, and what has fields. Higher ones are types of the program's.
_NOT_PLAIN, _NUMBERS_END = (17, 20), 24


def is_plain(array: Any) -> bool:
    """Whether pickle itself writes an ndarray as it should be."""
    dtype = array.dtype
    # Not by isbuiltin, which is 0 for a type that has come out of a pickle. Before NumPy 2.3 a date
    # that has come out of one has metadata: none.
    if dtype.num >= _NUMBERS_END or dtype.num in _NOT_PLAIN or dtype.metadata:
        return False
    return not _core.is_array_shared(array)
