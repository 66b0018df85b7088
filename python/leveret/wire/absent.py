"""Which modules of this process workers cannot import: what is in those goes by value."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import threading
import types
from typing import Any

from ..interrupts import NotOfSignal, raise_signals
from . import modules

# By name and file, which may have several names: whether workers cannot import the module.
_known: dict[tuple[str, str], bool] = {}
_tried: set[str] = set()  # modules that were not imported, as pickle would
names = {"__main__"}  # modules that were found to be absent


def is_absent(name: Any) -> bool:
    """Whether workers cannot import a module of this process."""
    if type(name) is not str:
        return False
    if name in ("__main__", "__mp_main__"):
        return True
    module = sys.modules.get(name)
    if module is None and name not in _tried:
        _tried.add(name)
        with NotOfSignal(Exception):
            module = importlib.import_module(name)
    if module is None:
        return False
    if module is sys.modules.get("__main__"):
        return True
    if type(module) is modules.HostModule:
        return True
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not _is_read_from(module, file):
        if not _is_made_by_code(module):
            return False
        file = f"<{name}>"
    known: bool | None = _known.get((name, file))
    if known is None:
        known = _known[name, file] = not _can_be_found(name)
    if known:
        names.add(name)
    return known


def _is_read_from(module: Any, file: str) -> bool:
    """Whether its file is Python code, whatever it is called: a script has no `.py` as a rule."""
    if file.endswith(".py"):
        return True
    if type(module) is not types.ModuleType or "__builtins__" not in vars(module):
        return False
    return not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def _is_made_by_code(module: Any) -> bool:
    """Whether the program made it at run time, by exec() or of parts: C code makes modules, too."""
    if type(module) is not types.ModuleType:
        return False
    is_executed = "__builtins__" in vars(module)
    if is_executed and _has_own_loader(module):
        return True
    if any(getattr(module, each, None) is not None for each in ("__file__", "__spec__")):
        return False
    return is_executed or not any(_is_of_c(each, module) for each in list(vars(module).values()))


_C_FUNCTIONS = (type, types.BuiltinFunctionType)


def _is_of_c(value: Any, module: types.ModuleType) -> bool:
    """Whether C code that has made the module, as Cython's does, has made what is in it."""
    kind = type(value)
    makers: list[Any] = [kind.__module__]
    if issubclass(kind, _C_FUNCTIONS):
        makers.append(getattr(value, "__module__", None))
    return module.__name__ in makers or kind.__name__ == "PyCapsule"


class _Searching(threading.local):
    """Modules of loaders that are searched for: one may have been loaded by its own."""

    def __init__(self) -> None:
        self.loaders: set[Any] = set()


_searching = _Searching()

# Of Python's own importers, and of None.
_OF_IMPORTERS = frozenset(
    {"builtins", "zipimport", "_frozen_importlib", "_frozen_importlib_external"}
    | {"importlib._bootstrap", "importlib._bootstrap_external", "importlib.machinery"}
)


def _module_of(importer: Any) -> str:
    name = (importer if isinstance(importer, type) else type(importer)).__module__
    return name if type(name) is str else ""


def _loader_of(module: Any) -> Any:
    return getattr(getattr(module, "__spec__", None), "loader", None)


def is_of_python(module: Any) -> bool:
    """Whether Python itself has loaded it, as it does in workers."""
    return _module_of(_loader_of(module)) in _OF_IMPORTERS


def _has_own_loader(module: Any) -> bool:
    """Whether an importer of the program's own has loaded it, which workers do not have."""
    return _is_of_program(_module_of(_loader_of(module)))


def _is_of_program(name: str) -> bool:
    """Whether an importer is of a module that workers cannot import."""
    searched = _searching.loaders
    if name in _OF_IMPORTERS or name in searched:
        return False
    searched.add(name)
    try:
        return is_absent(name)
    finally:
        searched.discard(name)


def _can_be_found(name: str) -> bool:
    """Whether a search for the module's package ends where this process has it from."""
    top = name.partition(".")[0]
    if any(_has_own_loader(sys.modules.get(each)) for each in (name, top)):
        return False
    have = getattr(sys.modules.get(top), "__file__", None)
    for finder in sys.meta_path:
        if _is_of_program(_module_of(finder)):
            continue
        try:
            spec = finder.find_spec(top, None)
        except Exception as error:
            raise_signals(error)
            return True  # a finder of somebody else's: as pickle does
        if spec is not None:
            origin = spec.origin  # or "frozen", say
            if have is None or origin is None or not origin.endswith(".py"):
                return True
            return bool(os.path.realpath(origin) == os.path.realpath(have))
    return False


def forget() -> None:
    """After sys.path changed."""
    _known.clear()
    names.intersection_update({"__main__"})
