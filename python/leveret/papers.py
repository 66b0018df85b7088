"""The papers' results, row by row: what was printed, and what a simulated Cell gives.

The papers' own algorithms run on a simulated Cell/B.E. (docs/how-to/program-a-cell.md), and beside
them Leveret's pipeline on the machine `sim` with the same hardware. A row is simulated in virtual
time, on one core, and always gives the same.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Optional

from . import _core
from .records import PaperAnswerDict, PaperConstantDict, PaperFigureDict

# What `leveret repro` knows by name beside the papers: (paper, the first row's name).
APPLICATIONS = {
    "lu": ("jack_rabbit", "T1"),
    "barnes-hut": ("jack_rabbit", "T2"),
    "mandelbrot": ("jack_rabbit", "T3"),
}
# Of all constants, when they were frozen. docs/papers/constants.md lists the changes since.
FROZEN = "fe500d0189713945"


@dataclass(frozen=True)
class Row:
    """A row of a paper's results. low, high: the band of the simulated value."""

    paper: str
    id: str
    role: str
    what: str
    configuration: str
    unit: str
    printed: float
    low: float
    high: float
    miss: str

    def holds(self, value: float) -> bool:
        """Whether a simulated value is in the band."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Outcome:
    """A row, simulated. read: the constants that it rests on. seconds: of this computer.

    failure: empty, or why the simulation did not end; the value is not a number then.
    leveret: what Leveret's own pipeline gives there, where that was asked.
    """

    row: Row
    value: float
    seconds: float
    events: int
    hash: int
    read: tuple[str, ...]
    failure: str = ""
    leveret: PaperAnswerDict | None = None

    @property
    def in_band(self) -> bool:
        """Whether the simulated value is in the row's band."""
        return self.row.holds(self.value)

    @property
    def deviation(self) -> float | None:
        """From the printed value, relative; None where 0 was printed, or nothing was simulated."""
        if not self.row.printed or math.isnan(self.value):
            return None
        return self.value / self.row.printed - 1


def rows() -> list[Row]:
    """All rows, in the order of the papers' tables."""
    return [Row(**each) for each in _core.paper_rows()]


def _near(name: str, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {found[0]!r}? " if found else ""


def choose(paper: str | None = None, row: str | None = None) -> list[Row]:
    """The rows of a paper or application, or those whose name begins with that of a row, as "T4.5".

    ValueError, with the nearest name and what there is, when there is none.
    """
    chosen = rows()
    names = [*APPLICATIONS, *dict.fromkeys(each.paper for each in chosen)]
    if paper is not None:
        if paper not in names:
            there = ", ".join(names)
            raise ValueError(f"no paper {paper!r}: {_near(paper, names)}There are {there}")
        of, table = APPLICATIONS.get(paper, (paper, "T"))
        chosen = [each for each in chosen if each.paper == of and each.id.startswith(table)]
    if row is not None:
        names = [each.id for each in chosen]
        chosen = [each for each in chosen if each.id == row or each.id.startswith(row + " ")]
        if not chosen:
            there = ", ".join(dict.fromkeys(name.split(" ")[0] for name in names))
            raise ValueError(f"no row {row!r}: {_near(row, names)}There are {there}")
    return chosen


def simulate(
    row: Row, changed: Mapping[str, float] | None = None, *, full: bool = False
) -> Outcome:
    """One row on the simulated Cell; constants that `changed` names are replaced.

    full: all outer steps of an LU, not four that stand for all; minutes for 4096 columns.
    A simulation that does not end (nobody gets on) is told by the outcome. ValueError for a
    constant that is not there, or outside of its bounds. Takes up to some seconds.
    """
    got = _core.paper_simulate(row.id, dict(changed or {}), full)
    return Outcome(
        row,
        got["value"],
        got["seconds"],
        got["events"],
        got["hash"],
        tuple(got["read"]),
        got["failure"],
    )


def with_leveret(outcome: Outcome) -> Outcome:
    """The same with what Leveret's own pipeline gives on the same hardware, or why nothing."""
    return replace(outcome, leveret=_core.paper_answer(outcome.row.id))


@dataclass(frozen=True)
class Curves:
    """A figure like one of a paper's: its lines, each with points (x, y)."""

    id: str
    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


def figures() -> list[PaperFigureDict]:
    """Which figures can be simulated."""
    return _core.paper_figures()


def curves(figure: PaperFigureDict) -> Curves:
    """A figure, simulated. Takes up to some seconds. ValueError for one that is not there."""
    lines = _core.paper_look(figure["id"])
    return Curves(figure["id"], figure["title"], figure["x"], figure["y"], lines)


def lu_curves(outcomes: Sequence[Outcome]) -> list[Curves]:
    """Jack Rabbit's figures 5.2 to 5.5, of rows that were simulated: by SPEs, and as printed."""
    found = []
    for number, kilo in enumerate((4, 3, 2, 1), start=2):
        lines: dict[str, list[tuple[float, float]]] = {}
        for each in outcomes:
            words = each.row.id.split(" ")
            if words[0] not in ("T1.1", "T1.2") or words[1] != f"{kilo}k":
                continue
            mode = "one buffer" if words[2] == "plain" else "two buffers"
            lines.setdefault(mode, []).append((float(words[3]), each.value))
            lines.setdefault(f"{mode}, printed", []).append((float(words[3]), each.row.printed))
        if lines:
            title = f"LU by columns, {kilo * 1024} x {kilo * 1024}"
            found.append(Curves(f"S0 figure 5.{number}", title, "SPEs", "seconds", lines))
    return found


def constants() -> list[PaperConstantDict]:
    """The numbers of the built-in machine files, and the costs of the papers' software."""
    return _core.paper_constants()


def constants_hash() -> str:
    """Of the names and values of all constants: changed ones show."""
    text = "".join(f"{c['file']} {c['name']}={c['value']!r}\n" for c in constants())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def circular(outcome: Outcome) -> list[str]:
    """Constants that a prediction read although they were chosen with its own row in view."""
    if outcome.row.role != "prediction":
        return []
    own = outcome.row.id.split(" ")[0]
    chosen = {c["name"] for c in constants() if c["calibrated_on"] == own}
    return sorted(chosen & set(outcome.read))


# (constant, value with it lower, value with it higher). Not a number: it did not end. None: the
# machine allows no such constant.
Move = tuple[str, Optional[float], Optional[float]]


def _changed(outcome: Outcome, name: str, value: float) -> float | None:
    """The row's value with one constant changed; None where the machine allows no such value."""
    try:
        return simulate(outcome.row, {name: value}).value
    except ValueError:
        return None


def sensitivities(
    outcomes: Sequence[Outcome],
    share: float = 0.2,
    *,
    only: str | None = None,
    on_done: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[str, list[Move]]:
    """What each calibrated or assumed constant that a row read does to it, lower and higher.

    By the row's name: the constants, with the row's value when one alone is lower or higher by that
    share. only: that constant, of each row. on_done is called for each change of each row, on this
    thread.
    Takes as many threads as this process may use cores: all rows are minutes.
    """
    soft = {
        c["name"]: c["value"] for c in constants() if c["calibrated_on"] or c["source"] == "assumed"
    }
    found: dict[str, list[Move]] = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            asked: list[tuple[Outcome, str, list[Future[float | None]]]] = []
            for each in outcomes:
                found[each.row.id] = []
                for name in each.read:
                    if name not in soft or only not in (None, name):
                        continue
                    whole = soft[name].is_integer()
                    values = [soft[name] * factor for factor in (1 - share, 1 + share)]
                    values = [float(round(value)) if whole else value for value in values]
                    jobs = [pool.submit(_changed, each, name, value) for value in values]
                    asked.append((each, name, jobs))
            for each, name, jobs in asked:
                low, high = (job.result() for job in jobs)
                if low is not None or high is not None:
                    found[each.row.id].append((name, low, high))
                on_done(each)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def soft_constants(outcome: Outcome) -> list[str]:
    """The calibrated and assumed constants that a row read."""
    soft = {c["name"] for c in constants() if c["calibrated_on"] or c["source"] == "assumed"}
    return [name for name in outcome.read if name in soft]
