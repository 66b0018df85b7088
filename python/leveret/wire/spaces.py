"""Globals of modules that workers cannot import: one namespace for each module in a worker.

As in a process pool of the standard library, what a call or an initializer does to such a global
stays in its process: caches fill, what is loaded lazily is loaded once. A global is set again when
it has changed in the host since it was sent. Constants, functions and classes go with the functions
that name them; every other value goes once in front of the pickle, in a table (tables.py), however
many functions name it. A default or an attribute of a class that is such a global, too, is the same
object there, and so is an object() that marks what was not given.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

from .instead import Instead
from .modules import Home, HostModule

_CACHED = type(functools.lru_cache(None)(len))
_INLINE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
SPACES_MAX = 1024
TEXT_MAX, ITEMS_MAX = 4096, 256  # of constants that go with functions
_ATOMS = (bool, int, float, complex, str, bytes, type(None), range)
_MISSING = object()

Needed = dict[Home, Any]  # values that go in front


# In the host.


def need(key: str, names: dict[str, Any], needed: Needed) -> dict[str, Any]:
    """Notes globals that are sent though nothing names them; returns constants, which go inline.

    What Python itself sets in a module stays here, but for where a package's modules are.
    """
    constants = {}
    for name, value in list(names.items()):
        is_own = str(name).startswith("__")
        if (is_own or not is_large(value)) and is_constant(value):
            constants[name] = value
        elif not is_own or (name == "__path__" and type(value) is list):
            needed[key, name] = value
    return constants


def key_of(names: dict[str, Any]) -> str:
    """The name of the module whose globals these are; or a name for what is no module's."""
    name = str(names.get("__name__"))
    module = sys.modules.get(name)
    if module is not None and vars(module) is names:
        return name
    space = known.get(name)
    if space is not None and space.names is names:
        return name
    return f"{name}#{id(names)}"


def names_of(key: str) -> dict[str, Any]:
    """The globals of a module that is loaded here, or of one of the host's."""
    space = known.get(key)
    if space is not None:
        return space.names
    module = sys.modules.get(key)
    return {} if module is None else vars(module)


def values_of(homes: Iterable[Home]) -> Needed:
    """Of globals that are there."""
    needed = {}
    for key, name in homes:
        names = names_of(key)
        if name in names:
            needed[key, name] = names[name]
    return needed


def is_constant(value: Any) -> bool:
    kind = type(value)
    return kind in _ATOMS or (
        (kind is tuple or kind is frozenset) and all(type(each) in _ATOMS for each in leaves(value))
    )


def leaves(value: tuple[Any, ...] | frozenset[Any]) -> Iterator[Any]:
    """What is in it, and in the tuples and frozensets in it, of which one may be there many times:
    each is looked at once."""
    met, left = {id(value)}, [value]
    while left:
        for each in left.pop():
            kind = type(each)
            if kind is not tuple and kind is not frozenset:
                yield each
            elif id(each) not in met:
                met.add(id(each))
                left.append(each)


def is_large(value: Any) -> bool:
    """Whether it is a constant that is not sent again and again with the functions that name it."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) > TEXT_MAX
    return (kind is tuple or kind is frozenset) and len(value) > ITEMS_MAX


def goes_inline(value: Any) -> bool:
    """Whether a global goes with the functions that name it."""
    return isinstance(value, _INLINE) or (not is_large(value) and is_constant(value))


def split(key: str, names: dict[str, Any], needed: Needed, is_row: bool) -> dict[str, Any]:
    """What of these globals goes with the function; notes the rest.

    is_row: in the pickle of a global, which must not depend on what else is needed: it would
    count as changed.
    """
    inline = {}
    for name, value in names.items():
        if "#" not in key:
            _sent.add((key, name))
        is_needed = (key, name) in needed
        if goes_inline(value) and (is_row or not is_needed):
            inline[name] = value
        elif not is_needed:
            needed[key, name] = value
    return inline


_sent: set[Home] = set()  # globals that have been sent once


def has_sent(homes: Iterable[Home]) -> bool:
    """Any of them."""
    return not _sent.isdisjoint(homes)


class Gone:
    """Stands for a global that workers may have, and that the host has deleted."""


def gone(key: str, named: Iterable[str], names: dict[str, Any]) -> dict[str, Any]:
    """Of globals that code names."""
    return {each: Gone for each in named if each not in names and (key, each) in _sent}


def alias(value: Any, key: str, names: dict[str, Any], needed: Needed, is_row: bool) -> Any:
    """What stands for a value that is a global of a module, too, or the value.

    is_row: in the pickle of a global, where what is one object goes as one (tables.py).
    """
    if goes_inline(value) or is_constant(value):
        return value
    name = next((name for name, each in list(names.items()) if each is value), None)
    if name is None:
        return value
    needed[key, name] = value
    return value if is_row else Instead(from_space, key, name)


def reduce_mark(mark: object, modules: Iterable[str], needed: Needed) -> Any:
    """For an object(), whose identity is all that it has, if it is a global of such a module."""
    for key in modules:
        for name, value in names_of(key).items():
            if value is mark:
                needed[key, name] = mark
                return from_space, (key, name)
    return NotImplemented


def reduce_mark_of_reply(mark: object) -> Any:
    """The same in a worker, on its way back."""
    for key, space in known.items():
        for name, value in space.names.items():
            if value is mark:
                return _mark_here, (key, name)
    return NotImplemented


def _mark_here(key: str, name: str) -> object:
    found = names_of(key).get(name)
    return found if type(found) is object else object()


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


def _cached(options: dict[str, Any], function: Any) -> Any:
    return functools.lru_cache(**options)(function)


def is_cached(kind: type) -> bool:
    return kind is _CACHED


def reduce_cached(value: Any, is_reply: bool, needed: Needed, is_row: bool) -> Any:
    """For a function with functools.lru_cache: a worker has one, and a cache of its own."""
    home = (value.__module__, value.__qualname__)
    module = sys.modules.get(home[0])
    if module is not None and vars(module).get(home[1]) is value:
        if is_reply:
            return NotImplemented  # by its name
        needed[home] = value
        if not is_row:
            return from_space, home
    return _cached, (value.cache_parameters(), value.__wrapped__)


# In a worker.


class Changes:
    """Of all spaces, by what was sent."""

    count = 0


class Space:
    """The globals of a module of the host's, or of what is none ("#" in its name)."""

    def __init__(self, key: str, names: dict[str, Any]) -> None:
        self.module = None if "#" in key else HostModule(key)
        self.names = {} if self.module is None else vars(self.module)
        self.names.update({"__builtins__": __builtins__, **names})
        self.sent: dict[str, Any] = {}  # as the host had it; what is there now may be another
        self.taken: dict[str, int] = {}  # id() of what was sent, to tell whether it is still there
        self.missing: dict[str, str] = {}  # why the host could not send it
        self.together: dict[str, tuple[Home, ...]] = {}  # with what it was read from one pickle

    def receive(self, names: dict[str, Any]) -> None:
        """Takes what came with a function."""
        for name, value in names.items():
            if value is Gone:
                self.drop(name)
            elif not is_same(self.sent.get(name, _MISSING), value):
                self.take(name, value, value)

    def take(self, name: str, value: Any, sent: Any) -> None:
        self.names[name] = value
        self.sent[name] = sent
        self.taken[name] = id(value)
        self.missing.pop(name, None)
        self.together.pop(name, None)
        Changes.count += 1

    def leave_out(self, name: str, why: str) -> None:
        """What was sent before is not what the host has now."""
        self.missing[name] = why
        if name in self.names and self.taken.get(name) == id(self.names[name]):
            self.drop(name)

    def drop(self, name: str) -> None:
        """Deletes what was sent, or what a call has made of it; once, until it is sent again."""
        if self.sent.pop(name, _MISSING) is not _MISSING:
            self.names.pop(name, None)
            self.taken.pop(name, None)
            Changes.count += 1


def is_same(a: Any, b: Any) -> bool:
    """Whether both are one object, or constants of equal kinds and texts (-0.0 is not 0.0)."""
    if a is b:
        return True
    if not is_constant(a):
        return False
    met, left = set(), [(a, b)]
    while left:
        a, b = left.pop()
        if a is b or (id(a), id(b)) in met:
            continue
        met.add((id(a), id(b)))
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            left += zip(a, b)
        elif type(a) is not type(b) or repr(a) != repr(b):
            return False
    return True


known: dict[str, Space] = {}


def space_of(key: str, names: dict[str, Any]) -> Space:
    """names: what a new space has from the beginning."""
    space = known.get(key)
    if space is None:
        if len(known) >= SPACES_MAX:  # of what was no module's; functions keep their own
            for old in [each for each in known if "#" in each]:
                del known[old]
        space = known[key] = Space(key, names)
    if space.module is not None and (key == "__main__" or key not in sys.modules):
        sys.modules[key] = space.module
    return space


def module_of(key: str, names: dict[str, Any]) -> Any:
    space = space_of(key, {})
    space.receive(names)
    return space.module


def forget_modules() -> None:
    """When modules are searched elsewhere: some may be imported from now on."""
    for key, space in known.items():
        if key != "__main__" and space.module is sys.modules.get(key, _MISSING):
            del sys.modules[key]


def from_space(key: str, name: str) -> Any:
    names = known[key].names
    if name not in names:
        raise NameError(f"name {name!r} is not defined")
    return names[name]


def explain(error: NameError) -> None:
    """Adds to the error of a function that names what the host could not send why that is so."""
    if type(error) is not NameError:  # of a class of the program's
        return
    name = getattr(error, "name", None) or str(error).partition("'")[2].partition("'")[0]
    for space in known.values():
        if name in space.missing and name not in space.names:
            why = f"it could not be pickled ({space.missing[name]}); set it in an initializer"
            error.args = (f"{error}: the host has such a global, but {why}",)
