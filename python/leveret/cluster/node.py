"""A node: what runs pieces in a process of the engine, on one executor with its worker processes.

The engine calls perform() for each piece, on any of its threads. A node is opened by the first
piece of its cluster that comes here, or by the engine's plugin before, and closed by the plugin,
by the driver, or with the process. What it must know, jobs' heads and libraries, it keeps; what
it lacks it asks for by a report that says so.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import socket
import sys
import threading
import time
from collections import OrderedDict
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import Cancelled, Closed, InvalidArgument, LeveretError, PoolDown, Status
from ..runtime import Runtime
from . import libraries
from .heads import Heads
from .names import (
    SMALL_BYTES,
    Head,
    NodeSettings,
    Note,
    Report,
    Versions,
    difference,
    versions,
)
from .pieces import Slice

if TYPE_CHECKING:
    from ..executor import ProcessExecutor

ENDED_MAX = 4096  # jobs that were ended: what comes of them later is not begun
CLOSED_MAX = 4096  # nodes that were closed: what comes to them later opens no other

_lock = threading.Lock()
_nodes: dict[tuple[str, str], Node] = {}  # by cluster and address
# By cluster and address; None: all of them in this process.
_closed: OrderedDict[tuple[str, str | None], None] = OrderedDict()


def engine_worker() -> Any:
    """The Dask worker whose task this thread runs, or None."""
    if "distributed.worker" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def address_here(worker: Any) -> str:
    """The name of this node: the Dask worker's address, or computer and process."""
    return str(worker.address) if worker is not None else f"{_computer()}:{os.getpid()}"


@functools.lru_cache
def _computer() -> str:
    return socket.gethostname()


class Node:
    """An executor, and the pieces that run on it. Thread safety: any thread."""

    def __init__(self, settings: NodeSettings, address: str, share: int, memory: int) -> None:
        """share: processes when the settings do not say; memory: bytes for all of them, 0: any."""
        processes = settings.processes or share
        limit = settings.worker_memory
        if limit is None:
            limit = memory // processes
        self.address = address
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.running: dict[str, set[Any]] = {}  # tickets and futures, by job
        self.ended: OrderedDict[str, None] = OrderedDict()
        self.heads = Heads()
        self.done = self.failed = 0
        self.seconds = 0.0
        self.is_closed = False
        self._options = {"worker_memory": limit, **dict(settings.options)}
        self._processes = processes
        self._pool = settings.pool
        self._executor: ProcessExecutor | None = None
        self._broken: list[ProcessExecutor] = []  # earlier ones, whose last calls may run
        self._runtime: Runtime | None = None

    @property
    def executor(self) -> ProcessExecutor:
        """The worker processes for calls; new ones when the last ones could not go on."""
        with self.lock:
            if self.is_closed:
                raise Closed("the node is closed")
            if self._executor is not None and self._executor._pool.broken is not None:
                left = [each for each in self._broken if not each._pool.closed.is_set()]
                self._broken, self._executor = [*left, self._executor], None
            if self._executor is None:
                from ..executor import ProcessExecutor  # a driver imports this module, too

                self._executor = ProcessExecutor(self._processes, **self._options)
            return self._executor

    @property
    def runtime(self) -> Runtime:
        """The runtime for tasks: that of the executor, or one that shares a pool's workers."""
        if self._pool is None:
            return self.executor._pool.runtime
        with self.lock:
            if self._runtime is None and not self.is_closed:
                memory = self._options["worker_memory"]
                self._runtime = Runtime(
                    "processes", self._processes, pool=self._pool, worker_memory=memory
                )
            if self._runtime is None:
                raise Closed("the node is closed")
            return self._runtime

    @contextlib.contextmanager
    def watched(self, job: str, one: Any) -> Any:
        """While a ticket or future of the job runs, end() finds it."""
        with self.lock:
            is_ended = job in self.ended or self.is_closed
            self.running.setdefault(job, set()).add(one)
        try:
            if is_ended:
                _end(one)
            yield one
        finally:
            with self.lock:
                mine = self.running[job]
                mine.discard(one)
                if not mine:
                    del self.running[job]

    def end(self, job: str) -> None:
        """Ends what runs of a job, with the worker processes; what comes later is not begun."""
        with self.lock:
            self.ended[job] = None
            while len(self.ended) > ENDED_MAX:
                self.ended.popitem(last=False)
            found = list(self.running.get(job, ()))
        for one in found:
            _end(one)

    def close(self) -> None:
        """Ends what runs, and the worker processes."""
        with self.lock:
            self.is_closed = True
            found = [each for job in self.running.values() for each in job]
            executors, runtime = [*self._broken, self._executor], self._runtime
        if self.pid != os.getpid():
            return
        for one in found:
            _end(one)
        if runtime is not None:
            runtime.close(cancel_waiting=True)
        for executor in filter(None, executors):
            executor.terminate_workers()
            executor.shutdown(wait=True)

    # Pieces.

    def learn(self, job: str, parcels: dict[str, bytes], folder: str | None) -> Head | None:
        """Keeps the head and the library that came with a piece; gives the head, if it is here."""
        for key, data in parcels.items():
            if key != job:
                libraries.keep(key, data, folder)
        return self.heads.find(job, parcels.get(job))

    def run(self, head: Head, piece: tuple[int, int], arrays: tuple[Any, ...]) -> Report:
        """Runs a piece that lacks nothing."""
        key = head.key
        if key in self.ended:
            return Report("again", self.address, why="the job was ended")
        if head.procedure is None:
            from .batches import run_calls

            return run_calls(self, head, arrays[0])
        try:
            procedure = libraries.procedure_of(head.procedure)
        except (OSError, InvalidArgument) as error:
            return self._unfit(head.procedure.name, error)
        begin, end = piece
        run = functools.partial(self._run_task, key, self.runtime)
        slice_ = Slice(head, procedure, begin, end, arrays, run)
        start = time.perf_counter()
        try:
            slice_.run()
        except InvalidArgument as error:
            if error.status != Status.BAD_PROCEDURE:
                raise
            return self._unfit(head.procedure.name, error)
        seconds = time.perf_counter() - start
        self.note(seconds, len(slice_.failures))
        return Report("done", self.address, seconds, tuple(slice_.outputs), tuple(slice_.failures))

    def _unfit(self, procedure: str, error: Exception) -> Report:
        why = f"library of '{procedure}' cannot be used on {self.address}: {error}"
        return Report("unfit", self.address, why=why)

    def report_down(self, error: PoolDown) -> Report:
        """Of a piece whose worker processes could not run it; a node that closes ends them."""
        why = f"the worker processes of {self.address} cannot be used: {error}"
        text = getattr(error.__cause__, "text", "")  # the traceback of an initializer
        why = f"{why}\n{text}" if text else why
        return Report("again" if self.is_closed else "down", self.address, why=why)

    def deaths(self) -> int:
        """Worker processes that have died."""
        with contextlib.suppress(LeveretError):
            if self._executor is not None:
                return self._executor._pool.runtime.counters()["deaths"]
        return 0

    def note(self, seconds: float, failures: int) -> None:
        with self.lock:
            self.done += 1
            self.failed += failures
            self.seconds += seconds

    def _run_task(self, key: str, runtime: Runtime, args: Any, options: Any) -> None:
        """Runs a task of a job and waits for it, so that end() finds it."""
        ticket = runtime.submit(*args, **options)
        with self.watched(key, ticket):
            ticket.wait()


def _end(one: Any) -> None:
    """Ends a ticket or a future wherever it is."""
    with contextlib.suppress(LeveretError):
        one.end() if isinstance(one, _core.Ticket) else one.cancel()


def node_of(settings: NodeSettings, worker: Any) -> Node:
    """The node of this cluster here; opened if there is none. Raises Closed if it was closed."""
    key = settings.cluster, address_here(worker)
    with _lock:
        if key in _closed or (settings.cluster, None) in _closed:
            raise Closed(f"the node {key[1]} is closed", Status.CLOSED)
        node = _nodes.get(key)
        if node is None or node.is_closed or node.pid != os.getpid():
            share, memory = share_of(worker)
            node = _nodes[key] = Node(settings, key[1], share, memory)
    return node


def share_of(worker: Any) -> tuple[int, int]:
    """Processes and bytes that the engine lets this node have."""
    if worker is None:
        return _core.available_cores(), 0
    return max(1, worker.state.nthreads), int(worker.memory_manager.memory_limit or 0)


def perform(pickled: bytes, *arrays: Any) -> Any:
    """What the engine runs for a piece; see names.Note. Failures of the piece are in the report.

    A small report is given pickled, as engines spend more on objects than on bytes.
    """
    note = Note(*pickle.loads(pickled))
    report = _perform(note, arrays)
    size = sum(getattr(each, "nbytes", SMALL_BYTES) for each in report.outputs)
    return report if note.stays or size > SMALL_BYTES else pickle.dumps(report, 5)


def _perform(note: Note, arrays: tuple[Any, ...]) -> Report:
    worker = engine_worker()
    address = address_here(worker)
    if _core.worker_index() is not None:
        why = f"{address} is a worker process of Leveret, which starts no others (Dask's are that "
        why += "after register(default=True), and a Cluster needs its threads)"
        return Report("refused", address, why=why)
    differs = difference(Versions(*note.versions), versions(), address)
    if differs is not None:
        return Report("refused", address, why=differs)
    folder = worker.local_directory if worker is not None else None
    try:
        node = node_of(NodeSettings(*note.settings), worker)
        head = node.learn(note.job, note.parcels, folder)
        if head is None:
            return Report("missing", address, lacks=(note.job,))
        library = head.procedure.library if head.procedure is not None else ""
        if library and not libraries.has(library):
            return Report("missing", address, lacks=(library,))
        rest = iter(arrays)
        given = tuple(next(rest) if each is None else each for each in note.small)
        try:
            return node.run(head, note.piece, given)
        except PoolDown as error:
            return node.report_down(error)
    except (Cancelled, Closed, CancelledError) as error:
        return Report("again", address, why=str(error))


def counters(address: str) -> dict[str, Any]:
    """What the nodes at this address have done, summed over clusters."""
    found = [node for key, node in list(_nodes.items()) if key[1] == address]
    return {
        "pieces": sum(node.done for node in found),
        "failed": sum(node.failed for node in found),
        "seconds": round(sum(node.seconds for node in found), 3),
        "deaths": sum(node.deaths() for node in found),
        "running": sum(len(each) for node in found for each in list(node.running.values())),
    }


def has_node(cluster: str, dask_worker: Any = None) -> bool:
    """Whether a node of this cluster is open here, for Dask's Client.run()."""
    return any(key[0] == cluster for key in list(_nodes))


def end_job(cluster: str, job: str, dask_worker: Any = None) -> None:
    """Ends what runs of a job on this node. dask_worker: given by Dask's Client.run()."""
    for (name, _), node in list(_nodes.items()):
        if name == cluster and (dask_worker is None or node.address == dask_worker.address):
            node.end(job)


def open_node(settings: NodeSettings, worker: Any) -> None:
    """Opens the node of a worker that starts, as pieces do that come before."""
    with _lock:
        _closed.pop((settings.cluster, address_here(worker)), None)
    node_of(settings, worker)


def close_nodes(cluster: str, address: str | None = None) -> None:
    """Closes the nodes of a cluster in this process: all, or the one with this address.

    A piece that its engine had begun already opens no other in its place.
    """
    with _lock:
        _closed[cluster, address] = None
        while len(_closed) > CLOSED_MAX:
            _closed.popitem(last=False)
        keys = [key for key in _nodes if key[0] == cluster and address in (None, key[1])]
        found = [_nodes.pop(key) for key in keys]
    for node in found:
        node.close()


def about(dask_worker: Any = None) -> tuple[str, ...]:
    """The versions here, for Dask's Client.run()."""
    return tuple(versions())
