"""What a cluster asks of the engine below it, and the engine that any Executor is.

An engine runs node.perform() somewhere, tells when it is done, and moves what it is given. It is
told nothing of tasks. Thread safety: its methods are called by the driver's thread, `told` by any.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from concurrent import futures
from typing import Any, Callable, NamedTuple, Protocol

from .. import _core
from ..errors import Closed, LeveretError, Status
from . import node
from .names import NodeSettings


class Sent(NamedTuple):
    """A piece on its way to wherever the engine likes. arguments: of node.perform()."""

    key: str
    arguments: tuple[Any, ...]
    priority: int = 0
    stays: bool = False  # its outputs stay on the node; the driver gets the rest of the report
    avoid: frozenset[str] = frozenset()  # nodes that are not to have it


class Told(NamedTuple):
    """What became of a piece: a report, or why there is none.

    deaths: nodes that went with it; it may run again then. handle: what stands for the outputs that
    stay there.
    """

    key: str
    report: Any = None
    error: BaseException | None = None
    deaths: int = 0
    handle: Any = None


Tell = Callable[[list[Told]], None]
Found = Callable[[dict[str, str], int], object]


class Engine(Protocol):
    """An engine as the driver sees it."""

    def open(self, settings: NodeSettings, tell: Tell) -> None: ...

    def slots(self) -> int:
        """Pieces that run at the same time, on all nodes together; 0: there is no node."""

    def nodes(self) -> list[str]:
        """Their names, as far as the engine knows them."""

    def send(self, pieces: list[Sent]) -> None: ...

    def take_back(self, keys: Iterable[str]) -> None: ...

    def end(self, job: str) -> None:
        """Ends what runs of a job, as far as the engine reaches it."""

    knows_nodes: bool  # whether it can tell them apart, and keep a piece from one

    def refuse(self, node: str) -> bool:
        """Sends nothing more to a node; False: it knows none of this name."""

    def locate(self, keys: list[str], found: Found) -> None:
        """Calls `found` with the nodes of those pieces that have one now, and how many more pieces
        could begin at once; on any thread, or never."""

    def wait_for_nodes(self, seconds: float) -> None:
        """Returns when there is a node. Raises Unavailable after so many seconds."""

    def shares_data(self, other: Engine) -> bool:
        """Whether what scatter() gives here means the same to another engine."""

    def scatter(self, parts: list[Any], seconds: float) -> list[Any]:
        """What stands for the parts, which lie on nodes then. Where all of them die meanwhile it
        waits for others. Raises Unavailable after so many seconds."""

    def output(self, handle: Any, index: int) -> Any:
        """What stands for one output of a piece that stays on its node."""

    def gather(self, handles: list[Any]) -> list[Any]: ...

    def close(self) -> None: ...

    def gone(self) -> LeveretError | None:
        """Why it will tell nothing any more, as somebody has closed what it works with."""

    def name(self) -> str: ...


def kept(report: Any, index: int) -> Any:
    """One output of a report that stayed on its node."""
    return report.outputs[index]


class ExecutorEngine:
    """A concurrent.futures.Executor as the engine: its workers are the nodes.

    What it has no means for: naming nodes, ending what runs in other processes, and keeping arrays
    there, which stay with the driver.
    """

    knows_nodes = False

    def __init__(self, executor: futures.Executor) -> None:
        self.executor = executor
        self.under_way: dict[str, futures.Future[Any]] = {}
        self.cluster = ""

    def open(self, settings: NodeSettings, tell: Tell) -> None:
        self.cluster = settings.cluster
        self.tell = tell
        if getattr(self.executor, "_shutdown", False) is True:
            raise Closed("the executor is shut down; give a Cluster one that is open")

    def slots(self) -> int:
        for name in ("_max_workers", "num_workers"):  # of the standard library's, and mpi4py's
            found = getattr(self.executor, name, None)
            if isinstance(found, int) and found > 0:
                return found
        return _core.available_cores()

    def nodes(self) -> list[str]:
        return [self.name()] * self.slots()

    def name(self) -> str:
        return type(self.executor).__name__

    def send(self, pieces: list[Sent]) -> None:
        for piece in pieces:
            try:
                future = self.executor.submit(node.perform, *piece.arguments)
            except RuntimeError as error:  # it was shut down, or has broken
                closed = Closed(f"{self.name()} takes no more work: {error}", Status.CLOSED)
                self.tell([Told(piece.key, error=closed)])
                continue
            self.under_way[piece.key] = future
            future.add_done_callback(functools.partial(self._told, piece.key))

    def _told(self, key: str, done: futures.Future[Any]) -> None:
        self.under_way.pop(key, None)
        if done.cancelled():
            self.tell([Told(key, error=futures.CancelledError())])
            return
        error = done.exception()
        if error is not None:
            self.tell([Told(key, error=error)])
        else:
            self.tell([Told(key, report=done.result(), handle=done)])

    def take_back(self, keys: Iterable[str]) -> None:
        for key in keys:
            future = self.under_way.get(key)
            if future is not None:
                future.cancel()

    def end(self, job: str) -> None:
        node.end_job(self.cluster, job)  # those in this process

    def refuse(self, node: str) -> bool:
        return False

    def locate(self, keys: list[str], found: Found) -> None:
        """It cannot be told where a piece is."""

    def wait_for_nodes(self, seconds: float) -> None:
        """They come with the executor."""

    def shares_data(self, other: Engine) -> bool:
        return isinstance(other, ExecutorEngine)  # it is the driver's

    def scatter(self, parts: list[Any], seconds: float) -> list[Any]:
        return parts

    def output(self, handle: Any, index: int) -> Any:
        return handle.result().outputs[index]

    def gather(self, handles: list[Any]) -> list[Any]:
        return handles

    def gone(self) -> LeveretError | None:
        return None  # a Future is always told how it ended

    def close(self) -> None:
        node.close_nodes(self.cluster)
