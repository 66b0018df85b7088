"""A trace as one HTML page without outside parts, or as a picture: a lane for each worker.

The page has the phases of the program by name, a curve of how many workers execute, what is under
the pointer, and a table of the procedures with the lengths of their tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import resources

from .traces import EXECUTE, Trace, summarise

EVENTS_MAX = 200_000  # a page of some 8 MB, which browsers still scroll smoothly
LENGTHS_US = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
LENGTH_NAMES = ("< 1 µs", "< 10 µs", "< 100 µs", "< 1 ms", "< 10 ms", "< 100 ms", "more")

_STEPS = ("pass", "stage", EXECUTE, "write_back", "park")


@dataclass(frozen=True)
class Phase:
    """A named part of what the program did. Times in microseconds from the trace's first event."""

    name: str
    begin_us: float
    end_us: float


def lengths_of(trace: Trace) -> dict[str, list[int]]:
    """How many tasks of each procedure took how long: a count for each of LENGTH_NAMES."""
    counts: dict[str, list[int]] = {}
    for event in trace.events:
        if event.step == EXECUTE:
            row = counts.setdefault(event.name, [0] * len(LENGTH_NAMES))
            row[sum(event.duration_us >= bound for bound in LENGTHS_US)] += 1
    return counts


def _data_of(trace: Trace, phases: Sequence[Phase], events_max: int) -> dict[str, object]:
    """What the page draws, as plain lists. Of too many events the longest are kept."""
    events = trace.events
    if len(events) > events_max:
        longest = sorted(events, key=lambda e: -e.duration_us)[:events_max]
        events = sorted(longest, key=lambda e: e.begin_us)
    rows = {lane: row for row, lane in enumerate(sorted(trace.lanes))}
    names: dict[str, int] = {}
    steps = {step: i for i, step in enumerate(_STEPS)}
    packed = [
        [
            rows[e.lane],
            steps.setdefault(e.step, len(steps)),
            names.setdefault(e.name, len(names)),
            round(e.begin_us, 3),
            round(e.duration_us, 3),
            e.task,
        ]
        for e in events
    ]
    lengths = lengths_of(trace)
    return {
        "lanes": [trace.lanes[lane] for lane in sorted(trace.lanes)],
        "steps": list(steps),
        "names": list(names),
        "events": packed,
        "dropped": len(trace.events) - len(events),
        "length": trace.length_us,
        "phases": [[p.name, round(p.begin_us, 3), round(p.end_us, 3)] for p in phases],
        "procedures": [
            {**asdict(p), "lengths": lengths[p.name]} for p in summarise(trace).procedures
        ],
        "length_names": LENGTH_NAMES,
    }


def timeline_html(
    trace: Trace,
    title: str = "Leveret trace",
    events_max: int = EVENTS_MAX,
    phases: Sequence[Phase] = (),
) -> str:
    """The page as text. Names from the trace cannot end the script they stand in."""
    data = json.dumps(_data_of(trace, phases, events_max), separators=(",", ":"))
    page = resources.files(__package__).joinpath("timeline.html").read_text("utf-8")
    parts = {
        # A file's name may have bytes that are no UTF-8.
        "@TITLE@": escape(title.encode(errors="replace").decode()),
        "@DATA@": data.replace("<", "\\u003c"),
    }
    return re.sub("|".join(parts), lambda found: parts[found[0]], page)
