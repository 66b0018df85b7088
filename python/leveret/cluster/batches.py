"""On a node: a batch of calls of one Python function."""

from __future__ import annotations

import io
import pickle
import time
from typing import TYPE_CHECKING, Any, Callable

from cloudpickle import cloudpickle

from ..errors import TaskFailed
from ..executor.ending import end_mapping
from ..executor.items import Items
from ..executor.mapping import in_order
from ..executor.options import DEFAULTS
from ..wire import by_value
from ..wire.pickling import _ReplyPickler, dumps
from .names import Head, Report
from .raised import Raised

if TYPE_CHECKING:
    from ..executor import ProcessExecutor
    from .node import Node


_MAKERS = (cloudpickle._make_skeleton_class, cloudpickle._make_skeleton_enum)


class _Unpickler(pickle.Unpickler):
    """Reads calls, and notes classes that go by value: in results they are the driver's again."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return _noting(found) if any(found is each for each in _MAKERS) else found


def _noting(maker: Callable[..., type]) -> Callable[..., type]:
    def make(*about: Any) -> type:
        is_new = about[-2] not in cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
        kind = maker(*about)
        if is_new:
            by_value.note_of_host(kind)
        return kind

    return make


def _load(pickled: bytes) -> Any:
    return _Unpickler(io.BytesIO(pickled)).load()


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
        function, items = _load(head.function), _load(pickled)
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


def dump_report(report: Report) -> bytes:
    """Of one with results whose classes or functions this process cannot import.

    Those of the driver are in its main module, say, which may have run here, too.
    """
    return dumps(report, 0, _ReplyPickler)[0]
