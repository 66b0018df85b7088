"""The module `pytest` as workers need it, without what takes the real one long to import.

Workers import the modules of tests for the functions that they call. Meanwhile `pytest` only notes
what is a test, and for what: nothing, here. Whatever else is asked of it comes from the real one,
which then takes its place.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _Notes:
    """A mark, or what notes of a function what it is: the function stays as it is."""

    def __getattr__(self, name: str) -> _Notes:
        return self

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else self


class _Pytest(types.ModuleType):
    mark = fixture = param = _Notes()
    importorskip = staticmethod(lambda name, **_: importlib.import_module(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get("pytest") is self:
            del sys.modules["pytest"]
        return getattr(importlib.import_module("pytest"), name)


sys.modules.setdefault("pytest", _Pytest("pytest"))
