"""The bench `repro`: every row of the papers' results, and how long they take."""

from __future__ import annotations

from typing import Any

from .. import papers
from . import repro
from .figures import figure, report

_QUICK = ("T5.2", "T5.3 start", "T5.3 end", "T6.8 SLED")


def measure(quick: bool) -> dict[str, Any]:
    """Simulates the rows once (they repeat); quick: four of them."""
    rows = [row for row in papers.rows() if not quick or row.id in _QUICK]
    outcomes = [papers.simulate(row) for row in rows]
    good, count = repro.share_in_band(outcomes)
    figures: dict[str, Any] = {
        "share_in_band": figure([good / count], "of the predictions", ">= 0.8"),
        "predictions": figure([float(count)], "rows", ">= 45"),
        "seconds": figure([sum(each.seconds for each in outcomes)], "s", "<= 240"),
    }
    for each in outcomes:
        figures[each.row.id.replace(" ", "_")] = figure([each.value], each.row.unit)
    return report("repro", figures)
