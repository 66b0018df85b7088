"""NumPy arrays in shared memory, and views of them, go by their address."""

from __future__ import annotations

import sys
from typing import Any, Callable

from .. import _core

reducers: dict[type, Callable[[Any], Any]] = {}

# In a worker: shared memory (address, bytes) that the host has lent for a call only, so that
# results must not refer to it.
lent: list[tuple[int, int]] = []


def _shared_array(low: int, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
    from .. import shared

    return shared.array_at(low, shape, strides, dtype, offset)


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


def is_shared(array: Any) -> bool:
    """Whether all of an array lies in shared memory that results may refer to."""
    if not _core.is_array_shared(array) or array.dtype.hasobject:
        return False
    if not lent:
        return True
    low = _reach(array)[0]
    return not any(begin <= low < begin + size for begin, size in lent)


def _reduce_array(array: Any) -> Any:
    if not is_shared(array):
        return array.__reduce_ex__(5)
    low, before, _ = _reach(array)
    return _shared_array, (low, before, array.shape, array.strides, array.dtype)


def reduce_subclass(array: Any, kind: type) -> Any:
    """For a view of another class than ndarray; NotImplemented where it has more to pickle."""
    import numpy as np

    own: Any = kind
    if own.__reduce__ is not np.ndarray.__reduce__ or not is_shared(array):
        return NotImplemented
    return _shared_view, (array.view(np.ndarray), kind, dict(getattr(array, "__dict__", ())))


def watch_for_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        reducers.setdefault(numpy.ndarray, _reduce_array)


# By their numbers: Python objects, and what has fields. Higher ones are types of the program's.
_NOT_PLAIN, _NUMBERS_END = (17, 20), 24


def is_plain(array: Any) -> bool:
    """Whether pickle itself writes an ndarray as it should be."""
    dtype = array.dtype
    # Not by isbuiltin, which is 0 for a type that has come out of a pickle.
    if dtype.num >= _NUMBERS_END or dtype.num in _NOT_PLAIN or dtype.metadata is not None:
        return False
    return not is_shared(array)
