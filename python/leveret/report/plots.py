"""Pictures: the Mandelbrot set, speed-ups, figures of benches. Files only: no window is opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave

from ..papers import Curves, Outcome


def save_mandelbrot(counts: npt.NDArray[np.uint16], iterations: int, path: Path) -> None:
    """The picture as PNG: colours by the logarithm of the steps, the set itself black."""
    scaled = np.log1p(counts.astype(np.float64)) / np.log1p(iterations)
    pixels = colormaps["twilight_shifted"](scaled)
    pixels[counts >= iterations] = (0.0, 0.0, 0.0, 1.0)
    imsave(str(path), pixels, format="png")


def save_speed_ups(
    labels: Sequence[str], speed_ups: Sequence[float], cores: int, path: Path
) -> None:
    """Bars of speed-up over serial, with a line at the number of cores."""
    figure = Figure(figsize=(8, 0.6 * len(labels) + 1.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(labels))
    bars = axes.barh(places, speed_ups, color="#3b7dd8", height=0.6)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.axvline(cores, color="#888888", linestyle="--", linewidth=1, label=f"{cores} cores")
    axes.axvline(1, color="#bbbbbb", linewidth=1)
    axes.set_xlim(0, max(cores, *speed_ups) * 1.15)
    axes.set_xlabel("speed-up over the serial program")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


_IDLE = re.compile(r"(\w+)_idle_us_at_(\d+)")


def idle_times(report: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Of a report of the bench host-wait: by policy, (length of the task, idle time) in us."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for key, figure in report["figures"].items():
        match = _IDLE.fullmatch(key)
        if match is not None and figure["value"] is not None:
            lines.setdefault(match[1], []).append((float(match[2]), float(figure["value"])))
    return {name: sorted(points) for name, points in lines.items()}


def save_idle_times(report: dict[str, Any], path: Path) -> None:
    """Idle time by length of the task, and the utilisation that follows (SLED, Figures 7 and 8).

    Raises ValueError for a report without such figures.
    """
    lines = idle_times(report)
    if not lines:
        raise ValueError("no figures of idle times, as the bench host-wait makes them")
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    idle_axes, use_axes = figure.subplots(1, 2)
    for name, points in lines.items():
        lengths, idle = np.array(points).T
        idle_axes.plot(lengths, idle, marker="o", label=name)
        use_axes.plot(lengths, lengths / (lengths + idle), marker="o", label=name)
    idle_axes.set_yscale("log")
    idle_axes.set_ylabel("from a task's end to its host's next one (us)")
    use_axes.set_ylim(0, 1)
    use_axes.set_ylabel("utilisation of the host's worker")
    for axes in (idle_axes, use_axes):
        axes.set_xscale("log")
        axes.set_xlabel("length of the task (us)")
    use_axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


_READ = re.compile(r"ro_(simple|double|contexts)(\d*)_(\d+)")
_UPDATED = re.compile(r"rcw_(simple|double|contexts)_(\d+)_(\d+)")

# Bandwidth in GB/s by bytes of a block.
Line = dict[int, float]


def bandwidths(
    report: dict[str, Any],
) -> tuple[dict[tuple[str, int | None], Line], dict[tuple[str, int], Line]]:
    """Of a report of the bench get-compute-put: what is only read, and what is updated.

    The first by (way, number of contexts or None), the second by (way, cycles of work per byte).
    """
    read: dict[tuple[str, int | None], Line] = {}
    updated: dict[tuple[str, int], Line] = {}
    for key, figure in report["figures"].items():
        value = figure["value"]
        if value is None:
            continue
        if match := _READ.fullmatch(key):
            count = int(match[2]) if match[2] else None
            read.setdefault((match[1], count), {})[int(match[3])] = float(value)
        elif match := _UPDATED.fullmatch(key):
            updated.setdefault((match[1], int(match[3])), {})[int(match[2])] = float(value)
    return read, updated


def _draw(axes: Axes, line: Line, label: str) -> None:
    sizes = sorted(line)
    axes.plot(sizes, [line[size] for size in sizes], marker=".", label=label)


def _draw_ratio(axes: Axes, over: Line, under: Line, label: str) -> None:
    _draw(axes, {size: over[size] / under[size] for size in over if size in under}, label)


def _finish(axes: Axes, y_label: str, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("block (bytes)")
    axes.set_ylabel(y_label)
    axes.set_title(title, fontsize="medium")
    if axes.lines:
        axes.legend(fontsize="small")


def save_bandwidths(report: dict[str, Any], path: Path) -> None:
    """Bandwidth and gains of double buffering and contexts (CellMT, Figures 3, 4, 8 and 9).

    Ratios are of the medians. Raises ValueError for a report without such figures.
    """
    read, updated = bandwidths(report)
    if not read or not updated:
        raise ValueError("no figures of bandwidth, as the bench get-compute-put makes them")
    figure = Figure(figsize=(11, 8), layout="constrained")
    bandwidth, by_count, double, contexts = figure.subplots(2, 2).flat
    for (way, count), line in read.items():
        if count in (None, 2, 3, 15):
            _draw(bandwidth, line, way if count is None else f"contexts: {count}")
        if count is not None:
            _draw_ratio(by_count, line, read.get(("double", None), {}), f"contexts: {count}")
    for (way, cycles), line in updated.items():
        under = {"double": "simple", "contexts": "double"}.get(way)
        if under is not None:
            axes = double if way == "double" else contexts
            _draw_ratio(axes, line, updated.get((under, cycles), {}), f"{cycles} cycles per byte")
    bandwidth.set_yscale("log", base=2)
    bandwidth.yaxis.set_major_formatter("{x:g}")
    for axes in (by_count, double, contexts):
        axes.axhline(1, color="#888888", linestyle="--", linewidth=1)
    _finish(bandwidth, "GB/s", "read only")
    _finish(by_count, "times as fast", "read only: contexts over double buffering")
    _finish(double, "times as fast", "updated: double buffering over one copy after the other")
    _finish(contexts, "times as fast", "updated: contexts over double buffering")
    figure.savefig(path, dpi=120)


BENCHES = {"get-compute-put": save_bandwidths, "host-wait": save_idle_times}


def save_bench(report: dict[str, Any], path: Path) -> None:
    """The picture of a bench's report; ValueError for one that has none, or not the figures."""
    save = BENCHES.get(str(report.get("bench")))
    if save is None:
        raise ValueError(f"the bench {report.get('bench')} has no plot")
    save(report, path)


def save_curves(curves: Curves, path: Path) -> None:
    """Lines with their points; what was printed dashed. Wide ranges of x are logarithmic."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    colours: dict[str, Any] = {}
    for name, points in curves.lines.items():
        of = name.removesuffix(", printed")
        style = "--" if of != name else "-"
        xs, ys = [x for x, _ in points], [y for _, y in points]
        (drawn,) = axes.plot(xs, ys, style, marker="o", markersize=3.5, color=colours.get(of))
        drawn.set_label(name)
        colours.setdefault(of, drawn.get_color())
    all_x = [x for points in curves.lines.values() for x, _ in points]
    if max(all_x) > 32 * min(all_x):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(curves.x)
    axes.set_ylabel(curves.y)
    axes.set_title(f"{curves.id}: {curves.title}", fontsize=10)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def save_bands(outcomes: Sequence[Outcome], path: Path) -> None:
    """Simulated over printed for each prediction, with its band; logarithmic."""
    shown = [o for o in outcomes if o.row.role == "prediction" and o.row.unit != "holds"]
    shown = [o for o in shown if o.row.printed > 0 and o.value > 0]
    figure = Figure(figsize=(9, 0.28 * len(shown) + 1.4), layout="constrained")
    axes = figure.subplots()
    for place, each in enumerate(shown):
        low, high = each.row.low / each.row.printed, each.row.high / each.row.printed
        axes.plot([max(low, 1e-3), high], [place, place], color="#b8c4d6", linewidth=7)
        colour = "#1d6f42" if each.in_band else "#b00020"
        axes.plot(each.value / each.row.printed, place, "o", color=colour, markersize=5)
    axes.set_yticks(range(len(shown)), [each.row.id for each in shown])
    axes.invert_yaxis()
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("simulated over printed; bars are the bands")
    figure.savefig(path, dpi=120)
