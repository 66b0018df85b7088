"""Where workers search for modules: where the host does when a call is submitted."""

from __future__ import annotations

import pickle
import sys

from ..wire import by_value


class SearchPath:
    """Notices when sys.path changed after the worker processes' program was started with it."""

    def __init__(self) -> None:
        self.known = list(sys.path)
        self.pickled = b""

    def news(self) -> bytes:
        """What goes with a call: nothing while the path is as it was in the beginning."""
        if sys.path != self.known:
            self.known = list(sys.path)
            self.pickled = pickle.dumps([str(each) for each in self.known], 5)
            by_value.forget_searches()
        return self.pickled
