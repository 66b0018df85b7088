"""A trace as one HTML page without outside parts: a lane for each worker, to zoom into."""

from __future__ import annotations

import json
from importlib import resources

from .traces import EXECUTE, Trace

EVENTS_MAX = 200_000  # a page of some 8 MB, which browsers still scroll smoothly

_STEPS = ("pass", "stage", EXECUTE, "write_back", "park")


def _data_of(trace: Trace, events_max: int) -> dict[str, object]:
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
    return {
        "lanes": [trace.lanes[lane] for lane in sorted(trace.lanes)],
        "steps": list(steps),
        "names": list(names),
        "events": packed,
        "dropped": len(trace.events) - len(events),
        "length": trace.length_us,
    }


def timeline_html(trace: Trace, title: str = "Leveret trace", events_max: int = EVENTS_MAX) -> str:
    """The page as text. Names from the trace cannot end the script they stand in."""
    data = json.dumps(_data_of(trace, events_max), separators=(",", ":")).replace("<", "\\u003c")
    page = resources.files(__package__).joinpath("timeline.html").read_text("utf-8")
    safe = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return page.replace("@TITLE@", safe).replace("@DATA@", data)
