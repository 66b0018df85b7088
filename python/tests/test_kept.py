"""ProcessExecutor: what it keeps of calls, and no longer than they need it."""

from __future__ import annotations

import gc
import weakref

import pytest
from conftest import needs_processes, wait_until

from leveret import ProcessExecutor

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
