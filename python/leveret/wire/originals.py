"""Objects of which each process has one: os.environ, and generators of random, secrets, NumPy.

Their methods are functions for most programs: `from random import random` gives one, and so does
`from os import environ` an object that stands for the process. A copy of these would be wrong: all
calls would draw the numbers that come next here, whatever their process is seeded with, and see the
variables of this process. So their methods, and globals that are such an object, become those of
the process they arrive in. Given as an argument the object itself is copied, as any other.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from .instead import Instead

_PLACES = (
    ("os", "environ"),
    ("os", "environb"),
    ("random", "_inst"),
    ("secrets", "_sysrand"),
    ("numpy.random.mtrand", "_rand"),
)
METHODS = frozenset({types.MethodType, types.BuiltinFunctionType})


def places() -> dict[int, tuple[str, str]]:
    """Where those are that this process has so far, by their identity."""
    found: dict[int, tuple[str, str]] = {}
    for module, name in _PLACES:
        thing = getattr(sys.modules.get(module), name, None)
        if thing is not None:
            found[id(thing)] = module, name
    return found


def reduce(place: tuple[str, str]) -> Any:
    return _original, place


def reduce_method(method: Any) -> Any:
    """For a method of one; else None."""
    owner = method.__self__
    if isinstance(owner, types.ModuleType):  # a function in C: most of these
        return None
    place = places().get(id(owner))
    if place is None:
        return None
    name = method.__name__
    if getattr(owner, name, None) != method:
        return None
    return getattr, (Instead(_original, *place), name)


def _original(module: str, name: str) -> Any:
    """The object where it arrives."""
    return getattr(importlib.import_module(module), name)
