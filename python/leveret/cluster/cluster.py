"""Cluster: a Runtime's manners on more than one computer (docs/how-to/more-than-one-computer.md).

What is under it is an engine that others keep, Dask distributed or any Executor. It schedules,
moves data and starts nodes; Leveret brings worker processes that may crash, and finds who is to
blame.
"""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
from collections.abc import Iterable, Iterator
from concurrent import futures
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Literal, overload

import cloudpickle

from .. import procedures
from ..arrays import refuse_masked
from ..errors import Closed, Status
from ..nearest import names_options
from . import libraries
from .array import ClusterArray
from .driver import Driver
from .engine import Engine, ExecutorEngine
from .here import StaysHere
from .map_job import MapJob, Results
from .names import NodeSettings
from .options import check_integer, checked_settings, checked_submit
from .pace import Pace
from .plan import plan
from .task_job import TaskJob
from .ticket import ClusterTicket, Progress, as_completed, progress_of

if TYPE_CHECKING:
    from .._core import Procedure
    from ..executor.future import Result
    from ..executor.options import OnPoison
    from ..signature import Signature

PACES_MAX = 1024  # functions and procedures whose pace is known
CHUNK_BYTES = 4 << 20  # scatter() makes no more chunks than that asks for, but four for each node


def engine_of(client: Any) -> Engine:
    """The engine that a client is. Raises TypeError for anything else."""
    if isinstance(client, futures.Executor):
        # By its name: a driver that has other nodes need not import it.
        homes = (str(kind.__module__) for kind in type(client).__mro__)
        if any(home.startswith("leveret.executor.") for home in homes):
            raise TypeError(
                "client must not be a ProcessExecutor, whose worker processes start no others: "
                "call its own map(), or give a ThreadPoolExecutor or ProcessPoolExecutor"
            )
        return ExecutorEngine(client)
    if type(client).__module__.partition(".")[0] == "distributed" or hasattr(client, "scheduler"):
        from .dask_engine import DaskEngine

        return DaskEngine(client)
    raise TypeError(
        "client must be a distributed.Client or a concurrent.futures.Executor, not "
        f"{type(client).__name__}"
    )


class Cluster(StaysHere):
    """Runs tasks and Python calls on the nodes of a Dask cluster, in processes that may crash.

    Use it as a context manager: the end of the block waits for all tasks; when the block is left by
    an exception, Ctrl-C too, what runs is ended everywhere. The client is the caller's, and stays
    open.

    client: a distributed.Client, or any concurrent.futures.Executor but a ProcessExecutor, whose
    workers are the nodes then. processes: worker processes of each node; by default as many as the
    Dask worker has threads, or the cores. worker_memory: private bytes of each; by default the
    share that Dask's memory limit leaves it. pool: nodes on one computer that name the same one
    share its worker processes for tasks. slice_seconds: how long a slice should take.
    wait_for_nodes: seconds that work waits when there is no node, until it fails. options: further
    ones of leveret.ProcessExecutor, such as max_attempts, timeout, env or preload, for calls of
    map().

    Raises Closed for a client that is closed, Unavailable when a node has other versions of
    leveret, Python or processor, or cannot import leveret, TypeError and ValueError for options
    that make no sense. Thread safety: any thread. Cost: a question to all nodes, milliseconds;
    their worker processes are started by their first piece.
    """

    _driver: Driver
    _instead = "let the function that a node calls do without it"

    def __init__(
        self,
        client: Any,
        *,
        processes: int = 0,
        worker_memory: int | None = None,
        pool: str | None = None,
        slice_seconds: float = 0.1,
        wait_for_nodes: float = 30.0,
        **options: Any,
    ) -> None:
        name = uuid.uuid4().hex[:12]
        settings = NodeSettings(name, processes, worker_memory, pool, tuple(options.items()))
        checked_settings(settings, slice_seconds, wait_for_nodes)
        self._settings = settings
        self._aim = float(slice_seconds)
        self._paces: dict[Any, Pace] = {}
        self._tickets: dict[ClusterTicket, None] = {}  # never set anew: any thread changes it
        self._numbers = iter(range(1 << 62))
        self._pid = os.getpid()
        self._driver = Driver(engine_of(client), settings, float(wait_for_nodes))

    # Procedures and data.

    def load(
        self,
        path: str | os.PathLike[str],
        symbol: str,
        signature: Signature,
        name: str | None = None,
    ) -> Procedure:
        """Makes a procedure of a function in a shared library; see leveret.load().

        The library is sent to each node that lacks its content, also to one that joins later: by
        its hash, so that two versions of a file are two libraries. What it needs itself, other
        libraries say, must be on the nodes. Raises what leveret.load() raises, but for a file that
        was replaced: the nodes get the new one.
        """
        made = procedures.load_for_nodes(path, symbol, signature, name)
        libraries.name_of(made)
        return made

    @names_options("scatter")
    def scatter(self, array: Any, chunks: int | None = None) -> ClusterArray:
        """Cuts an array along its first axis and leaves the chunks on the nodes.

        chunks: how many; by default four for each node, or more for large arrays. Chunks that are
        neighbours lie on the same node. A chunk goes with its node if that dies: scatter again.
        Waits for a node when there is none, `wait_for_nodes` seconds, and raises Unavailable when
        none has come; Closed when the client is. Cost: moves all of it.
        """
        import numpy as np

        self._check_open()
        refuse_masked("array", array)
        whole = np.asarray(array)
        if not whole.shape or whole.dtype.hasobject:
            raise TypeError(f"array: expected one of numbers with an axis, got {whole.dtype}")
        if chunks is not None:
            check_integer("chunks", chunks, 1)
        engine, seconds = self._driver.engine, self._driver.wait_for_nodes
        engine.wait_for_nodes(seconds)
        wanted = chunks or max(4 * len(engine.nodes()), whole.nbytes // CHUNK_BYTES)
        count = max(1, min(wanted, len(whole)))
        bounds = [len(whole) * i // count for i in range(count + 1)]
        made = ClusterArray(self, whole.shape, whole.dtype, bounds)
        parts = [np.array(whole[a:b], order="C") for a, b in zip(bounds, bounds[1:])]
        made._handles = engine.scatter(parts, seconds)
        return made

    @names_options("empty_like")
    def empty_like(self, array: ClusterArray, dtype: Any = None) -> ClusterArray:
        """An array of zeros in the same chunks, for a task to write. Takes no memory until then."""
        import numpy as np

        self._check_open()
        _check_array(array)
        kind = array.dtype if dtype is None else np.dtype(dtype)
        if kind.hasobject:
            raise TypeError(f"dtype: expected one of numbers, got {kind}")
        return ClusterArray(self, array.shape, kind, array.bounds)

    def gather(self, array: ClusterArray) -> Any:
        """The array's chunks as one NumPy array here; see ClusterArray.gather()."""
        _check_array(array)
        return array.gather()

    # Work.

    @names_options("submit")
    def submit(
        self,
        procedure: Procedure,
        *args: Any,
        after: ClusterTicket | Iterable[ClusterTicket] = (),
        priority: int = 0,
        grain: int = 0,
        task_timeout: float | None = None,
        max_attempts: int = 0,
    ) -> ClusterTicket:
        """Runs a procedure over sliced arrays on all nodes; the call of Runtime.submit().

        args: one for each parameter that is not count(), rows() or stride(). Arrays in
        leveret.sliced() are cut along their first axis; those that are not go whole to each slice,
        and may only be read. They must not be changed until the ticket is done. Outputs are
        written when their slice's report comes, so that a slice that ran twice, because its node
        was lost, is visible once; `inout` as well.

        after: tickets that must end well before. priority: larger is sent earlier. grain: elements
        of a slice, at least. task_timeout, max_attempts: as of Runtime.submit(), on the node.

        Raises TypeError, ValueError, BufferError and InvalidArgument naming the argument that does
        not fit, also for far memory and results, which a Cluster has not; Closed. What fails on a
        node is raised by the ticket.
        """
        self._check_open()
        name = libraries.name_of(procedure)
        planned = plan(procedure, args, self._driver.engine)
        earlier, options = checked_submit(after, priority, grain, task_timeout, max_attempts)
        key, pace = self._new_key(), self._pace(name)
        job = TaskJob(key, self._settings, name, planned, options, grain, pace, priority, earlier)
        ticket = ClusterTicket(self._driver, job, procedure)
        for each in list(self._tickets):
            if _is_over(each):
                self._tickets.pop(each, None)
        try:
            self._tickets[ticket] = None  # before it runs, so that no job is unknown
            self._driver.add(job)
        except BaseException:  # a Ctrl-C: the caller gets no ticket
            self._tickets.pop(ticket, None)
            ticket.cancel()
            raise
        return ticket

    @overload
    def map(
        self,
        fn: Callable[..., Result],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        on_poison: Literal["raise"] = "raise",
        return_exceptions: Literal[False] = False,
    ) -> Iterator[Result]: ...

    @overload
    def map(
        self,
        fn: Callable[..., Result],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        on_poison: OnPoison = "raise",
        return_exceptions: bool = False,
    ) -> Iterator[Result | BaseException]: ...

    @names_options("map")
    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        on_poison: OnPoison = "raise",
        return_exceptions: bool = False,
    ) -> Iterator[Any]:
        """The results of fn for the items, in their order; see leveret.ProcessExecutor.map().

        Items travel in batches, by what calls took before; chunksize: so many in each. What has a
        length is taken at once, anything else 65,536 items ahead, or buffersize. A call that ends
        its process on each attempt is Poison, with its `node`; on_poison="return" gives it in its
        place, return_exceptions=True every exception. Otherwise the first one is raised, and the
        rest is ended, as it is when the loop is left early. timeout: seconds from now.
        """
        from ..executor import checking  # submit() needs none of it
        from ..executor.options import policy

        self._check_open()
        keeps = policy(on_poison, return_exceptions)
        chunksize, buffersize = checking.sizes(chunksize, buffersize)
        timeout = checking.wait_seconds(timeout)
        if not callable(fn):
            raise TypeError(f"fn must be callable, not {type(fn).__name__}")
        if not iterables:
            raise TypeError("map() needs at least one iterable")
        function = cloudpickle.dumps(fn, 5)
        pace = self._pace(hashlib.sha256(function).digest())  # it may be large
        job = MapJob(self._new_key(), self._settings, function, pace, chunksize)
        results = Results(self._driver, job, fn, iterables, keeps, timeout, buffersize)
        return iter(results)

    def as_completed(
        self, tickets: ClusterTicket | Iterable[ClusterTicket], timeout: float | None = None
    ) -> Iterator[ClusterTicket]:
        """Yields each ticket once, as it is done. Failures are not raised: wait() does that.

        timeout: seconds from now for all of them; TimeoutError when it is over.
        """
        return as_completed(tickets, timeout)

    def progress(self) -> Progress:
        """How far all tasks are together that are under way, or that nobody has waited for."""
        return progress_of([each._job for each in list(self._tickets)])

    def nodes(self) -> list[str]:
        """The names of the nodes that there are now."""
        return self._driver.engine.nodes()

    # The end.

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._driver.is_stopped

    def wait_for_completion(self, timeout: float | None = None) -> None:
        """Waits for all tasks; raises the first failure that no wait() has told. TimeoutError."""
        waited = list(as_completed(list(self._tickets), timeout))
        for ticket in waited:
            self._tickets.pop(ticket, None)
        for ticket in waited:
            if not ticket._is_told:
                ticket.wait()

    def close(self) -> None:
        """Ends what runs everywhere, and the nodes' worker processes. The client stays open."""
        if self._pid != os.getpid():
            return
        for ticket in list(self._tickets):
            ticket.cancel()
        self._driver.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and not self.closed:
                self.wait_for_completion()
        finally:
            self.close()

    def __del__(self, warn: type[Warning] = ResourceWarning) -> None:
        driver = self.__dict__.get("_driver")
        if driver is not None and not driver.is_stopped and self._pid == os.getpid():
            text = f"{self!r} was not closed; use it in a `with` block"
            warnings.warn(text, warn, stacklevel=2, source=self)
            driver.abandon()

    def __repr__(self) -> str:
        if "_driver" not in self.__dict__:
            return "<leveret.Cluster, not opened>"
        name = self._driver.engine.name()
        state = "closed" if self.closed else f"{len(self.nodes())} nodes"
        return f"<leveret.Cluster on {name}, {state}>"

    # Its own.

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            text = "this Cluster was made before os.fork(); make one in this process"
            raise Closed(text, Status.CLOSED)
        if self.closed:
            raise Closed("the Cluster is closed", Status.CLOSED)

    def _new_key(self) -> str:
        return f"{self._settings.cluster}-{next(self._numbers)}"

    def _pace(self, key: Any) -> Pace:
        if key not in self._paces and len(self._paces) >= PACES_MAX:
            self._paces.clear()
        return self._paces.setdefault(key, Pace(self._aim))


def _check_array(array: Any) -> None:
    if not isinstance(array, ClusterArray):
        kind = type(array).__name__
        raise TypeError(f"array must be one of Cluster.scatter() or empty_like(), not {kind}")


def _is_over(ticket: ClusterTicket) -> bool:
    """Whether nothing is left to be told of it."""
    return ticket.done() and (ticket._is_told or ticket._job.outcome() is None)
