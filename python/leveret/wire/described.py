"""Plain arrays beside constants, by their descriptions: pickle sees only texts and numbers.

Pickle looks NumPy's functions up by their names for each array: 64,000 instructions to write one,
and 29,000 to read it, which take longer still where a large array has just emptied the caches. A
description takes 27,000 and 18,000 (callgrind, 2026-11-28). What is not as simple as this goes the
way of all other values.
"""

from __future__ import annotations

import copyreg
from pickle import PickleBuffer
from pickle import dumps as _dumps
from pickle import loads as _loads
from typing import Any, Union

from .. import _core
from . import arrays

DESCRIBED = 32  # a flag of a request, and of a reply's kind

# Pickle needs no help with these.
ATOMS: frozenset[type] = frozenset({int, float, bool, complex, str, bytes, type(None)})
BUFFER_BYTES_MIN = 4096  # smaller buffers are pickled: copying them costs less than a view

_NUMBERS = frozenset("?bBhHiIlLqQefdgFDG")  # types that their text tells all of, and a buffer holds

# Of an array: its place among the values, its type, its shape, the order of its items, and these if
# they are few. Else whether it can be written to; its items are the next of the buffers.
_Told = tuple[int, str, tuple[int, ...], str, Union[bytes, bytearray, bool]]

Packed = tuple[bytes, list[memoryview]]


_texts: dict[str, str] = {}  # of types in this machine's order of bytes: a new text costs 1 us


def _text_of(dtype: Any) -> str:
    if not dtype.isnative:
        return str(dtype.str)
    text = _texts.get(dtype.char)
    if text is None:
        text = _texts[dtype.char] = dtype.str
    return text


def _tell(place: int, array: Any, buffers: list[memoryview]) -> _Told | None:
    dtype = array.dtype
    if dtype.char not in _NUMBERS or dtype.metadata is not None or _core.is_array_shared(array):
        return None
    try:
        items = PickleBuffer(array).raw()
    except (BufferError, ValueError):  # with gaps
        return None
    flags = array.flags
    data: bytes | bytearray | bool = flags.writeable
    if items.nbytes < BUFFER_BYTES_MIN:
        data = bytearray(items) if data else bytes(items)
    else:
        buffers.append(items)
    return place, _text_of(dtype), array.shape, "C" if flags.c_contiguous else "F", data


def dump(values: tuple[Any, ...], is_one: bool = False) -> Packed | None:
    """(pickle, buffers) of arrays, and atoms beside them; None: something else, or no array.

    is_one: load() gives the only value, and not a tuple.
    """
    buffers: list[memoryview] = []
    told = []
    seen = set()
    for place, value in enumerate(values):
        kind = type(value)
        if kind in ATOMS:
            continue
        # One that is there twice must be one there, too.
        if not arrays.is_ndarray(kind) or kind in copyreg.dispatch_table or id(value) in seen:
            return None
        seen.add(id(value))
        about = _tell(place, value, buffers)
        if about is None:
            return None
        told.append(about)
    if not told:
        return None
    rest = list(values)
    for about in told:
        rest[about[0]] = None
    return _dumps((is_one, rest, told), 5), buffers


def load(pickled: Any, buffers: list[Any] | None) -> Any:
    """What was dumped. The arrays use the memory of the buffers."""
    import numpy as np

    is_one, values, told = _loads(pickled)
    left = iter(buffers or ())
    for place, dtype, shape, order, data in told:
        items = data
        if data is True:
            items = next(left)
        elif data is False:
            items = memoryview(next(left)).toreadonly()
        values[place] = np.frombuffer(items, dtype).reshape(shape, order=order)
    return values[0] if is_one else tuple(values)
