"""Modules that are changed as soon as something imports them: nothing is imported for that."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from typing import Any, Callable

_changes: dict[str, Callable[[types.ModuleType], None]] = {}  # by the names of modules


def change_when_imported(names: Iterable[str], change: Callable[[types.ModuleType], None]) -> None:
    """Modules that are there already stay as they are."""
    _changes.update(dict.fromkeys(names, change))
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder:
    def __init__(self) -> None:
        self.searched: set[str] = set()  # modules that the other finders are asked for

    def find_spec(
        self, name: str, path: Any = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _changes or name in self.searched:
            return None
        self.searched.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searched.discard(name)
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec


class _Loader:
    """In the place of a module's loader, until the module is loaded, and changed then."""

    def __init__(self, loader: Any) -> None:
        self._own = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._own
        self._own.exec_module(module)
        _changes[module.__name__](module)


_finder = _Finder()
