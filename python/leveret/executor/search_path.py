"""Where workers search for modules: where the host does when a call is submitted."""

from __future__ import annotations

import os
import pickle
import sys

from ..launch import is_absolute, search_path
from ..wire import beside, by_value, functions


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # it is gone
        return None


class _Known:
    """The path for which it is known what workers can import."""

    path: list[str] | None = None


class SearchPath:
    """Notices when sys.path changed after the worker processes were told it first.

    So it does when the host goes to another folder, if it has entries that depend on that.
    """

    def __init__(self) -> None:
        self.pickled = b""
        self.sent = self._look()

    def news(self) -> bytes:
        """What goes with a call: nothing while the path is as it was in the beginning."""
        if sys.path != self.seen or (self.is_relative and _folder() != self.folder):
            path = self._look()
            if path != self.sent:
                self.sent = path
                self.pickled = pickle.dumps(path, 5)
        return self.pickled

    def _look(self) -> list[str]:
        self.seen = list(sys.path)
        self.is_relative = not all(is_absolute(str(each)) for each in self.seen)
        self.folder = _folder()
        path = search_path()
        if path != _Known.path:
            _Known.path = path
            by_value.forget_searches()
            functions.forget()
            beside.forget()
        return path
