"""A backend for joblib: `parallel_config(backend="leveret")` after register_joblib()."""

from __future__ import annotations

from typing import Any, Callable

from .._core import available_cores
from ..errors import Unavailable
from .process_executor import ProcessExecutor


def register_joblib(name: str = "leveret", **options: Any) -> None:
    """Makes joblib know a backend whose calls run in a ProcessExecutor.

    options: of ProcessExecutor, except max_workers, which is joblib's n_jobs. Raises Unavailable
    when joblib (1.3 or later) is not installed.
    """
    try:
        from joblib import register_parallel_backend
        from joblib.parallel import AutoBatchingMixin, ParallelBackendBase
    except ImportError as error:
        raise Unavailable("joblib 1.3 or later is not installed") from error

    class Backend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
        supports_retrieve_callback = True
        supports_timeout = True
        uses_threads = False
        supports_sharedmem = False
        _executor: ProcessExecutor | None = None

        def effective_n_jobs(self, n_jobs: int) -> int:
            if n_jobs == 0:
                raise ValueError("n_jobs == 0 has no meaning")
            if n_jobs is None:
                return 1
            return max(1, available_cores() + 1 + n_jobs) if n_jobs < 0 else n_jobs

        def configure(self, n_jobs: int = 1, parallel: Any = None, **unused: Any) -> int:
            n_jobs = self.effective_n_jobs(n_jobs)
            self._executor = ProcessExecutor(n_jobs, **options)
            self.parallel = parallel
            return n_jobs

        def submit(self, func: Callable[[], Any], callback: Callable[[Any], None]) -> Any:
            assert self._executor is not None
            future = self._executor.submit(func)
            if callback is not None:
                future.add_done_callback(callback)
            return future

        apply_async = submit  # its name before joblib 1.5

        def retrieve_result_callback(self, out: Any) -> Any:
            return out.result()

        def terminate(self) -> None:
            if self._executor is not None:
                self._executor.shutdown(wait=True, cancel_futures=True)
                self._executor = None
            self.reset_batch_stats()

        def abort_everything(self, ensure_ready: bool = True) -> None:
            if self._executor is not None:
                self._executor.shutdown(wait=False, cancel_futures=True)
                self._executor = None
            if ensure_ready:
                self.configure(self.parallel.n_jobs, self.parallel)

    register_parallel_backend(name, Backend)
