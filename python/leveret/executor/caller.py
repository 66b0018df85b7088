"""What can be asked of an executor and of its views: submit(), map() and the like.

What options() returns is a view of the executor: it has nothing of its own but what its calls ask
for, so that the function keeps all keyword arguments for itself.
"""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Literal, overload

from ..nearest import names_options
from ..worker.memory import Limited
from . import checking
from .items import Items
from .mapping import Mapping, Part, as_they_come, in_order, time_left
from .options import DEFAULTS, CallOptions, OnPoison, changed, policy

if TYPE_CHECKING:
    from typing import ParamSpec

    from typing_extensions import Self, Unpack

    from .future import Future, Result
    from .options import GivenOptions
    from .process_executor import ProcessExecutor

    Params = ParamSpec("Params")


class Caller(futures.Executor):
    """What a ProcessExecutor and its views have in common: calls with options."""

    _asked = DEFAULTS

    def _maker(self) -> ProcessExecutor:
        """Whose calls they are."""
        raise NotImplementedError

    def submit(
        self, fn: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        return self._maker()._submit(self._asked, self._limited(fn), (args, kwargs))

    def options(self, **options: Unpack[GivenOptions]) -> ExecutorView:
        """A view of this executor whose calls ask for something: options(timeout=1).submit(f, x).

        timeout: seconds that a call may run, None: for ever. retry, max_attempts: as of the
        executor. memory: bytes that a call may allocate beyond what its process has; what goes
        beyond gets a MemoryError. name: what messages call it. priority: larger is handed over
        earlier; those handed over before are not overtaken. cancel: "kill": cancel() of its future
        also ends a call that runs. Options that are not given are the executor's.

        Raises TypeError and ValueError that name the option. Cheap; thread safe.
        """
        return ExecutorView(self._maker(), changed(self._asked, options))

    async def run(
        self, fn: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Awaits fn(*args, **kwargs) in a process, on an event loop of asyncio.

        When the task that awaits it is cancelled, a call that waits is taken back, and one that
        runs is ended with its process. Raises what the call raises. Call it on the loop's thread.
        """
        from . import event_loop  # here, as for stream()

        asked = changed(self._asked, {"cancel": "kill"})
        submit = partial(self._maker()._submit, asked, self._limited(fn), (args, kwargs))
        return await event_loop.result(submit)

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
        """Like concurrent.futures.Executor.map(): the results of fn for the items, in their order.

        timeout: seconds from now. chunksize: items that are sent together; None: one while calls
        are long or nothing is known of them, then as many as take about a millisecond. buffersize:
        calls whose results were not given yet, at most; the iterables are taken so far ahead only.
        Without it what has a length is taken at once, and anything else, which may be endless, at
        most 16,384 items or 256 MiB of arguments ahead; the rest of what nobody has asked a result
        of is taken by shutdown().

        on_poison: "return" gives the Poison, Overran or WorkerDied of an item in its place, and
        goes on. return_exceptions: gives every exception in its place. Otherwise the first one is
        raised, and what has not begun is cancelled. When the process of several items dies they are
        run one by one, so that only the one at fault fails. What the iterables raise is raised
        here, or after the results of the items before. Raises ValueError and TypeError for sizes
        that make no sense, leveret.Closed after shutdown(), TimeoutError.
        """
        keeps = policy(on_poison, return_exceptions)
        fn = self._limited(fn)
        chunksize, buffersize = checking.sizes(chunksize, buffersize)
        left = time_left(timeout)
        ahead = None if buffersize is None else buffersize * (chunksize or 1)
        mapping = self._mapping_of(fn, iterables, chunksize, ahead)
        mapping.start()
        return in_order(mapping, left, keeps)

    @names_options("submit_many")
    def submit_many(
        self,
        fn: Callable[..., Result],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
    ) -> Iterator[tuple[int, Result | BaseException]]:
        """Calls fn for the items, and yields (index, result or exception) as calls end.

        Nothing is raised for an item: an exception is its outcome. Items are taken as outcomes are
        asked for, so that endless iterables are allowed: `buffersize` of them ahead, by default at
        most 16,384 or 256 MiB of arguments. Ending the loop early cancels what has not begun.
        timeout, chunksize: as of map(), which also says what is raised.
        """
        fn = self._limited(fn)
        chunksize, buffersize = checking.sizes(chunksize, buffersize)
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        mapping = self._mapping_of(fn, iterables, chunksize, buffersize, finished.put)
        mapping.start()
        return as_they_come(mapping, finished, time_left(timeout))

    @names_options("stream")
    def stream(
        self,
        fn: Callable[..., Result],
        *iterables: Iterable[Any],
        chunksize: int | None = None,
        buffersize: int | None = None,
    ) -> AsyncIterator[tuple[int, Result | BaseException]]:
        """submit_many() for an event loop: `async for index, outcome in executor.stream(f, items)`.

        When the loop is left, or the task that it runs in is cancelled, calls that wait are taken
        back and those that run are ended with their processes; a `break` is noticed when the
        iterator is dropped, or by contextlib.aclosing(). The iterables are taken on the loop's
        thread. Raises what submit_many() raises, at the first step.
        """
        fn = self._limited(fn)
        chunksize, buffersize = checking.sizes(chunksize, buffersize)

        def make(tell: Callable[[Part | None], object]) -> Mapping:
            return self._mapping_of(fn, iterables, chunksize, buffersize, tell)

        from . import event_loop  # here: asyncio takes longer to import than all of leveret

        return event_loop.as_they_come(self._maker()._pool, make)

    def _mapping_of(
        self,
        fn: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        chunksize: int | None,
        ahead: int | None,
        tell: Callable[[Part | None], object] | None = None,
    ) -> Mapping:
        """tell: is told of parts that are done; None: results are asked for in order."""
        executor = self._maker()
        items = Items(iterables, ahead, executor._max_workers, is_lazy=tell is not None)
        return executor._mapping(self._asked, fn, items, chunksize, tell)

    def _limited(self, fn: Callable[..., Result]) -> Callable[..., Result]:
        return Limited(fn, memory=self._asked.memory) if self._asked.memory else fn


class ExecutorView(Caller):
    """An executor whose calls ask for something; see ProcessExecutor.options().

    Its shutdown(), and leaving a `with` block of it, are those of the executor.
    """

    def __init__(self, executor: ProcessExecutor, asked: CallOptions) -> None:
        self._executor = executor
        self._asked = asked

    def _maker(self) -> ProcessExecutor:
        return self._executor

    @names_options("shutdown")
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait, cancel_futures=cancel_futures)

    def __enter__(self) -> Self:
        self._executor.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._executor.__exit__(*error)
