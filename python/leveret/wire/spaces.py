"""Globals of modules that workers cannot import: one namespace for each module in a worker.

As in a process pool of the standard library, what a call or an initializer does to such a global
stays in its process: caches fill, what is loaded lazily is loaded once. A global is set again when
it has changed in the host since it was sent. Constants, functions and classes go with the functions
that name them; every other value goes once in front of the pickle, as a pickle of its own with a
digest, however many functions name it.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import io
import pickle
import struct
import sys
import threading
import types
from collections import ChainMap
from typing import Any, Callable

_CACHED = type(functools.lru_cache(None)(len))
_INLINE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
SPACES_MAX = 1024
_ATOMS = (bool, int, float, complex, str, bytes, type(None), range)
_MISSING = object()

Needed = dict[tuple[str, str], Any]  # by module and name: a value that goes in front


# In the host.


def key_of(names: dict[str, Any]) -> str:
    """The name of the module whose globals these are; or a name for what is no module's."""
    name = str(names.get("__name__"))
    module = sys.modules.get(name)
    if module is not None and vars(module) is names:
        return name
    space = _spaces.get(name)
    if space is not None and space.names is names:
        return name
    return f"{name}#{id(names)}"


def is_constant(value: Any) -> bool:
    return type(value) in _ATOMS or (
        type(value) in (tuple, frozenset) and all(map(is_constant, value))
    )


def split(key: str, names: dict[str, Any], needed: Needed) -> dict[str, Any]:
    """What of these globals goes with the function; notes the rest."""
    inline = {}
    for name, value in names.items():
        if isinstance(value, _INLINE) or is_constant(value):
            inline[name] = value
        else:
            needed[key, name] = value
    return inline


_SIZES = struct.Struct("<qq")


class Table:
    """Stands in front of a pickle, and says where the values of globals are, and the pickle."""

    def __init__(self, sizes: bytes) -> None:
        self.sizes = sizes

    def parts(self, data: memoryview) -> tuple[memoryview, memoryview]:
        """The values and the pickle."""
        own, values = _SIZES.unpack(self.sizes)
        return data[own : own + values], data[own + values :]


_TABLE_BYTES = len(pickle.dumps(Table(_SIZES.pack(0, 0)), 5))

# A value: module, name, digest and pickle; without a digest, why there is none.
Row = tuple[str, str, bytes, Any]


def dump_table(needed: Needed, make: Callable[[io.BytesIO, Any, Needed], Any]) -> bytes:
    """A table and its values. make: a pickler for one value, which may find more that is needed."""
    rows: list[Row] = []
    done: set[tuple[str, str]] = set()
    while len(done) < len(needed):
        for home in [each for each in needed if each not in done]:
            done.add(home)
            file = io.BytesIO()
            try:
                make(file, needed[home], needed).dump(needed[home])
            except Exception as error:  # a call that needs it says so
                rows.append((*home, b"", f"{type(error).__qualname__}: {error}"))
                continue
            data = file.getvalue()
            rows.append((*home, hashlib.blake2b(data, digest_size=16).digest(), data))
    values = pickle.dumps(rows, 5)
    return pickle.dumps(Table(_SIZES.pack(_TABLE_BYTES, len(values))), 5) + values


def _lock() -> Any:
    return threading.Lock()


def _recursive_lock() -> Any:
    return threading.RLock()


def _local() -> threading.local:
    return threading.local()


def _context_variable(name: str, *default: Any) -> contextvars.ContextVar[Any]:
    if default:
        return contextvars.ContextVar(name, default=default[0])
    return contextvars.ContextVar(name)


def _reduce_context_variable(variable: contextvars.ContextVar[Any]) -> Any:
    """As the module made it: what it is in the caller's context stays there."""
    try:
        default = contextvars.Context().run(variable.get)
    except LookupError:
        return _context_variable, (variable.name,)
    return _context_variable, (variable.name, default)


# What a module has for its own process: another process makes its own.
OWN: Any = {
    type(threading.Lock()): lambda _: (_lock, ()),
    type(threading.RLock()): lambda _: (_recursive_lock, ()),
    threading.local: lambda _: (_local, ()),
    contextvars.ContextVar: _reduce_context_variable,
}


def with_own(table: Any) -> Any:
    return ChainMap(OWN, table)


def _cached(options: dict[str, Any], function: Any) -> Any:
    return functools.lru_cache(**options)(function)


def is_cached(kind: type) -> bool:
    return kind is _CACHED


def reduce_cached(value: Any, root: Any, needed: Needed) -> Any:
    """For a function with functools.lru_cache: a worker has one, and a cache of its own."""
    home = (value.__module__, value.__qualname__)
    if value is not root and vars(sys.modules[home[0]]).get(home[1]) is value:
        needed[home] = value
        return from_space, home
    return _cached, (value.cache_parameters(), value.__wrapped__)


# In a worker.


class Changes:
    """Of all spaces, by what was sent."""

    count = 0


class Space:
    """The globals of a module of the host's."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = {"__builtins__": __builtins__, **names}
        self.sent: dict[str, Any] = {}  # as the host had it; what is there now may be another
        self.missing: dict[str, str] = {}  # why the host could not send it

    def receive(self, names: dict[str, Any]) -> None:
        """Takes what came with a function."""
        for name, value in names.items():
            if not _is_same(self.sent.get(name, _MISSING), value):
                self.take(name, value, value)

    def take(self, name: str, value: Any, sent: Any) -> None:
        self.names[name] = value
        self.sent[name] = sent
        self.missing.pop(name, None)
        Changes.count += 1


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return type(a) is type(b) and is_constant(a) and repr(a) == repr(b)


_spaces: dict[str, Space] = {}


def space_of(key: str, names: dict[str, Any]) -> Space:
    """names: what a new space has from the beginning."""
    space = _spaces.get(key)
    if space is None:
        if len(_spaces) >= SPACES_MAX:  # of what was no module's; functions keep their own
            for old in [each for each in _spaces if "#" in each]:
                del _spaces[old]
        space = _spaces[key] = Space(names)
    return space


def take_values(rows: list[Row]) -> None:
    """Sets what has changed in the host."""
    for key, name, digest, data in rows:
        space = space_of(key, {"__name__": key})
        if not digest:
            space.missing[name] = data
        elif space.sent.get(name) != digest:
            space.take(name, pickle.loads(data), digest)


def from_space(key: str, name: str) -> Any:
    return _spaces[key].names[name]


def explain(error: NameError) -> None:
    """Adds to the error of a function that names what the host could not send why that is so."""
    name = getattr(error, "name", None) or str(error).partition("'")[2].partition("'")[0]
    for space in _spaces.values():
        if name in space.missing and name not in space.names:
            why = f"it could not be pickled ({space.missing[name]}); set it in an initializer"
            error.args = (f"{error}: the host has such a global, but {why}",)
