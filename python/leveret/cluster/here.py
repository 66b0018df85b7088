"""What stays in the process that made it: it has threads, a client, or data that others keep."""

from __future__ import annotations

from typing import NoReturn


class StaysHere:
    """A base of what cannot be pickled; it says so, and what to do."""

    _instead = ""

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(
            f"a {kind} cannot be sent to a node, or pickled: it belongs to the process that made "
            f"it; {self._instead}"
        )
