"""ProcessExecutor: Python functions in worker processes, for those who know concurrent.futures."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable

from .. import _core
from ..interrupts import is_of_signal
from ..nearest import names_options
from ..runtime import nanoseconds
from ..wire.chunks import Carried
from ..wire.pickling import CHUNK, SEEDED, say_of_call
from ..wire.settings import settings
from ..wire.setup import Setup
from . import checking
from .caller import Caller
from .counting import note_unmade
from .ending import end_all, enter, leave
from .environment import (
    GivenEnvironment,
    check_shared,
    checked_seed,
    environments,
    zygote_of,
)
from .future import Future
from .items import Items
from .mapping import Mapping, Part
from .names import call_name
from .notes import filters, level_names, levels
from .options import ATTEMPTS_MAX, DEFAULTS, CallOptions
from .pool import Pool
from .telling import OnDeath, OnProgress, Telling
from .work import Work

if TYPE_CHECKING:
    from typing_extensions import Self

    from .caller import Params
    from .future import Result


class ProcessExecutor(Caller):
    """Runs Python functions in worker processes that may crash.

    It is used like concurrent.futures.ProcessPoolExecutor. What is different: a call whose process
    dies is run again, up to max_attempts times, and only it fails then, with leveret.Poison that
    names it; the executor goes on. Lambdas, closures and functions of a notebook or the main module
    can be called; the main module does not run again, so no `if __name__ == "__main__"` is needed.
    NumPy arrays are not pickled; those of leveret.shared_array() are not copied either.

    max_workers: processes; as many as there are cores by default. initializer, initargs: called in
    each process before its first call; when it fails, every call gets a BrokenExecutor.
    max_tasks_per_child: calls after which a process is replaced. timeout: seconds; a call that runs
    longer is killed (leveret.Overran). retry: False for functions that must not run twice; then a
    call whose process dies fails with leveret.WorkerDied. worker_memory: private bytes of a process
    at most. idle_worker_timeout: seconds without a call after which a process is replaced by a
    fresh one of about a megabyte, so that what calls have left in memory goes back. preload:
    modules that all processes share from their start; by default NumPy, if it is imported here.

    env: variables of the processes, a dict (None: not there) or a function that makes one from a
    worker's number, see leveret.worker_index(). cwd: their folder. threads_per_worker: how many
    threads NumPy's libraries, OpenMP and Numba may start; a share of the cores by default. seed: of
    random numbers, so that each process draws others, and the same the next time; seed_calls: each
    call is seeded by its number. on_death(call, signal, attempt, traceback) is called for each
    process that died, on_progress(done, failed, total) when calls end or are taken back, both on a
    thread of their own. forward_logs: log records and warnings come to this process's handlers with
    the call's result, at this process's levels. forward_output: what calls print, too. pool: a
    name; programs that give the same one share their processes, and must have the same
    interpreter and flags, preload, worker_memory, and max_workers or threads_per_worker.
    mp_context: accepted and not used: workers are
    forked from a small process of their own, never from this one.

    Arguments must not be changed until the call is done. Results are unpickled here, as with every
    process pool: run what you trust. Raises ValueError and TypeError for options that make no
    sense. Thread safety: any thread.
    """

    @names_options("ProcessExecutor")
    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        timeout: float | None = None,
        retry: bool = True,
        max_attempts: int = 3,
        worker_memory: int = 0,
        idle_worker_timeout: float | None = None,
        preload: Iterable[str] | str | None = None,
        env: GivenEnvironment = None,
        cwd: str | os.PathLike[str] | None = None,
        threads_per_worker: int | None = None,
        seed: int | None = None,
        seed_calls: bool = False,
        on_death: OnDeath | None = None,
        on_progress: OnProgress | None = None,
        forward_logs: bool = True,
        forward_output: bool = False,
        pool: str | None = None,
        mp_context: object = None,
    ) -> None:
        checking.depth()
        available = _core.available_cores()
        max_workers = checking.workers(available if max_workers is None else max_workers)
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if max_tasks_per_child is not None:
            max_tasks_per_child = checking.whole("max_tasks_per_child", max_tasks_per_child, 1)
        retry = checking.yes_or_no("retry", retry)
        max_attempts = checking.whole("max_attempts", max_attempts, 1, ATTEMPTS_MAX)
        self._max_workers = max_workers
        # Where each item must be a call of its own its neighbours may not run again with it.
        seed_calls = checking.yes_or_no("seed_calls", seed_calls)
        may_run_again = retry and max_attempts > 1
        self._has_chunks = may_run_again and timeout is None and not seed_calls
        self._ns_max = nanoseconds(timeout, "timeout")
        forward_logs = checking.yes_or_no("forward_logs", forward_logs)
        forward_output = checking.yes_or_no("forward_output", forward_output)
        self._flags = SEEDED if seed_calls else 0
        self._calls = itertools.count()
        envs = environments(env, max_workers)
        check_shared(pool, seed, seed_calls)
        zygote = zygote_of(max_workers, threads_per_worker, envs, preload, pool is not None)
        setup = Setup()
        setup.calls_max = max_tasks_per_child or -1
        setup.idle_ns_max = nanoseconds(idle_worker_timeout, "idle_worker_timeout")
        setup.env, setup.cwd, setup.settings = envs, checking.folder(cwd), settings()
        setup.seed = checked_seed(seed)
        setup.is_seed_given = seed is not None or seed_calls
        if forward_logs:
            setup.levels, setup.level_names, setup.filters = levels(), level_names(), filters()
        setup.forwards_logs, setup.forwards_output = forward_logs, forward_output
        limits = {"task_timeout": timeout, "worker_memory": worker_memory, "pool": pool}
        telling = Telling(on_death, on_progress)
        given = (initializer, checking.arguments("initargs", initargs))
        self._pool = Pool(max_workers, given, setup, limits, retry, max_attempts, zygote, telling)
        self._end = weakref.finalize(self, Pool.shut_down, self._pool, False, False)
        self._end.atexit = False  # see _at_exit()

    def submit(
        self, fn: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        return self._submit(DEFAULTS, fn, (args, kwargs))  # as Caller's, in fewer steps

    def _maker(self) -> ProcessExecutor:
        return self

    def _submit(self, asked: CallOptions, fn: Callable[..., Any], args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future._asked = asked
        pool = self._pool
        if pool.is_shut_down or pool.broken is not None:
            pool.check_open()
        try:
            seed = next(self._calls) if self._flags else 0
            work = self._work(future, fn, 0, args, seed)
        except BaseException as error:  # as the standard library: what cannot be pickled fails
            if is_of_signal(error):
                raise
            say_of_call(error, call_name(fn, *args), *args)
            note_unmade(pool, future, error)
            future.set_running_or_notify_cancel()
            future.set_exception(error)
            return future
        pool.add(work)
        return future

    def _work(
        self,
        future: Future[Any],
        fn: Callable[..., Any],
        flags: int,
        args: Any,
        seed: int,
        carried: Carried | None = None,
    ) -> Work:
        path = self._pool.path.news()
        asked = future._asked
        ns_max = self._ns_max if asked is DEFAULTS else asked.ns_max(self._ns_max)
        return Work(future, fn, flags | self._flags, args, path, ns_max, seed, carried)

    def _mapping(
        self,
        asked: CallOptions,
        fn: Callable[..., Any],
        items: Items,
        chunksize: int | None,
        tell: Any = None,
    ) -> Mapping:
        checking.function(fn)
        # The items' seeds follow each other, whatever other calls there are meanwhile.
        first_seed = next(self._calls) if self._flags else 0
        if self._flags:
            self._calls = itertools.count(first_seed + (1 << 32 if items.is_lazy else items.left))

        carried = Carried(fn)

        def make(part: Part) -> Work:
            part._asked = asked
            if part.is_chunk:
                return self._work(part, fn, CHUNK, part.items, 0, carried)
            return self._work(part, fn, 0, (part.items[0], {}), first_seed + part.first)

        has_chunks = self._has_chunks and asked == DEFAULTS
        return Mapping(self._pool, fn, items, chunksize, has_chunks, make, tell)

    @names_options("shutdown")
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shut_down(wait, cancel_futures)

    def terminate_workers(self) -> None:
        """Ends what runs and takes back what waits, as ProcessPoolExecutor does from Python 3.14.

        Futures of calls that ran fail with BrokenExecutor, the others are cancelled. Returns at
        once, and no process is left soon after. Nothing can be submitted any more.
        """
        end_all(self._pool, False)

    kill_workers = terminate_workers  # a worker in a call cannot be ended more gently

    def __enter__(self) -> Self:
        enter(self._pool)
        return self

    def __exit__(self, *error: Any) -> None:
        """Waits for all calls; when the block is left by Ctrl-C, ends those that run."""
        leave(self._pool, error[0] if error else None)

    def __reduce__(self) -> Any:
        text = (
            "cannot pickle a leveret.ProcessExecutor, which belongs to this process: leave it out "
        )
        raise TypeError(text + "of what is sent (__getstate__ of its owner), or open one there")

    def worker_count(self) -> int:
        """Processes that run calls."""
        return self._max_workers

    def __repr__(self) -> str:
        if "_pool" not in vars(self):
            return "<leveret.ProcessExecutor, not opened>"
        pool = self._pool
        if pool.broken is not None:
            state = "broken"
        elif pool.is_shut_down:
            state = "closed" if pool.closed.is_set() else "closing"
        else:
            state = "open"
        about = f"{self._max_workers} workers, {state}"
        calls = f"{len(pool.waiting)} calls waiting, {len(pool.running)} under way"
        return f"<leveret.ProcessExecutor on 'processes', {about}, {calls}>"
