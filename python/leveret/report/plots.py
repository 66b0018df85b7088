"""Pictures: the Mandelbrot set, speed-ups, idle times. Files only: no window is opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.image import imsave


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
        raise ValueError(f"the bench {report.get('bench')} has no plot; host-wait has one")
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
