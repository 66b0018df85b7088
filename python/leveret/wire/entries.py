"""What a decorator has noted of a function in a dict of its own module, when it decorated it.

Statistics, a cache or a registry, by the function or its name: `calls[f.__qualname__] = 0`. The
function finds it there when it is called; the module that a worker imports has decorated nothing.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from ..interrupts import raise_signals
from .modules import variables

FEW = 64  # items of a container that goes along as it is

Entry = tuple[str, Any, Any]  # of a global: its name, the key and the value


def entries_of(pickler: Any, function: types.FunctionType, named: Iterable[str]) -> list[Entry]:
    """For a function with globals of a module that workers import. named: what its code names.

    What cannot be pickled is left out.
    """
    found = []
    keys = None
    for name in named:
        value = function.__globals__.get(name)
        if isinstance(value, dict) and value:
            keys = _keys_of(function) if keys is None else keys
            # As dict itself has it: a class of the program's may do what it likes.
            has, get = dict.__contains__, dict.__getitem__
            found += [(name, key, _small(get(value, key))) for key in keys if has(value, key)]
    return [each for each in found if _can_be_pickled(pickler, each)]


def _keys_of(function: types.FunctionType) -> list[Any]:
    """By what a function, and those that it wraps, may be noted."""
    keys: list[Any] = []
    wrapped = [each for each in variables(function).values() if type(each) is types.FunctionType]
    for each in (function, *wrapped):
        names = (each.__name__, each.__qualname__, f"{each.__module__}.{each.__qualname__}")
        keys += [key for key in (each, *names) if key not in keys]
    return keys


def _small(value: Any) -> Any:
    """It goes along with each call: of a cache that is full here, a worker gets an empty one."""
    return type(value)() if type(value) in (dict, list, set) and len(value) > FEW else value


def _can_be_pickled(pickler: Any, entry: Entry) -> bool:
    try:
        pickler.try_out(entry[2])
    except Exception as error:
        raise_signals(error)
        return False
    return True


def take_entries(names: dict[str, Any], entries: Iterable[Entry]) -> None:
    """In a worker: what is there already stays."""
    for name, key, value in entries:
        known = names.get(name)
        if isinstance(known, dict):
            dict.setdefault(known, key, value)
