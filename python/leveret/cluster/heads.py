"""On a node: the heads of jobs that it had pieces of last.

A node is not told when a job has ended, so what it keeps is bounded: a head has all arguments that
are not cut, and the function of calls. One that is wanted again is asked for. Jobs at a time whose
heads do not fit together send theirs again and again, and go on: a piece that brings its head runs.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict

from .names import Head

HEADS_MAX = 256
HEADS_BYTES = 256 << 20  # of their pickles; a single one may be larger


class Heads:
    """See the file's head. Thread safety: any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: OrderedDict[str, tuple[Head, int]] = OrderedDict()  # by last use, with bytes

    def find(self, job: str, brought: bytes | None) -> Head | None:
        """The head of a job, which its piece may have brought along.

        The piece goes on with what it is given: others may push it out at any time.
        """
        with self.lock:
            if job in self.kept:
                self.kept.move_to_end(job)
                return self.kept[job][0]
        if brought is None:
            return None
        head: Head = pickle.loads(brought)
        with self.lock:
            self.kept[job] = head, len(brought)
            while len(self.kept) > 1 and self._is_full():
                self.kept.popitem(last=False)
        return head

    def _is_full(self) -> bool:
        size = sum(each for _, each in self.kept.values())
        return len(self.kept) > HEADS_MAX or size > HEADS_BYTES
