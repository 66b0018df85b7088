"""ProcessExecutor: what it keeps of calls, and no longer than they need it."""

from __future__ import annotations

import gc
import weakref

import pytest
from conftest import needs_processes, wait_until

from leveret import ProcessExecutor
from leveret.wire.setup import Setup
from leveret.worker.notes import Forwarding

pytestmark = needs_processes


class Named:
    def __call__(self, item: int) -> int:
        return item


@pytest.mark.parametrize("asks", [True, False])
def test_nothing_is_kept_of_a_map_whose_results_were_given(
    pool: ProcessExecutor, asks: bool
) -> None:
    count = 20_000  # more than are taken before anybody asks
    named = Named()
    kept = weakref.ref(named)
    results = pool.map(named, (i for i in range(count)))
    del named
    if asks:
        assert sum(1 for _ in results) == count
    else:
        next(results)
        results.close()  # type: ignore[attr-defined]
    del results
    wait_until(lambda: not pool._pool.running and not gc.collect() and kept() is None)


def test_what_an_executor_has_told_a_worker_goes_with_it() -> None:
    """A worker of a shared pool outlives many, each of which may have brought large initargs."""
    told = Forwarding(Setup(initializer=b"large"))
    told.begin()
    assert told.has_begun
    told.end()
    kept = weakref.ref(told)
    del told
    gc.collect()
    assert kept() is None
