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
from typing import Any, NamedTuple

from ..wire import modules, singletons, spaces
from ..wire.modules import HostModule
from .classes import classes
from .functions import functions

# Where it is kept: globals, functions and classes, singletons; and what was loaded for calls.
_TABLES: tuple[Any, ...] = (spaces.known, modules.residents, singletons.known)
_KEEPERS: tuple[Any, ...] = (functions, classes)
_main = sys.modules["__main__"]
_common = {os.path.normpath(each) for each in sys.path}
_roots: dict[str, tuple[types.ModuleType, str]] = {}  # of modules, by their names


class Belongings(NamedTuple):
    """What was taken away, until its program's next turn."""

    tables: list[Any]
    kept: list[dict[str, Any]]
    modules: dict[str, types.ModuleType]

    def put_back(self) -> None:
        for table, content in zip(_TABLES, self.tables):
            table.update(content)
        for keeper, attributes in zip(_KEEPERS, self.kept):
            vars(keeper).update(attributes)
        sys.modules.update(self.modules)


def take_away() -> Belongings:
    """Takes what is there of the program whose sys.path this is."""
    tables = [table.copy() for table in _TABLES]
    taken = Belongings(tables, [dict(vars(keeper)) for keeper in _KEEPERS], _own_modules())
    for table in _TABLES:
        table.clear()
    for keeper in _KEEPERS:
        vars(keeper).update(vars(type(keeper)()))
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
