"""What a worker process does with a batch of joblib's calls."""

from __future__ import annotations

import sys
from typing import Any

from .. import _core
from ..executor.joblib_backend import register_joblib
from ..wire import arrays
from . import ending
from .functions import functions


def lent_array(
    address: int, size: int, shape: Any, dtype: Any, order: Any, mode: str | None
) -> Any:
    """An array that the host has put into shared memory for all batches; see joblib's mmap_mode."""
    import numpy as np

    place = _core.memory_at(address, size)
    if mode == "r+":
        arrays.lent.append((address, size))
        return np.ndarray(shape, dtype, place, 0, None, order)
    made = np.ndarray(shape, dtype, place.toreadonly(), 0, None, order)
    if mode != "r":
        return made.copy(order)
    arrays.lent.append((address, size))
    return made


def run_batch(batch: Any, first: int, last: int, mark: int) -> list[Any]:
    """Runs some of the calls of a batch, and says in memory at `mark` which one is running."""
    arrays.lent.clear()
    items, backend, n_jobs, names = functions.load(batch)[0]
    from joblib.parallel import BACKENDS, parallel_config

    for name in names:
        if name not in BACKENDS:
            register_joblib(name)  # for Parallel inside of calls
    place = _core.memory_at(mark, 8) if mark else None
    done = []
    with parallel_config(backend=backend, n_jobs=n_jobs):
        for i in range(first, last):
            if place is not None:
                place[:] = i.to_bytes(8, "little")
            function, args, kwargs = items[i]
            done.append(function(*args, **kwargs))
            ending.leave_call()
    return done


def is_worker() -> bool:
    """Whether this process runs calls of an executor."""
    calls = sys.modules.get(f"{__package__}.calls")
    return calls is not None and calls.is_set_up()
