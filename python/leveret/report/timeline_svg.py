"""A timeline as a picture for a page: phases by name, a curve of busy workers, a lane for each.

Time is cut into as many columns as the picture has points across. A column of a lane shows the
procedure that took most of it, as high as the share of the column in which the lane executed. So
the picture has a bounded size, whatever the trace has. It begins with the first phase.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from html import escape

from .timeline import Phase
from .traces import EXECUTE, Trace

LEFT, RIGHT, TOP, PHASE, CURVE, LANE, GAP, LEGEND = 116, 8, 26, 18, 44, 26, 5, 24
COLUMN = 2  # points across
LEGEND_MAX = 6
LANE_LETTERS = 20

Column = dict[str, float]  # procedure: share of the column


def columns_of(trace: Trace, lane: int, count: int, start_us: float = 0.0) -> list[Column]:
    """What a lane executed in each of `count` equal parts from `start_us` to the end of the trace.

    Of bodies inside bodies the outer one counts.
    """
    made: list[Column] = [{} for _ in range(count)]
    scale = count / ((trace.length_us - start_us) or 1.0)
    covered = start_us
    for event in trace.events:
        if event.lane != lane or event.step != EXECUTE:
            continue
        begin = (max(event.begin_us, covered) - start_us) * scale
        end = (event.begin_us + event.duration_us - start_us) * scale
        covered = max(covered, event.begin_us + event.duration_us)
        at = int(begin)
        while at < min(end, count):
            share = min(end, at + 1) - max(begin, at)
            made[at][event.name] = made[at].get(event.name, 0.0) + max(share, 0.0)
            at += 1
    return made


def _color(degrees: float, light: float = 0.52, strong: float = 0.58) -> str:
    """A colour of the wheel, as viewers of pictures know it."""
    parts = colorsys.hls_to_rgb(degrees % 360 / 360, light, strong)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _bars(columns: list[Column], y: float, colors: dict[str, str]) -> Iterator[str]:
    """Columns that follow each other with the same procedure are one path."""
    paths: dict[str, list[str]] = {}
    for i, column in enumerate(columns):
        if not column:
            continue
        name = max(column, key=lambda n: column[n])
        height = round(min(1.0, sum(column.values())) * (LANE - GAP), 1)
        x, top = LEFT + i * COLUMN, round(y + LANE - GAP - height, 1)
        paths.setdefault(name, []).append(f"M{x} {top}h{COLUMN}v{height}h-{COLUMN}z")
    for name, path in paths.items():
        yield f'<path fill="{colors[name]}" d="{"".join(path)}"/>'


def busy_workers(lanes: Sequence[list[Column]], names: Sequence[str]) -> tuple[int, list[float]]:
    """How many workers there are, and how many of them executed in each column.

    The lanes of a worker's other contexts ("worker 0, context 1") are the worker's own.
    """
    workers: dict[str, list[float]] = {}
    for name, columns in zip(names, lanes):
        shares = workers.setdefault(name.split(", context")[0], [0.0] * len(columns))
        for i, column in enumerate(columns):
            shares[i] = min(1.0, shares[i] + sum(column.values()))
    return len(workers), [sum(shares) for shares in zip(*workers.values())]


def _curve(workers: int, busy: list[float], y: float) -> Iterator[str]:
    points = (
        f"L{LEFT + i * COLUMN} {round(y + CURVE - share / workers * CURVE, 1)}"
        for i, share in enumerate(busy)
    )
    bottom = y + CURVE
    end = LEFT + len(busy) * COLUMN
    yield f'<path fill="#4f9d69" d="M{LEFT} {bottom}{"".join(points)}L{end} {bottom}z"/>'
    yield f'<text x="8" y="{y + CURVE / 2 + 4}">busy workers</text>'
    yield f'<text x="{LEFT - 6}" y="{y + 9}" text-anchor="end">{workers}</text>'


def _phases(phases: Sequence[Phase], start_us: float, scale: float, bottom: float) -> Iterator[str]:
    for i, phase in enumerate(phases):
        x = LEFT + (phase.begin_us - start_us) * scale
        wide = (phase.end_us - phase.begin_us) * scale
        if wide < 1:
            continue
        color = _color(200 + i * 47, 0.6, 0.45)
        letters = int(wide / 6.2)
        name = phase.name if len(phase.name) <= letters else phase.name[: max(0, letters - 1)] + "…"
        box = f'x="{x:.1f}" width="{wide - 1:.1f}" fill="{color}"'
        yield f'<rect {box} y="{TOP}" height="{PHASE - 3}" opacity="0.4"/>'
        yield f'<rect {box} y="{TOP + PHASE}" height="{bottom - TOP - PHASE:.0f}" opacity="0.07"/>'
        if letters > 3:
            yield f'<text x="{x + 4:.1f}" y="{TOP + 11}">{escape(name)}</text>'


def timeline_svg(trace: Trace, title: str, phases: Sequence[Phase] = (), width: int = 960) -> str:
    """The picture as text, with its own white ground. Names from the trace are escaped."""
    count = (width - LEFT - RIGHT) // COLUMN
    start_us = phases[0].begin_us if phases else 0.0
    length_us = (trace.length_us - start_us) or 1.0
    numbers = sorted(trace.lanes)
    lanes = [columns_of(trace, lane, count, start_us) for lane in numbers]
    totals: Column = {}
    for column in (column for lane in lanes for column in lane):
        for name, share in column.items():
            totals[name] = totals.get(name, 0.0) + share
    names = sorted(totals, key=lambda name: -totals[name])
    colors = {name: _color(210 + i * 137.5) for i, name in enumerate(names)}
    lanes_top = TOP + PHASE + CURVE + 10
    bottom = lanes_top + LANE * len(lanes)
    height = bottom + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="11">',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="8" y="16" font-weight="600">{escape(title)}</text>',
        f'<text x="{width - RIGHT}" y="16" text-anchor="end">{length_us / 1e6:.2f} s</text>',
        *_phases(phases, start_us, count * COLUMN / length_us, bottom),
        *_curve(*busy_workers(lanes, [trace.lanes[lane] for lane in numbers]), TOP + PHASE + 2),
    ]
    for row, lane in enumerate(numbers):
        y = lanes_top + row * LANE
        parts.append(f'<text x="8" y="{y + 14}">{escape(trace.lanes[lane][:LANE_LETTERS])}</text>')
        parts += _bars(lanes[row], y, colors)
    x = LEFT
    for name in names[:LEGEND_MAX]:
        parts.append(f'<rect x="{x}" y="{bottom + 6}" width="9" height="9" fill="{colors[name]}"/>')
        parts.append(f'<text x="{x + 13}" y="{bottom + 14}">{escape(name)}</text>')
        x += 26 + int(6.2 * len(name))
    return "\n".join([*parts, "</svg>", ""])
