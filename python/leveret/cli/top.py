"""leveret top: a live view of worker processes, of programs that this user runs.

It reads their shared memory from outside: they notice nothing, and may end at any moment.
"""

from __future__ import annotations

import time
from typing import Optional

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .. import _core
from ..errors import Unavailable
from ..records import SeenPool, SeenWorker
from .common import ENVIRONMENT, check_timeout, plain, print_json, reporting, stop, tables
from .seen_calls import name_calls

NONE = "no runtime is open on the machine `processes`"


def cells(place: int, worker: SeenWorker) -> list[RenderableType]:
    """One line of a pool's table."""
    task = worker["procedure"]
    numbers = (worker["waiting"], worker["posted"], worker["done"], worker["deaths"])
    return [
        str(place),
        str(worker["pid"] or "none"),
        plain(task) if worker["attempt"] else "",
        str(worker["attempt"] or ""),
        *map(str, numbers),
        plain(worker["died_in"]),
    ]


def show(pools: list[SeenPool]) -> RenderableType:
    """A table for each pool."""
    if not pools:
        return Text(NONE)
    shown = []
    for pool in pools:
        title = Text.assemble(plain(pool["program"]), f", process {pool['pid']}")
        heads = (
            "worker",
            "pid",
            "task",
            "attempt",
            "waiting",
            "posted",
            "done",
            "deaths",
            "died in",
        )
        table = Table(*heads, title=title, title_justify="left")
        for place, worker in enumerate(pool["workers"]):
            table.add_row(*cells(place, worker))
        shown.append(table)
    return Group(*shown)


def look(pid: int) -> list[SeenPool]:
    """What there is now, with the names of Python functions."""
    return name_calls(_core.look_at_pools(pid))


def watch(pid: int, interval: float, limit: Optional[float]) -> None:
    """Looks again and again, until the time is over or the process has no pool any more."""
    end = None if limit is None else time.monotonic() + limit
    with Live(show(look(pid)), console=tables(), auto_refresh=False) as live:
        while end is None or time.monotonic() < end:
            time.sleep(interval if end is None else max(0.0, min(interval, end - time.monotonic())))
            try:
                live.update(show(look(pid)), refresh=True)
            except Unavailable:  # it was there: its program has closed it
                live.console.print(f"the pool of process {pid} has ended")
                return


@reporting
def top(
    pid: Optional[int] = typer.Argument(None, help="A program's process; all of this user's."),
    once: bool = typer.Option(False, "--once", help="Look once."),
    interval: float = typer.Option(0.5, help="Seconds between looks."),
    timeout: Optional[float] = typer.Option(None, help="Stop after that many seconds."),
    as_json: bool = typer.Option(False, "--json", help="With --once: print one JSON object."),
) -> None:
    """Watch the worker processes of running programs."""
    check_timeout(timeout)
    if not 0.01 <= interval <= 3600:
        raise ValueError(f"--interval must be 0.01 to 3600 seconds, not {interval}")
    if pid is not None and not 0 < pid < 2**31:
        raise ValueError(f"a process has a number from 1 to {2**31 - 1}, not {pid}")
    if as_json and not once:
        raise ValueError("--json prints one look: add --once")
    if not once:
        watch(pid or 0, interval, timeout)
        return
    pools = look(pid or 0)
    if as_json:
        print_json({"pools": pools})
    elif pools:
        tables().print(show(pools))
    if not pools:
        stop(ENVIRONMENT, NONE)
