"""A backend for joblib: `parallel_config(backend="leveret")` after register_joblib()."""

from __future__ import annotations

import functools
from typing import Any

from ..errors import Unavailable

# Name and options of each backend: nested calls in workers know them, too.
registered: dict[str, dict[str, Any]] = {}


def register_joblib(name: str = "leveret", **options: Any) -> None:
    """Makes joblib know a backend whose calls run in worker processes that may crash.

    Its processes stay for the next Parallel call with the same options, as those of loky do, until
    nobody has used them for idle_worker_timeout seconds. Large arrays are put into shared memory
    once for a Parallel call, by joblib's own max_nbytes and mmap_mode. Libraries' threads are
    limited as joblib limits them (inner_max_num_threads).

    options: of ProcessExecutor, except max_workers, which is joblib's n_jobs; timeout is for each
    call of a delayed() function. Besides: on_poison, "raise" or "return": what becomes of a call
    whose process died or ran longer than timeout: Parallel raises its exception, or goes on and has
    it in the place of the result. idle_worker_timeout: seconds, 300 by default. All may be
    given to joblib.parallel_config() or joblib.Parallel() instead, but timeout not to Parallel,
    which has one of its own.

    Raises Unavailable when joblib (1.3 or later) is not installed, TypeError and ValueError for
    options that make no sense. Thread safety: any thread.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {name!r}")
    try:
        from joblib import register_parallel_backend

        from .joblib_parallel import LeveretBackend, check_options
    except ImportError as error:
        raise Unavailable("joblib 1.3 or later is not installed") from error
    check_options(options)
    registered[name] = options
    factory = functools.partial(LeveretBackend, **options) if options else LeveretBackend
    register_parallel_backend(name, factory)
