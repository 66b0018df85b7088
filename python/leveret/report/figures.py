"""What the benches in Python have in common: how they measure, and the report that they return.

It has the form that leveret-bench prints.
"""

from __future__ import annotations

import platform
import statistics
import time
from typing import Any, Callable

from .. import available_cores

RIVAL = "concurrent.futures.ProcessPoolExecutor, as many workers"


def timed(count: int, work: Callable[[], object]) -> float:
    """Microseconds for each of `count` that `work` does."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6 / count


def figure(
    values: list[float], unit: str, goal: str = "", rival: str | None = None
) -> dict[str, Any]:
    """The median over the rounds, with their spread."""
    return {
        "value": statistics.median(values),
        "unit": unit,
        "spread": [min(values), max(values)],
        "runs": len(values),
        "rival": rival,
        "goal": goal,
    }


def ratios(
    ours: list[float], theirs: list[float], goal: str = "", rival: str = RIVAL
) -> dict[str, Any]:
    """The figure of one contestant's rounds over another's."""
    return figure([a / b for a, b in zip(ours, theirs)], "", goal, rival)


def report(bench: str, figures: dict[str, Any]) -> dict[str, Any]:
    """What a bench returns."""
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": available_cores(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    return {"bench": bench, "figures": figures, "machine": machine, "commit": "unknown"}
