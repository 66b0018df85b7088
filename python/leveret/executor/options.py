"""Options of single calls: executor.options(timeout=1).submit(f, x).

What options() returns is a view of the executor: it has nothing of its own but what its calls ask
for, so that the function keeps all keyword arguments for itself.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple, overload

from ..errors import Overran, Poison, WorkerDied
from ..nearest import names_options, nearest
from ..wire.page import NAME_BYTES
from ..worker.memory import Limited
from . import checking

if TYPE_CHECKING:
    from typing import ParamSpec, TypedDict

    from typing_extensions import Self, Unpack

    from .future import Future, Result
    from .process_executor import ProcessExecutor

    Params = ParamSpec("Params")

    class GivenOptions(TypedDict, total=False):
        """What options() takes."""

        timeout: float | None
        retry: bool
        max_attempts: int
        memory: int
        name: str | None
        priority: int
        cancel: Literal["waiting", "kill"]


OnPoison = Literal["raise", "return"]

ATTEMPTS_MAX = 1000


class CallOptions(NamedTuple):
    """What a call asks for. The defaults: what its executor says."""

    timeout: float | None = None  # math.inf: none
    retry: bool | None = None
    max_attempts: int = 0
    memory: int = 0
    name: str | None = None
    priority: int = 0
    cancel: str = "waiting"

    def ns_max(self, of_executor: int) -> int:
        """The time limit as workers are told of it; 0: none."""
        if self.timeout is None:
            return of_executor
        return 0 if self.timeout > 1e9 else max(1, int(self.timeout * 1e9))

    def sent_name(self) -> bytes:
        """The name, for those who look at workers from outside."""
        return b"" if self.name is None else self.name[:NAME_BYTES].encode("utf-8", "replace")

    @property
    def kills(self) -> bool:
        """Whether cancel() of its future also ends a call that runs."""
        return self.cancel == "kill"


DEFAULTS = CallOptions()
NAMES = CallOptions._fields
CANCELS = ("waiting", "kill")


_WHOLE = {
    "max_attempts": (1, ATTEMPTS_MAX),
    "memory": (0, 2**62),
    "priority": (-(2**31), 2**31 - 1),
}


def _seconds(value: Any) -> float:
    """Of a call: infinite for None."""
    if value is None:
        return math.inf
    number = checking.seconds("timeout", value)
    if not number > 0:
        raise ValueError(f"timeout must be None or above 0, not {value!r}")
    return number


def changed(before: CallOptions, given: Mapping[str, Any]) -> CallOptions:
    """The options with some of them given anew; see ProcessExecutor.options()."""
    for key, value in given.items():
        if key not in NAMES:
            raise TypeError(f"options() has no option {key!r}{nearest(key, NAMES)}")
        if key == "timeout":
            given = {**given, key: _seconds(value)}
        elif key in _WHOLE:
            given = {**given, key: checking.whole(key, value, *_WHOLE[key])}
        elif key == "retry":
            given = {**given, key: checking.yes_or_no(key, value)}
        elif key == "name" and not (value is None or isinstance(value, str)):
            raise TypeError(f"name must be a str or None, not {value!r}")
        elif key == "cancel":
            checking.choice(key, value, CANCELS)
    return before._replace(**given)


async def awaited(
    submit: Callable[..., Future[Any]], asked: CallOptions, fn: Callable[..., Result], given: Any
) -> Result:
    """The result of a call that ends when whoever awaits it is cancelled."""
    import asyncio

    loop = asyncio.get_running_loop()
    future: Future[Result] = submit(changed(asked, {"cancel": "kill"}), fn, given)
    is_done = loop.create_future()

    def wake() -> None:
        if not is_done.done():
            is_done.set_result(None)

    def on_end(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(wake)

    future.add_done_callback(on_end)
    try:
        await is_done
    finally:
        future.cancel()  # of a call that is done nothing
    if future.cancelled():
        raise asyncio.CancelledError
    # Not by a future of the loop's, which a StopIteration would never end.
    return future.result()


def policy(on_poison: str, return_exceptions: bool) -> Callable[[BaseException], bool]:
    """Which errors map() gives as values; raises ValueError for a policy that there is not."""
    checking.choice("on_poison", on_poison, ("raise", "return"))
    if checking.yes_or_no("return_exceptions", return_exceptions):
        return lambda error: True
    kinds = (Poison, Overran, WorkerDied) if on_poison == "return" else ()
    return lambda error: isinstance(error, kinds)


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
        submit = self._maker()._submit
        return await awaited(submit, self._asked, self._limited(fn), (args, kwargs))

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
        asked, fn = self._asked, self._limited(fn)
        return self._maker()._map(asked, fn, iterables, timeout, chunksize, buffersize, keeps)

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
        asked, fn = self._asked, self._limited(fn)
        return self._maker()._submit_many(asked, fn, iterables, timeout, chunksize, buffersize)

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
        asked, fn = self._asked, self._limited(fn)
        return self._maker()._stream(asked, fn, iterables, chunksize, buffersize)

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
