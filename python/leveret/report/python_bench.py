"""The bench "python": null tasks from Python, beside the standard library's process pool.

Contestants take turns in one process; each figure is the median over the rounds. A round of the
pool is a stream of submits whose results are then collected, and so is a round of single tasks.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from .. import Runtime, available_cores, builtin, wait_all
from .figures import figure, ratios, report, timed


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    rounds, pooled, singles, bulk = (7, 2_000, 20_000, 1_000_000)
    if quick:
        rounds, pooled, singles, bulk = (3, 200, 2_000, 50_000)
    null = builtin("null")
    one: list[float] = []
    many: list[float] = []
    pool_us: list[float] = []
    workers = max(1, available_cores() - 1)
    # spawn, as on every system from Python 3.14 on; the pool is warm before it is measured.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with pool, Runtime(workers=workers, tickets=1 << 15) as runtime:
        list(pool.map(int, range(workers * 4)))

        def stream_pool() -> None:
            for future in [pool.submit(int) for _ in range(pooled)]:
                future.result()

        def stream_tasks() -> None:
            wait_all([runtime.submit(null) for _ in range(singles)])

        for _ in range(rounds):
            pool_us.append(timed(pooled, stream_pool))
            one.append(timed(singles, stream_tasks))
            many.append(timed(bulk, lambda: runtime.submit_bulk(null, count=bulk).wait()))
    return report(
        "python",
        {
            "one_over_ppe": ratios(one, pool_us, "<= 0.02"),
            "bulk_over_ppe": ratios(many, pool_us, "<= 0.002"),
            "one_us": figure(one, "us"),
            "bulk_us": figure(many, "us"),
            "ppe_us": figure(pool_us, "us"),
        },
    )
