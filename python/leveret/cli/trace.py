"""leveret trace: sums a trace file up, and draws it as a page."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Optional

import typer
from rich.table import Table

from ..report.timeline import timeline_html
from ..report.traces import Summary, read_trace, summarise
from .common import (
    check_folder,
    notes,
    plain,
    print_json,
    reporting,
    share_text,
    tables,
    writing,
)

_LISTED = 20  # procedures shown; --json has all


def _ms(us: float) -> str:
    return f"{us / 1000:.3f}"


def print_summary(summary: Summary) -> None:
    tables().print(
        f"{summary.events} events, {summary.tasks} tasks, {_ms(summary.length_us)} ms"
        + (f"; {summary.ignored} entries were no events" if summary.ignored else "")
    )
    lanes = Table(
        "lane", "tasks", "busy ms", "busy", "idle", "stage ms", "write back ms", "park ms"
    )
    for lane in summary.lanes:
        steps = [_ms(lane.steps_us.get(step, 0.0)) for step in ("stage", "write_back", "park")]
        shares = share_text(lane.busy_share), share_text(lane.idle_share)
        lanes.add_row(plain(lane.name), str(lane.tasks), _ms(lane.busy_us), *shares, *steps)
    tables().print(lanes)
    procedures = Table("procedure", "tasks", "total ms", "mean us", "median us", "longest us")
    for procedure in summary.procedures[:_LISTED]:
        times = (procedure.mean_us, procedure.median_us, procedure.longest_us)
        procedures.add_row(
            plain(procedure.name),
            str(procedure.tasks),
            _ms(procedure.total_us),
            *(f"{us:.3f}" for us in times),
        )
    tables().print(procedures)
    if len(summary.procedures) > _LISTED:
        tables().print(f"and {len(summary.procedures) - _LISTED} more procedures", highlight=True)


@reporting
def trace(
    file: Path = typer.Argument(help="A trace, as Runtime.write_trace() and --trace write it."),
    out: Optional[Path] = typer.Option(None, help="The page; by default FILE with the end .html."),
    html: bool = typer.Option(True, help="Write the page."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Sum up a trace, and draw it as an HTML page to zoom into.

    The page has a lane for each worker and needs nothing else to be looked at.
    """
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a trace in it")
    if not file.exists():
        raise ValueError(f"there is no file {file}; `leveret run APP --trace {file}` makes one")
    page = out if out is not None else file.with_suffix(".html")
    if html:
        check_folder("--out", page)
        if os.path.realpath(page) == os.path.realpath(file):
            raise ValueError(f"the page would be written over {file}; name another with --out")
    read = read_trace(file)
    if html:
        with writing(page):
            page.write_text(timeline_html(read, f"Leveret trace: {file.name}"), "utf-8")
    summary = summarise(read)
    if as_json:
        print_json({**asdict(summary), "html": str(page) if html else None})
        return
    print_summary(summary)
    if html:
        notes().print(f"timeline: {page}")
