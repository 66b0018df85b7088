"""On a node: a batch of calls of one Python function."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any

from ..errors import TaskFailed
from ..executor.ending import end_mapping
from ..executor.items import Items
from ..executor.mapping import in_order
from ..executor.options import DEFAULTS
from .names import Head, Report
from .raised import Raised

if TYPE_CHECKING:
    from ..executor import ProcessExecutor
    from .node import Node


class Calls:
    """The calls of a batch under way on an executor, in order."""

    def __init__(self, executor: ProcessExecutor, function: Any, items: list[Any]) -> None:
        self.pool = executor._pool
        taken = Items(tuple(zip(*items)), None, self.pool.workers, False)
        self.mapping = executor._mapping(DEFAULTS, function, taken, None)

    def outcomes(self, node: str) -> list[Any]:
        """Runs them. Raises CancelledError when they were ended."""
        self.mapping.start()
        found = []
        for value in in_order(self.mapping, lambda: None, lambda error: True):
            failed = isinstance(value, BaseException)
            found.append(Raised(value, node) if failed else value)
        return found

    def cancel(self) -> None:
        """Ends them: what waits is not begun, what runs ends with its process."""
        self.mapping.close()
        end_mapping(self.pool, self.mapping)


def run_calls(node: Node, head: Head, pickled: bytes) -> Report:
    """Runs the calls of a batch on the node's executor; each outcome is a value or Raised."""
    try:
        function, items = pickle.loads(head.function), pickle.loads(pickled)
    except Exception as error:  # an unpickler may raise what it likes
        raise TaskFailed(
            f"a call cannot be unpickled on {node.address}: {error!r}; modules that it needs must "
            "be on every node"
        ) from error
    calls = Calls(node.executor, function, items)
    start = time.perf_counter()
    with node.watched(head.key, calls):
        outcomes = calls.outcomes(node.address)
    seconds = time.perf_counter() - start
    node.note(seconds, 0)
    return Report("done", node.address, seconds, (outcomes,))
