"""LeveretBackend: what joblib.Parallel talks to."""

from __future__ import annotations

import contextlib
import inspect
import os
import queue
import warnings
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Callable

import joblib
from joblib._parallel_backends import FallbackToBackend, SequentialBackend
from joblib.parallel import AutoBatchingMixin, ParallelBackendBase

from ..wire.pickling import dumps
from ..worker.batches import is_worker
from .joblib_arrays import LentArrays
from .joblib_calls import BatchFuture
from .joblib_pools import Kept, pools
from .process_executor import ProcessExecutor

IDLE_SECONDS = 300.0  # as loky
# What Parallel gives to every backend.
_OF_PARALLEL = {"max_nbytes", "temp_folder", "mmap_mode", "prefer", "require", "verbose", "context"}
_OF_EXECUTOR = set(inspect.signature(ProcessExecutor).parameters) - {"max_workers"}
_CALLBACKS = ("on_death", "on_progress")
_OWN = {"on_poison", "idle_worker_timeout"}


def check_options(options: dict[str, Any]) -> None:
    """Raises TypeError for a name that is no option, ValueError for a value that makes no sense."""
    for name in options:
        if name in _OF_EXECUTOR | _OWN:
            continue
        text = f"the leveret backend has no option {name!r}"
        near = get_close_matches(name, _OF_EXECUTOR | _OWN, 1)
        if name == "max_workers":
            text += "; the number of processes is joblib's n_jobs"
        elif near:
            text += f"; did you mean {near[0]!r}?"
        raise TypeError(text)
    if options.get("on_poison", "raise") not in ("raise", "return"):
        raise ValueError(f"on_poison must be 'raise' or 'return', not {options['on_poison']!r}")
    seconds = options.get("idle_worker_timeout", IDLE_SECONDS)
    if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < 1e6):
        text = f"idle_worker_timeout must be a number of seconds > 0, not {seconds!r}"
        raise ValueError(text)


class LeveretBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the batches of joblib.Parallel in a ProcessExecutor; see register_joblib()."""

    supports_retrieve_callback = True
    supports_timeout = True
    supports_return_generator = True
    supports_inner_max_num_threads = True
    supports_sharedmem = False
    uses_threads = False

    def __init__(
        self, nesting_level: int | None = None, inner_max_num_threads: int | None = None, **own: Any
    ) -> None:
        check_options(own)
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._own = own
        self._kept: Kept | None = None
        self._under_way: set[BatchFuture] = set()
        self._aborted = 0  # calls of Parallel

    def __reduce__(self) -> Any:
        """For Parallel inside of calls: the options, not what is open here."""
        return _again, (self.nesting_level, self.inner_max_num_threads, self._own)

    @property
    def _workers(self) -> ProcessExecutor | None:
        """The executor in use, by the name that joblib's own backend has for it."""
        return None if self._kept is None else self._kept.executor

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if is_worker():
            if n_jobs != 1:
                text = "a leveret worker has no workers of its own, setting n_jobs=1"
                warnings.warn(text, stacklevel=3)
            return 1
        return max(1, joblib.cpu_count() + 1 + n_jobs) if n_jobs < 0 else n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **more: Any) -> int:
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        given = {name: value for name, value in more.items() if name not in _OF_PARALLEL}
        check_options(given)
        options = {**self._own, **given}
        idle_seconds = options.pop("idle_worker_timeout", None) or IDLE_SECONDS
        self._on_poison: str = options.pop("on_poison", "raise")
        # A batch with a time limit, or one that must not run again, is each of its calls alone.
        self._has_batches = options.get("retry", True) and options.get("timeout") is None
        mode = more.get("mmap_mode", "r")
        self._arrays = LentArrays(more.get("max_nbytes", 1 << 20), "r+" if mode == "w+" else mode)
        if self.inner_max_num_threads is not None:
            options["threads_per_worker"] = self.inner_max_num_threads
        self._kept = _lease(n_jobs, options, idle_seconds)
        self.parallel = parallel
        return n_jobs

    def start_call(self) -> None:
        self._arrays.clear()  # the program may have changed them since

    def compute_batch_size(self) -> int:
        return int(super().compute_batch_size()) if self._has_batches else 1

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        assert self._kept is not None
        future = BatchFuture(self._kept.executor, self._on_poison)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        if callback is not None:
            future.add_done_callback(partial(self._tell, callback, self._aborted))
        future.start(func, self._arrays, self._has_batches)
        return future

    def _tell(self, callback: Callable[[Any], None], aborted: int, future: Any) -> None:
        """Calls joblib back, unless the call of Parallel was aborted since.

        joblib may hold its lock when it submits, and takes it when it is called back.
        """
        with self.parallel._lock:
            if aborted == self._aborted:
                callback(future)

    apply_async = submit  # its name before joblib 1.5

    def retrieve_result_callback(self, out: Any) -> Any:
        error = out.exception()
        if error is not None:  # also one whose bool() is False, which result() takes for none
            raise error
        return out.result()

    def terminate(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            self._arrays.clear()
            pools.release(kept)
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        # Parallel forgets its tasks after this: none may call back then, or hand over more. It does
        # not forget those that it has put together and not yet submitted; the next call got them.
        with self.parallel._lock:
            self._aborted += 1
            with contextlib.suppress(queue.Empty):
                while True:
                    self.parallel._ready_batches.get_nowait()
        kept, self._kept = self._kept, None
        if kept is not None:
            # What runs cannot be taken back: its executor ends with it.
            still_running = [each.stop() for each in list(self._under_way)]
            if any(still_running):
                pools.retire(kept)
            pools.release(kept)
        if ensure_ready:
            self.configure(self.parallel.n_jobs, self.parallel, **self.parallel._backend_kwargs)


def _again(nesting_level: int | None, threads: int | None, own: dict[str, Any]) -> LeveretBackend:
    return LeveretBackend(nesting_level, threads, **own)


def _lease(n_jobs: int, options: dict[str, Any], idle_seconds: float) -> Kept:
    """An executor with these options: one that is open, or a new one."""
    options = dict(options)
    around = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with contextlib.suppress(OSError):  # removed since
        around["."] = str(Path.cwd())
    # Callbacks stay here, and may be what cannot be pickled.
    given = {name: id(each) if name in _CALLBACKS else each for name, each in options.items()}
    about = (sorted(given.items()), around)
    key = (n_jobs, dumps(about, 0)[0])

    def make() -> ProcessExecutor:
        options.setdefault("preload", ("numpy", "joblib", "leveret.worker.batches"))
        return ProcessExecutor(n_jobs, **options)

    return pools.lease(key, idle_seconds, make)
