"""ProcessExecutor: Python functions in worker processes, for those who know concurrent.futures."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from concurrent import futures
from typing import Any, Callable

from .. import _core
from .future import Future
from .mapping import Mapping
from .pool import Pool
from .work import Work


class ProcessExecutor(futures.Executor):
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
    at most. preload: modules that all processes share from their start; by default NumPy, if it is
    imported here.

    Arguments must not be changed until the call is done. Results are unpickled here, as with every
    process pool: run what you trust. Raises ValueError and TypeError for options that make no
    sense. Thread safety: any thread.
    """

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
        preload: Iterable[str] | None = None,
    ) -> None:
        if max_workers is None:
            max_workers = _core.available_cores()
        if max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if max_tasks_per_child is not None:
            if not isinstance(max_tasks_per_child, int):
                raise TypeError("max_tasks_per_child must be an integer")
            if max_tasks_per_child <= 0:
                raise ValueError("max_tasks_per_child must be >= 1")
        if preload is None:
            preload = ("numpy",) if "numpy" in sys.modules else ()
        self._max_workers = max_workers
        self._has_chunks = retry and timeout is None
        self._pool = Pool(
            max_workers,
            (initializer, initargs, max_tasks_per_child or -1),
            {"task_timeout": timeout, "worker_memory": worker_memory},
            retry,
            max_attempts,
            tuple(preload),
        )
        self._end = weakref.finalize(self, Pool.shut_down, self._pool, False, False)
        self._end.atexit = False  # see _at_exit()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        return self._submit(fn, 0, (args, kwargs))

    def _submit(self, fn: Callable[..., Any], flags: int, args: Any) -> Future:
        future = Future()
        pool = self._pool
        if pool.is_shut_down or pool.broken is not None:
            pool.check_open()
        try:
            work = Work(future, fn, flags, args, pool.path.news())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as the standard library: what cannot be pickled fails
            future.set_running_or_notify_cancel()
            future.set_exception(error)
            return future
        pool.add(work)
        return future

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """Like concurrent.futures.Executor.map(); chunksize None: chosen by the number of items.

        When a chunk's process dies on every attempt its items are run one by one, so that only the
        one at fault fails.
        """
        if buffersize is not None:
            more: dict[str, Any] = {"timeout": timeout, "buffersize": buffersize}
            return super().map(fn, *iterables, **more)
        mapping = Mapping(self._submit, fn, self._max_workers if self._has_chunks else 0)
        return mapping.run(zip(*iterables), timeout, chunksize)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shut_down(wait, cancel_futures)

    def worker_count(self) -> int:
        """Processes that run calls."""
        return self._max_workers
