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
from ..said import text_of
from ..wire import by_value, chunks
from ..wire.errors import dump_error
from .items import Apart, load_items
from .names import Head, Report

if TYPE_CHECKING:
    from ..executor import ProcessExecutor
    from .node import Node


_MAKERS = (cloudpickle._make_skeleton_class, cloudpickle._make_skeleton_enum)


class _Unpickler(pickle.Unpickler):
    """Reads calls, and notes classes that go by value: in results they are the driver's again.

    The driver may be this process. Its classes are found by their numbers then, and are what they
    are: what was pickled of them is not set again, as their functions would be copies.
    """

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if found is cloudpickle._class_setstate:
            return _set_state
        return _noting(found) if any(found is each for each in _MAKERS) else found


def _set_state(kind: type, state: Any) -> type:
    if by_value.is_of_host(kind):
        cloudpickle._class_setstate(kind, state)
    return kind


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


def _dump_raised(error: BaseException, node: str) -> bytes:
    """What a call has raised, as it travels to the driver, with the text of its cause."""
    if isinstance(error, TaskFailed):
        error.node = node
        error.args = (f"{text_of(error)} (on {node})", *error.args[1:])
    cause = error.__cause__
    return dump_error(error, "" if cause is None else text_of(cause).strip('\n"'))


class Calls:
    """The calls of a batch under way on an executor, in order. errors: of those without one."""

    def __init__(
        self, executor: ProcessExecutor, function: Any, items: list[Any], errors: dict[int, bytes]
    ) -> None:
        self.pool = executor._pool
        self.errors = errors
        self.count = len(items) + len(errors)
        taken = Items(tuple(zip(*items)), None, self.pool.workers, False)
        self.mapping = executor._mapping(DEFAULTS, function, taken, None)

    def outcomes(self, node: str) -> chunks.Results:
        """Runs them. Raises CancelledError when they were ended.

        Each is pickled by itself: one that cannot be, or that the driver cannot read, fails alone.
        """
        self.mapping.start()
        found = chunks.Results()
        values = in_order(self.mapping, lambda: None, lambda error: True)
        for place in range(self.count):
            if place in self.errors:
                found.add_error(self.errors[place])
                continue
            value = next(values)
            if isinstance(value, BaseException):
                found.add_error(_dump_raised(value, node))
                continue
            try:
                found.add(value)
            except BaseException as error:  # a pickler may raise what it likes
                found.add_error(_dump_raised(error, node))
        return found

    def cancel(self) -> None:
        """Ends them: what waits is not begun, what runs ends with its process."""
        self.mapping.close()
        end_mapping(self.pool, self.mapping)


def _unread(error: BaseException, address: str) -> TaskFailed:
    return TaskFailed(
        f"a call cannot be unpickled on {address}: {error!r}; modules that it needs must be on "
        "every node"
    )


def run_calls(node: Node, head: Head, pickled: bytes) -> Report:
    """Runs the calls of a batch on the node's executor."""
    try:
        function = _load(head.function)
    except Exception as error:  # an unpickler may raise what it likes
        raise _unread(error, node.address) from error
    errors: dict[int, bytes] = {}
    try:
        items = _load(pickled)
    except Exception as error:
        return Report("apart", node.address, why=str(_unread(error, node.address)))
    if isinstance(items, Apart):
        items, errors = load_items(
            items, _load, lambda error: dump_error(_unread(error, node.address), "")
        )
    calls = Calls(node.executor, function, items, errors)
    start = time.perf_counter()
    with node.watched(head.key, calls):
        outcomes = calls.outcomes(node.address)
    seconds = time.perf_counter() - start
    node.note(seconds, 0)
    return Report("done", node.address, seconds, (outcomes.parts(),))
