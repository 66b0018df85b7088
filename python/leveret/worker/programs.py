"""What each executor's program has of its own in a process that calls of several run in.

The globals of its main module, and of others that processes cannot import, with the functions and
classes that came by value; and the modules of folders in which not all search. What the process
has searched from its beginning, the standard library, say, is common: one import serves all.

A thread that a call has left behind goes on with what is there, whoever's turn it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
import weakref
from typing import Any, NamedTuple

from ..wire import modules, singletons, spaces
from ..wire.modules import Home, HostModule
from .classes import Classes, classes
from .functions import Functions, functions

_main = sys.modules["__main__"]
_common = {os.path.normpath(each) for each in sys.path}
_roots: dict[str, tuple[types.ModuleType, str]] = {}  # of modules, by their names


class Belongings(NamedTuple):
    """What was taken away, until its program's next turn."""

    spaces: dict[str, spaces.Space]
    residents: weakref.WeakValueDictionary[Home, Any]
    singletons: dict[Home, Any]
    functions: dict[str, Any]
    classes: dict[str, Any]
    modules: dict[str, types.ModuleType]

    def put_back(self) -> None:
        spaces.known.update(self.spaces)
        modules.residents.update(self.residents)
        singletons.known.update(self.singletons)
        vars(functions).update(self.functions)
        vars(classes).update(self.classes)
        sys.modules.update(self.modules)


def take_away() -> Belongings:
    """Takes what is there of the program whose sys.path this is."""
    taken = Belongings(
        dict(spaces.known),
        modules.residents.copy(),
        dict(singletons.known),
        dict(vars(functions)),
        dict(vars(classes)),
        _own_modules(),
    )
    for each in (spaces.known, modules.residents, singletons.known):
        each.clear()
    vars(functions).update(vars(Functions()))
    vars(classes).update(vars(Classes()))
    for name in taken.modules:
        sys.modules.pop(name, None)
    sys.modules["__main__"] = _main
    return taken


def _own_modules() -> dict[str, types.ModuleType]:
    own = {os.path.normpath(str(each)) for each in sys.path} - _common
    there = list(sys.modules.items())  # at once: a thread may import something
    return {
        name: module
        for name, module in there
        if type(module) is HostModule or (own and _root_of(name) in own)
    }


def _root_of(name: str) -> str:
    """The entry of sys.path that has led to a module; empty: it was found otherwise."""
    top = name.partition(".")[0]
    module = sys.modules.get(top)
    if module is None:
        return ""
    known = _roots.get(top)
    if known is None or known[0] is not module:
        known = _roots[top] = module, _folder_around(module)
    return known[1]


def _folder_around(module: types.ModuleType) -> str:
    place = getattr(module, "__file__", None)
    with contextlib.suppress(Exception):  # it is no package, or its path is somebody else's
        place = next(iter(module.__path__), place)
    if not isinstance(place, str):
        return ""
    return os.path.normpath(os.path.dirname(place))  # noqa: PTH120
