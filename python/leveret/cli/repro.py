"""leveret repro: the papers' results beside those of their algorithms on a simulated Cell."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from .. import papers
from ..report import repro as report
from .common import (
    ENVIRONMENT,
    FAILED,
    check_timeout,
    interruptible,
    notes,
    print_json,
    reporting,
    stop,
    tables,
    time_limit,
    writing,
)
from .missing import is_missing

if TYPE_CHECKING:
    from rich.progress import Progress

_PAPERS = "jack_rabbit, lu, barnes-hut, mandelbrot, cellmt, tpc, gcell or sled; all without."


def _check_out(out: Path) -> None:
    """Ends the command when nothing can be written there: before the work, not after."""
    there = out if os.path.lexists(out) else out.parent
    if there == out and not out.is_dir():
        stop(ENVIRONMENT, f"--out {out}: it is a file; name a folder")
    if not there.is_dir() or not os.access(there, os.W_OK):
        stop(ENVIRONMENT, f"--out {out}: nothing can be written there; name another folder")


def _progress(quiet: bool) -> Progress:
    from rich.progress import Progress

    return Progress(console=notes(), transient=True, disable=quiet)


def _run(chosen: Sequence[papers.Row], quiet: bool, full: bool) -> list[papers.Outcome]:
    outcomes = []
    with _progress(quiet) as progress:
        bar = progress.add_task("rows", total=len(chosen))
        for row in chosen:
            progress.update(bar, description=f"{row.id}: {row.what}"[:70])
            outcomes.append(papers.with_leveret(papers.simulate(row, full=full)))
            progress.advance(bar)
    return outcomes


def _moved(outcomes: Sequence[papers.Outcome], quiet: bool) -> report.Sensitivities:
    """What each calibrated or assumed constant does to the predictions that read it."""
    chosen = [each for each in outcomes if each.row.role == "prediction"]
    with _progress(quiet) as progress:
        changes = sum(len(papers.soft_constants(each)) for each in chosen)
        bar = progress.add_task("sensitivity", total=changes)

        def tell(each: papers.Outcome) -> None:
            progress.update(bar, description=f"sensitivity of {each.row.id}", advance=1)

        return papers.sensitivities(chosen, on_done=tell)


def _figures(outcomes: Sequence[papers.Outcome], quiet: bool) -> list[papers.Curves]:
    """The figures of the papers whose rows were simulated."""
    shown = {each.row.paper for each in outcomes}
    chosen = [each for each in papers.figures() if each["paper"] in shown]
    found = papers.lu_curves(outcomes)
    with _progress(quiet) as progress:
        bar = progress.add_task("figures", total=len(chosen))
        for each in chosen:
            progress.update(bar, description=f"{each['id']}: {each['title']}"[:70])
            found.append(papers.curves(each))
            progress.advance(bar)
    return found


def _by_leveret(outcome: papers.Outcome) -> dict[str, Any]:
    answer = outcome.leveret
    if answer is None or answer["why_not"]:
        why = None if answer is None else answer["why_not"]
        return {"leveret": None, "leveret_range": None, "leveret_why_not": why}
    ends = [answer["free"], answer["dear"]]
    return {"leveret": answer["value"], "leveret_range": ends, "leveret_why_not": None}


def _as_json(outcomes: Sequence[papers.Outcome], moved: report.Sensitivities) -> dict[str, Any]:
    good, count = report.share_in_band(outcomes)
    return {
        "share_in_band": good / count if count else None,
        "share_of_tables": report.share_of_tables(outcomes),
        "predictions": count,
        "seconds": sum(each.seconds for each in outcomes),
        "constants": papers.constants_hash(),
        "frozen": papers.FROZEN,
        "rows": {
            each.row.id: {
                "role": each.row.role,
                "printed": each.row.printed,
                "simulated": None if each.failure else each.value,
                "failure": each.failure or None,
                **_by_leveret(each),
                "low": each.row.low,
                "high": each.row.high,
                "in_band": each.in_band,
                "unit": each.row.unit,
                "hash": f"{each.hash:016x}",
                "constants": list(each.read),
                "sensitivity": [
                    [name, *(None if v is None or math.isnan(v) else v for v in values)]
                    for name, *values in moved.get(each.row.id, [])
                ],
            }
            for each in outcomes
        },
    }


def _print(outcomes: Sequence[papers.Outcome], moved: report.Sensitivities) -> None:
    from rich.table import Table

    for role, some in report.by_role(outcomes).items():
        columns = ("row", "what", "printed", "simulated", "Leveret", "deviation", "band", "")
        table = Table(*columns, title=report.TITLES[role], title_justify="left")
        for each in some:
            row, what, _, *rest = report.cells(each)
            table.add_row(row, what, *rest, style=None if each.in_band else "red")
        tables().print(table)
    for name, why in report.misses(outcomes):
        tables().print(f"{name}: {why}")
    for row, changes in moved.items():
        for constant, low, high in changes:
            told = f"{report.number(low)} with 20 % less, {report.number(high)} with 20 % more"
            tables().print(f"{row}: {constant}: {told}")
    if moved:
        table = Table(*report.SHARES_HEAD, title="Predictions in band", title_justify="left")
        for line in report.shares_by_constant(outcomes, moved):
            table.add_row(*line)
        tables().print(table)
    if len(outcomes) == 1:
        tables().print("rests on: " + ", ".join(outcomes[0].read))
    tables().print(report.summary(outcomes))


@reporting
def repro(
    paper: Optional[str] = typer.Argument(None, help=_PAPERS),
    row: Optional[str] = typer.Option(None, "--row", help="Only that row, as T4.5."),
    sensitivity: bool = typer.Option(
        False, "--sensitivity", help="Also with each soft constant 20 % lower and higher: minutes."
    ),
    full: bool = typer.Option(False, "--full", help="LU with all its outer steps: minutes."),
    out: Optional[Path] = typer.Option(None, "--out", help="Write a report into this folder."),
    timeout: Optional[float] = typer.Option(None, help="Give up after that many seconds."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the papers' results beside those of a simulated Cell."""
    check_timeout(timeout)
    chosen = papers.choose(paper, row)
    if out is not None:
        _check_out(out)
    with time_limit(timeout), interruptible():
        outcomes = _run(chosen, as_json, full)
        moved = _moved(outcomes, as_json) if sensitivity else {}
        # Figures belong to whole tables.
        figures = _figures(outcomes, as_json) if out is not None and row is None else []
    try:
        print_json(_as_json(outcomes, moved)) if as_json else _print(outcomes, moved)
    finally:  # it took minutes, and nobody may read the tables to their end
        if out is not None:
            with writing(out):
                report.write(outcomes, moved, out, not is_missing("matplotlib"), figures)
    if report.changed_note():
        stop(FAILED, report.changed_note())
