"""How Python calls travel: functions, arguments and results as bytes, and arrays beside them.

Functions and classes that can be imported go by reference, others (lambdas, closures, what a
notebook or the main module defines) by value, as cloudpickle does. Large buffers are not pickled:
they go as they are, beside the pickle (protocol 5). Arrays in shared memory go by their address.
"""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import struct
import types
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator
from pickle import dumps as _dumps
from typing import TYPE_CHECKING, Any, Callable, ClassVar

import cloudpickle

from .. import _core
from . import (
    absent,
    arrays,
    blame,
    by_value,
    classes,
    described,
    foreign,
    originals,
    sharing,
    spaces,
    tables,
    tensors,
)
from .arrays import lent as lent
from .described import ATOMS as ATOMS
from .described import BUFFER_BYTES_MIN, DESCRIBED
from .replies import VALUE
from .stored import Held, digest_of, known_digest

if TYPE_CHECKING:
    from .beside import Beside

CALL_BUFFERS_MAX = 15  # of a task's 18 arguments three are setup, request and reply
RESULT_BUFFERS_MAX = 4096
PLAIN_ITEMS_MAX = 64  # to look through larger containers costs more than is gained

# A request: flags, bytes of the function, bytes of the search path, bytes of the call's name, its
# mark, after how many nanoseconds it is killed (0: never), what seeds it, and bytes of its classes.
# Then come the function, if workers keep it, the path, if it has changed, the name, if there is
# one, the classes that go beside the call (beside.py), and the rest, which is one of
#   (args, kwargs)            of a function that workers keep
#   (function, args, kwargs)  of another
#   args                      with DESCRIBED: see described.py
#   [args ...]                with CHUNK: for each call of the function, when these are atoms
#   a chunk's parts           with CHUNK and APART: see chunks.py
REQUEST = struct.Struct("<IIIIQQQI")
CHUNK, APART = 1, 2
SEEDED = 4  # random numbers are seeded for this call
PLAIN = 8  # in the rest there is nothing of the host's own making

# Functions of the extension module, which pickle does not know as functions, go by their names.
copyreg.pickle(type(_core.version), lambda function: function.__name__)


def _reduce_weak_dictionary(weak: Any) -> Any:
    return type(weak), (), None, None, iter(list(weak.items()))


# Caches by weak references, as functools.singledispatch has one: what only they hold is dropped
# where they arrive.
_WEAK: dict[type, Callable[[Any], Any]] = {
    weakref.WeakKeyDictionary: _reduce_weak_dictionary,
    weakref.WeakValueDictionary: _reduce_weak_dictionary,
    weakref.WeakSet: lambda weak: (type(weak), (list(weak),)),
}


def _reduce_code(code: types.CodeType) -> Any:
    """As cloudpickle does, but with the file: tracebacks of a worker show lines of it."""
    maker, about = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    # Only texts are compared: with bytes that is a warning, under -bb an error.
    named = tuple(
        code.co_filename if type(each) is str and each == _NO_FILE else each for each in about
    )
    return maker, named


_NO_FILE = "<dynamic-code>"  # what cloudpickle writes in its place from 3.1.3 on


_OF_LIBRARY: dict[type, Callable[[Any], Any]] = {
    **_WEAK,
    types.CodeType: _reduce_code,
    functools.cached_property: classes.reduce_cached_property,
    struct.Struct: lambda layout: (struct.Struct, (layout.format,)),
}


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes what goes to a worker."""

    is_reply = False
    is_row = False  # whether it writes globals
    is_of_digest = False
    own_reducers: ClassVar[dict[type, Callable[[Any], Any]]] = {}
    _reducers: ClassVar[tuple[Any, Any]] = (), {}  # what they were made of, and they; set at once

    def __init__(
        self, file: Any, needed: spaces.Needed, beside: Beside | None = None, **options: Any
    ) -> None:
        """beside: takes classes that go by value; None: they are part of the pickle."""
        self.dispatch_table = self._all_reducers()
        super().__init__(file, protocol=5, **options)
        self.needed = needed
        self.beside = beside
        self.blanks: dict[int, tuple[types.CellType, types.CellType]] = {}  # with their cells
        self.originals = originals.places() if self.is_row else {}
        self.plain: set[type] = set()  # go by value, and have no pickle of their own
        self.whole: list[tuple[type, dict[str, Any]]] = []  # classes in the pickle, and attributes
        self.closures: list[types.FunctionType] = []  # in the pickle

    @classmethod
    def _all_reducers(cls) -> Any:
        """One dict of all reducers: pickle looks there for each object that it writes.

        A ChainMap, as cloudpickle has it, is searched in Python: a third of the time of a data
        frame. The program may change copyreg's reducers at any time, and NumPy comes when it comes.
        """
        if not arrays.reducers:
            arrays.watch_for_numpy()
        sources = (copyreg.dispatch_table, arrays.reducers, cls.own_reducers)
        made_of, table = cls._reducers
        if sources != made_of:
            made_of = tuple(map(dict, sources))
            _, of_arrays, own = made_of
            table = {**cloudpickle.Pickler.dispatch_table, **_OF_LIBRARY, **of_arrays, **own}
            cls._reducers = made_of, table
        return table

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind in originals.METHODS and not self.is_reply:
            made = originals.reduce_method(value)
            if made is not None:
                return made
        if id(value) in self.originals:
            return originals.reduce(self.originals[id(value)])
        if kind in by_value.ordinary or kind in self.plain:
            return NotImplemented
        if kind is types.FunctionType:
            return by_value.reduce_function(self, value, self.is_reply)
        # Before Python 3.11 `list[int]` says that it is a class.
        if isinstance(value, type) and kind is not types.GenericAlias:
            return by_value.reduce_class(self, value, self.is_reply)
        if kind is object:
            return self.reduce_mark(value)
        if isinstance(value, types.ModuleType):
            return by_value.reduce_module(value, self.is_reply, self.needed)
        if kind in classes.TYPING and absent.is_absent(value.__module__):
            return classes.reduce_typing(value)
        if tensors.is_tensor(kind):
            return tensors.reduce_tensor(value, self.is_reply)
        if arrays.is_of_subclass(value, kind):
            made = arrays.reduce_subclass(value, kind, self.is_reply)
            if made is not NotImplemented or not by_value.goes_by_value(kind, self.is_reply):
                return made
        if by_value.goes_by_value(kind, self.is_reply):
            made = by_value.reduce_other(self, value, kind)
            if made is NotImplemented:
                self.plain.add(kind)
            return made
        if spaces.is_cached(kind) and absent.is_absent(value.__module__):
            return spaces.reduce_cached(value, self.is_reply, self.needed, self.is_row)
        made = foreign.reduce_object(value) if foreign.has_ctypes() else None
        if made is not None:
            return made
        made = sharing.reduce_shared(value, kind)
        may_differ = spaces.is_cached(kind) or sharing.may_be_shared(kind)
        if made is NotImplemented and not may_differ:
            return by_value.reduce_importable(self, value, kind)
        return made

    def _function_getnewargs(self, function: types.FunctionType) -> Any:
        """As cloudpickle does, but functions that share a nonlocal variable share it there, too.

        They are made with empty cells, and those of one cell with the same one.
        """
        made = super()._function_getnewargs(function)
        cells = function.__closure__
        return made if cells is None else (*made[:-1], tuple(map(self._blank_of, cells)))

    def _blank_of(self, cell: types.CellType) -> types.CellType:
        return self.blanks.setdefault(id(cell), (cell, types.CellType()))[1]

    def reduce_mark(self, mark: object) -> Any:
        if self.is_reply:
            return spaces.reduce_mark_of_reply(mark)
        return spaces.reduce_mark(mark, absent.names, self.needed)

    def try_out(self, value: Any) -> None:
        """Raises why a value cannot be pickled, if so."""
        type(self)(io.BytesIO(), {}).dump(value)

    def fails(self, value: Any, text: str) -> bool:
        """Whether this value is what cannot be pickled, for the reason that the text says."""
        try:
            self.try_out(value)
        except Exception as error:
            return str(error) == text
        return False

    def dump_own(self, value: Any) -> bytes:
        """The pickle of what a process has for itself, and a call cannot be given."""
        file = io.BytesIO()
        _GlobalPickler(file, self.needed).dump(value)
        return file.getvalue()

    def digest(self, value: Any) -> bytes:
        """Of its pickle."""
        views: list[memoryview] = []
        file = io.BytesIO()
        keeper = _keeper(views, RESULT_BUFFERS_MAX)
        _DigestPickler(file, {}, buffer_callback=keeper).dump(value)
        return digest_of(b"".join(map(known_digest, (file.getbuffer(), *views))))

    def alias(self, key: str, names: dict[str, Any], value: Any) -> Any:
        return spaces.alias(value, key, names, self.needed, self.is_row)


class _GlobalPickler(_Pickler):
    """Writes globals, in front of what needs them."""

    is_row = True
    own_reducers = spaces.OWN


class _DigestPickler(_GlobalPickler):
    """Writes what is only compared: classes and singletons, which travel beside it, by names."""

    is_of_digest = True


class _ReplyPickler(_Pickler):
    """Writes what goes back to the host."""

    is_reply = True
    own_reducers = arrays.reply_reducers


def _is_plain(value: Any) -> bool:
    """Whether pickle writes it as cloudpickle does, which takes four times as long to begin."""
    kind = type(value)
    if kind in ATOMS:
        return True
    if kind is tuple or kind is list:
        return len(value) <= PLAIN_ITEMS_MAX and ATOMS.issuperset(map(type, value))
    if kind is dict:
        return (
            len(value) <= PLAIN_ITEMS_MAX
            and ATOMS.issuperset(map(type, value))
            and ATOMS.issuperset(map(type, value.values()))
        )
    return arrays.is_ndarray(kind) and arrays.is_plain(value)


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
    return _dumps(value, 5, buffer_callback=_keeper(buffers, buffers_max)), buffers


def _dump_any(
    value: Any,
    buffers_max: int,
    pickler: Callable[..., _Pickler],
    held: Held,
    beside: Beside | None = None,
    needed: spaces.Needed | None = None,
) -> tuple[bytes, list[memoryview]]:
    needed = {} if needed is None else needed
    with sharing.spawning():
        data, buffers = dump_alone(value, needed, beside, buffers_max, pickler)
        front = globals_in_front(needed, held, beside)
        return front + data if front else data, buffers


def dump_alone(
    value: Any,
    needed: spaces.Needed,
    beside: Any,
    buffers_max: int = 0,
    make: Callable[..., _Pickler] = _Pickler,
) -> tuple[Any, list[memoryview]]:
    """A pickle, and large buffers, without what goes in front. needed: gets that.

    beside: gets classes that go beside the pickle.
    """
    buffers: list[memoryview] = []
    file = io.BytesIO()
    keeper = _keeper(buffers, buffers_max)
    pickler = make(file, needed, beside=beside, buffer_callback=keeper)
    try:
        pickler.dump(value)
    except Exception as error:
        blame.say_where(error, pickler)
        raise
    if beside is not None and beside.has_own_of(pickler.memo):
        return dump_alone(value, needed, None, buffers_max, make)
    return file.getvalue(), buffers


def globals_in_front(
    needed: spaces.Needed, held: Held = None, beside: Beside | None = None
) -> bytes:
    """What goes in front of a pickle that needs these globals, and those of classes beside it."""

    def make(file: Any, needed: spaces.Needed, buffers: list[memoryview]) -> _Pickler:
        keeper = _keeper(buffers, RESULT_BUFFERS_MAX)
        return _GlobalPickler(file, needed, beside, buffer_callback=keeper)

    while True:
        if beside is not None:
            for home, value in beside.needed().items():
                needed.setdefault(home, value)
        if not needed:
            return b""
        table = tables.dump_table(needed, make, held)
        if beside is None or needed.keys() >= beside.needed().keys():
            return table


def dumps(
    value: Any,
    buffers_max: int,
    pickler: Callable[..., _Pickler] = _Pickler,
    held: Held = None,
    beside: Beside | None = None,
) -> tuple[bytes, list[memoryview]]:
    """The pickle of a value, and its large buffers.

    held: gets what must live as long as the pickle is of use; None: all is in the pickle. beside:
    gets the classes that go beside it.
    """
    if type(value) in ATOMS:
        return _dumps(value, 5), []
    if _is_plain(value):
        return _dump_plain(value, buffers_max)
    return _dump_any(value, buffers_max, pickler, held, beside)


def dump_item(value: Any, needed: spaces.Needed, beside: Beside) -> tuple[Any, list[memoryview]]:
    """dump_alone() for one of several values that have their classes and globals in common."""
    if type(value) in ATOMS:
        return _dumps(value, 5), []
    if _is_plain(value):
        return _dump_plain(value, CALL_BUFFERS_MAX)
    with sharing.spawning():
        return dump_alone(value, needed, beside, CALL_BUFFERS_MAX)


# Results that stand for what a function of their kind has yet to do; compilers of Python, such as
# Cython, have types of their own for them.
_UNDONE = {
    Coroutine: "have a plain function run it there, by asyncio.run()",
    Generator: "have the call take its items: return list() of it",
    AsyncGenerator: "have the call take its items, in a function that asyncio.run() runs",
}


def dump_result(value: Any) -> tuple[bytes, list[memoryview]]:
    """The same for what a worker gives back."""
    if type(value) in ATOMS:
        return _dumps(value, 5), []
    try:
        return dumps(value, RESULT_BUFFERS_MAX, _ReplyPickler)
    except BaseException as error:
        blame.say_of_what(error, f"the result, of type {type(value).__qualname__!r}")
        hint = next((_UNDONE[kind] for kind in _UNDONE if issubclass(type(value), kind)), None)
        if hint is not None and len(error.args) == 1:
            error.args = (f"{error.args[0]}; {hint}",)
            if issubclass(type(value), Coroutine):
                value.close()  # or Python says that nobody has awaited it
        raise


def dump_reply(value: Any) -> tuple[int, bytes, list[memoryview]]:
    """(kind, pickle, buffers) of what a call has returned."""
    kind = type(value)
    if kind not in ATOMS:
        is_one = arrays.is_ndarray(kind)
        if is_one or (kind is tuple and len(value) <= PLAIN_ITEMS_MAX):
            told = described.dump((value,) if is_one else value, is_one)
            if told is not None:
                return VALUE | DESCRIBED, *told
    return VALUE, *dump_result(value)


def say_of_call(error: BaseException, name: str, args: Any, kwargs: Any) -> None:
    """Has an error of pickle's own name the call, and the argument where its text does not tell."""
    blame.say_which(error, _Pickler(io.BytesIO(), {}), {**dict(enumerate(args, 1)), **kwargs})
    blame.say_of_what(error, name)


def dump_plain_arguments(args: Any) -> tuple[int, bytes, list[memoryview]] | None:
    """(flag, pickle, buffers) for (args, kwargs) of a call, if there are only plain values."""
    given, named = args
    if named:
        return None
    if ATOMS.issuperset(map(type, given)):
        return PLAIN, _dumps(args, 5), []
    told = described.dump(given)
    if told is not None and len(told[1]) <= CALL_BUFFERS_MAX:
        return DESCRIBED, *told
    return (PLAIN, *_dump_plain(args, CALL_BUFFERS_MAX)) if all(map(_is_plain, given)) else None


def dump_arguments(
    args: Any, held: Held, beside: Beside, needed: spaces.Needed
) -> tuple[bytes, list[memoryview]]:
    """The same for any. needed: globals of its function."""
    return _dump_any(args, CALL_BUFFERS_MAX, _Pickler, held, beside, needed)
