"""Pictures: the Mandelbrot set, and speed-ups side by side. Files only: no window is opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
