"""Where workers search for modules: where the host does when a call is submitted."""

from __future__ import annotations

import os
import pickle
import sys

from ..launch import is_absolute, search_path
from ..wire import beside, by_value, functions

_Seen = tuple[list[str], bool, "str | None"]  # sys.path, whether an entry is relative, to what


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
        self.sent, self.seen = _look()

    def news(self) -> bytes:
        """What goes with a call: nothing while the path is as it was in the beginning."""
        path, is_relative, folder = self.seen
        if sys.path != path or (is_relative and _folder() != folder):
            now, seen = _look()
            if now != self.sent:
                self.pickled = pickle.dumps(now, 5)
                self.sent = now
            self.seen = seen  # last: another thread that finds nothing new takes the above
        return self.pickled


def _look() -> tuple[list[str], _Seen]:
    """Where workers are to search, and what of this process says so."""
    seen = list(sys.path)
    is_relative = not all(is_absolute(str(each)) for each in seen)
    folder = _folder()
    path = search_path()
    if path != _Known.path:
        by_value.forget_searches()
        functions.forget()
        beside.forget()
        _Known.path = path
    return path, (seen, is_relative, folder)
