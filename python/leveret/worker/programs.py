"""What each program has of its own in a process that calls of several run in.

The globals of its main module, and of others that processes cannot import, with the functions and
classes that came by value; and the modules of folders in which only it searches. What is found
where all search, in the standard library, say, is the process's: one import serves all.
"""

from __future__ import annotations

import os
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

from ..wire import by_value, modules, spaces
from ..wire.modules import Home, HostModule
from .classes import Classes, classes
from .functions import Functions, functions

_Modules = dict[str, types.ModuleType]


class Belongings:
    """Takes what is there of a program's away; take_back() has it there again."""

    def __init__(self) -> None:
        self.spaces = dict(spaces.known)
        self.residents: weakref.WeakValueDictionary[Home, Any] = modules.residents.copy()
        self.singletons = dict(by_value.singletons)
        self.functions = dict(vars(functions))
        self.classes = dict(vars(classes))
        self.modules = {n: each for n, each in sys.modules.items() if type(each) is HostModule}
        for each in (spaces.known, modules.residents, by_value.singletons):
            each.clear()
        vars(functions).update(vars(Functions()))
        vars(classes).update(vars(Classes()))
        for name in self.modules:
            del sys.modules[name]
        sys.modules["__main__"] = _main

    def take_back(self) -> None:
        spaces.known.update(self.spaces)
        modules.residents.update(self.residents)
        by_value.singletons.update(self.singletons)
        vars(functions).update(self.functions)
        vars(classes).update(self.classes)
        sys.modules.update(self.modules)


_main = sys.modules["__main__"]
_hidden: dict[str, _Modules] = {}  # by where they were found


def show_modules(path: Iterable[str]) -> None:
    """Has those modules in sys.modules that are found where this program searches."""
    order = {entry: place for place, entry in reversed(list(enumerate(path)))}
    for name, module in list(sys.modules.items()):
        root = _root_of(name)
        if root is not None and root not in order:
            _hidden.setdefault(root, {})[name] = sys.modules.pop(name, module)
    for root in sorted(order.keys() & _hidden.keys(), key=order.__getitem__):
        found = _hidden.pop(root)
        there = [name for name in found if name in sys.modules]  # by an earlier entry
        if there:
            _hidden[root] = {name: found.pop(name) for name in there}
        sys.modules.update(found)


def _root_of(name: str) -> str | None:
    """The entry of sys.path that has led to a module; None: it was found otherwise."""
    top = sys.modules.get(name.partition(".")[0])
    if top is None or type(top) is HostModule:
        return None
    file = getattr(top, "__file__", None)
    places = getattr(top, "__path__", None)
    try:
        package = next(iter(places), None) if places is not None else None
    except Exception:  # of a path of somebody else's
        return None
    inside = package if package is not None else file
    return os.path.dirname(inside) if isinstance(inside, str) else None  # noqa: PTH120
