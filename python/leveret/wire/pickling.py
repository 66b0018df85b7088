"""How Python calls travel: functions, arguments and results as bytes, and arrays beside them.

Functions and classes that can be imported go by reference, others (lambdas, closures, what a
notebook or the main module defines) by value, as cloudpickle does. Large buffers are not pickled:
they go as they are, beside the pickle (protocol 5). Arrays in shared memory go by their address.
"""

from __future__ import annotations

import builtins
import copyreg
import io
import pickle
import struct
import sys
import types
import weakref
from collections import ChainMap
from typing import Any, Callable, ClassVar

import cloudpickle

from .. import _core

ATOMS = frozenset({int, float, bool, complex, str, bytes, type(None)})  # pickle needs no help
CALL_BUFFERS_MAX = 15  # of a task's 18 arguments three are setup, request and reply
BUFFER_BYTES_MIN = 4096  # smaller buffers are pickled: copying them costs less than a view

# A request: flags, bytes of the function; then the function, then (args, kwargs).
REQUEST = struct.Struct("<II")
CHUNK = 1  # the arguments are a list of tuples, one for each call of the function

# A reply: kind, number of buffers, bytes of the pickle, nanoseconds, bytes in all. Then the
# buffers' sizes, the pickle, and the buffers, each at a multiple of 64.
REPLY = struct.Struct("<IIqqq")
VALUE, ERROR, BROKEN, IN_FILE = range(4)
FILE = struct.Struct("<qqq")  # process, file number, inode: where a reply is that found no room
SIZES = struct.Struct("<q")

_reducers: dict[type, Callable[[Any], Any]] = {}

# Functions of the extension module, which pickle does not know as functions, go by their names.
copyreg.pickle(type(_core.version), lambda function: function.__name__)


def _shared_array(address: int, shape: Any, strides: Any, dtype: Any) -> Any:
    from .. import shared

    return shared.array_at(address, shape, strides, dtype)


def _reduce_array(array: Any) -> Any:
    address = array.__array_interface__["data"][0]
    is_plain = array.size and not array.dtype.hasobject and min(array.strides, default=0) >= 0
    if is_plain and _core.is_shared(address, array.itemsize):
        return _shared_array, (address, array.shape, array.strides, array.dtype)
    return array.__reduce_ex__(5)


def _watch_for_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        _reducers.setdefault(numpy.ndarray, _reduce_array)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table: ClassVar[Any] = ChainMap(_reducers, cloudpickle.Pickler.dispatch_table)


def _is_plain(value: Any) -> bool:
    """Whether pickle writes it as cloudpickle does, which takes four times as long to begin."""
    kind = type(value)
    if kind in ATOMS:
        return True
    if kind not in _reducers or value.dtype.isbuiltin != 1 or value.dtype.hasobject:
        return False
    return not _core.is_shared(value.__array_interface__["data"][0], value.itemsize)


def _keeper(buffers: list[memoryview], buffers_max: int) -> Callable[[pickle.PickleBuffer], bool]:
    """What puts large buffers into a list; True: the buffer is to be pickled."""

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        if len(buffers) == buffers_max:
            return True
        try:
            view = buffer.raw()
        except BufferError:  # with gaps
            return True
        if view.nbytes < BUFFER_BYTES_MIN:
            return True
        buffers.append(view)
        return False

    return keep_inside


def _dump_plain(value: Any, buffers_max: int) -> tuple[bytes, list[memoryview]]:
    buffers: list[memoryview] = []
    return pickle.dumps(value, 5, buffer_callback=_keeper(buffers, buffers_max)), buffers


def dumps(value: Any, buffers_max: int) -> tuple[bytes, list[memoryview]]:
    """The pickle of a value, and its large buffers."""
    if type(value) in ATOMS:
        return pickle.dumps(value, 5), []
    if not _reducers:
        _watch_for_numpy()
    if _is_plain(value):
        return _dump_plain(value, buffers_max)
    buffers: list[memoryview] = []
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=_keeper(buffers, buffers_max)).dump(value)
    return file.getvalue(), buffers


def dump_arguments(args: Any) -> tuple[bytes, list[memoryview]]:
    """The same for (args, kwargs) of a call, or for the items of a chunk."""
    if type(args) is tuple and not args[1]:
        if not _reducers:
            _watch_for_numpy()
        if all(map(_is_plain, args[0])):
            return _dump_plain(args, CALL_BUFFERS_MAX)
    return dumps(args, CALL_BUFFERS_MAX)


def _uses_nothing_around(code: types.CodeType, around: dict[str, Any]) -> bool:
    if any(name in around for name in code.co_names):
        return False
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return all(_uses_nothing_around(c, around) for c in inner)


def _is_constant(function: Any) -> bool:
    """Whether its pickle is the same at any time, so that one will do."""
    if isinstance(function, (types.BuiltinFunctionType, type)):
        owner = getattr(function, "__self__", None)
        return owner is None or isinstance(owner, types.ModuleType)
    if type(function) is not types.FunctionType:
        return False
    module = sys.modules.get(function.__module__ or "")
    is_main = function.__module__ == "__main__"
    if not is_main and getattr(module, function.__qualname__, None) is function:
        return True
    return (
        function.__closure__ is None
        and function.__defaults__ is None
        and function.__kwdefaults__ is None
        and not function.__dict__
        and _uses_nothing_around(function.__code__, function.__globals__)
    )


_functions: weakref.WeakKeyDictionary[Any, tuple[Any, bytes]] = weakref.WeakKeyDictionary()
_builtins: dict[int, bytes] = {
    id(f): pickle.dumps(f, 5)
    for f in vars(builtins).values()
    if isinstance(f, (types.BuiltinFunctionType, type))
}


def dump_function(function: Any) -> bytes:
    """The pickle of a function; kept when it cannot change."""
    known = _builtins.get(id(function))
    if known is not None:
        return known
    try:
        code, known = _functions[function]
        if code is getattr(function, "__code__", None):
            return known
    except (KeyError, TypeError):
        pass
    made: bytes = cloudpickle.dumps(function, 5)
    try:
        if _is_constant(function):
            _functions[function] = (getattr(function, "__code__", None), made)
    except TypeError:  # not hashable, or without weak references
        pass
    return made


def reply_size(pickle_bytes: int, buffers: list[memoryview]) -> int:
    end = REPLY.size + SIZES.size * len(buffers) + pickle_bytes
    for each in buffers:
        end = (end + 63) // 64 * 64 + each.nbytes
    return end


def write_reply(
    place: memoryview, kind: int, pickled: bytes, buffers: list[memoryview], ns: int, size: int
) -> None:
    REPLY.pack_into(place, 0, kind, len(buffers), len(pickled), ns, size)
    at = REPLY.size
    for each in buffers:
        SIZES.pack_into(place, at, each.nbytes)
        at += SIZES.size
    place[at : at + len(pickled)] = pickled
    at += len(pickled)
    for each in buffers:
        at = (at + 63) // 64 * 64
        place[at : at + each.nbytes] = each
        at += each.nbytes


def read_reply(place: memoryview) -> tuple[int, Any, int, int]:
    """(kind, value, nanoseconds, bytes); arrays in the value use the memory of `place`."""
    kind, count, length, ns, size = REPLY.unpack_from(place)
    at = REPLY.size + SIZES.size * count
    pickled = place[at : at + length]
    if kind == IN_FILE:
        return kind, FILE.unpack_from(pickled), ns, size
    if count == 0:
        return kind, pickle.loads(pickled), ns, size
    sizes = [SIZES.unpack_from(place, REPLY.size + SIZES.size * i)[0] for i in range(count)]
    at += length
    buffers = []
    for each in sizes:
        at = (at + 63) // 64 * 64
        buffers.append(place[at : at + each])
        at += each
    return kind, pickle.loads(pickled, buffers=buffers), ns, size
