"""The applications over arrays: a Fourier transform, SAXPY, SGEMV and CONV2D.

Each takes arrays of your own, or makes random ones and reports how they went, as those of
leveret.apps do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _core
from .app_reports import Report, at_least
from .records import CountedAppDict

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class ArrayReport(Report):
    """error: against double precision, relative to the largest element (fft: an average one)."""


Run = Callable[..., CountedAppDict]
_RUNS: dict[str, Run] = {
    "fft": _core.run_fft,
    "saxpy": _core.run_saxpy,
    "sgemv": _core.run_sgemv,
    "conv2d": _core.run_conv2d,
}
# Elements of SAXPY and of the transform; rows and columns of the others.
DEFAULT_N = {"fft": 1 << 16, "saxpy": 1 << 20, "sgemv": 1024, "conv2d": 512}
_LARGEST_N = {"fft": 4**13, "saxpy": 2**31, "sgemv": 2**15, "conv2d": 2**15}


def run_arrays(
    runtime: _core.Runtime,
    app: str,
    *,
    n: int | None = None,
    tasks: int = 64,
    dice: bool = True,
    steps: int = 1,
    seed: int = 1,
    check: bool = True,
) -> ArrayReport:
    """Runs "fft", "saxpy", "sgemv" or "conv2d" on random data, `steps` times, and times it.

    n: points of fft, a power of 4; elements of saxpy; rows and columns of sgemv and of the picture
    of conv2d, with 5 x 5 weights. tasks: of a step; conv2d has one for each 32 x 64 elements.
    Raises ValueError for options that make no sense.
    """
    if app not in _RUNS:
        raise ValueError(f"app must be one of {', '.join(_RUNS)}, not {app!r}")
    n = DEFAULT_N[app] if n is None else n
    at_least(5 if app == "conv2d" else 1, n=n)
    at_least(1, tasks=tasks, steps=steps)
    if n > _LARGEST_N[app]:
        raise ValueError(f"n must be at most {_LARGEST_N[app]} for {app}, not {n}")
    if app == "fft":
        _check_points(n)
    report = _RUNS[app](runtime, n=n, tasks=tasks, dice=dice, steps=steps, seed=seed, check=check)
    return ArrayReport(app, **report)


def _check_points(n: int) -> None:
    if n < 1 or n & (n - 1) or n.bit_length() % 2 == 0:
        raise ValueError(f"n: the number of points must be a power of 4, not {n}")


def fft(
    runtime: _core.Runtime, points: npt.ArrayLike, *, tasks: int = 64, dice: bool = True
) -> npt.NDArray[np.complex64]:
    """The Fourier transform of a power of 4 of complex points, in single precision.

    As numpy.fft.fft. By six steps: each task has a row of a square matrix, or blocks of 32 x 32.
    Raises ValueError for another number of points.
    """
    import numpy as np

    at_least(1, tasks=tasks)
    result = np.array(points, np.complex64)
    if result.ndim != 1:
        raise ValueError(f"points must have one axis, not the shape {result.shape}")
    _check_points(result.size)
    pairs = result.view(np.float32).reshape(-1, 2)
    _core.array_fft(runtime, pairs, tasks=tasks, dice=dice)
    return result


def saxpy(
    runtime: _core.Runtime,
    a: float,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    tasks: int = 64,
    dice: bool = True,
) -> npt.NDArray[np.float32]:
    """Returns a * x + y in single precision. Raises ValueError when lengths differ."""
    import numpy as np

    at_least(1, tasks=tasks)
    xs, result = np.ascontiguousarray(x, np.float32), np.array(y, np.float32)
    if xs.ndim != 1 or xs.shape != result.shape:
        raise ValueError(
            f"x and y must have one axis and one length, not {xs.shape}, {result.shape}"
        )
    _core.array_saxpy(runtime, a, xs, result, tasks=tasks, dice=dice)
    return result


def sgemv(
    runtime: _core.Runtime,
    matrix: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    tasks: int = 64,
    dice: bool = True,
) -> npt.NDArray[np.float32]:
    """Returns matrix @ x in single precision. Raises ValueError when shapes do not fit."""
    import numpy as np

    at_least(1, tasks=tasks)
    rows, xs = np.ascontiguousarray(matrix, np.float32), np.ascontiguousarray(x, np.float32)
    if rows.ndim != 2 or xs.shape != rows.shape[1:]:
        raise ValueError(f"matrix must be of shape (n, len(x)), not {rows.shape}; x: {xs.shape}")
    result = np.empty(rows.shape[0], np.float32)
    _core.array_sgemv(runtime, rows, xs, result, tasks=tasks, dice=dice)
    return result


def conv2d(
    runtime: _core.Runtime, picture: npt.ArrayLike, weights: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """The sums of all squares of a picture, weighted: scipy.signal.correlate2d(mode="valid").

    weights: a square of 1 x 1 to 15 x 15. Tasks write blocks of 32 x 64 elements, as strided
    arguments. Raises ValueError when shapes do not fit.
    """
    import numpy as np

    rows, taps = (
        np.ascontiguousarray(picture, np.float32),
        np.ascontiguousarray(weights, np.float32),
    )
    if taps.ndim != 2 or taps.shape[0] != taps.shape[1] or not 1 <= taps.shape[0] <= 15:
        raise ValueError(f"weights must be a square of 1 x 1 to 15 x 15, not {taps.shape}")
    if rows.ndim != 2 or min(rows.shape) < taps.shape[0]:
        raise ValueError(f"picture must have two axes, each {taps.shape[0]} or more: {rows.shape}")
    less = taps.shape[0] - 1
    result = np.empty((rows.shape[0] - less, rows.shape[1] - less), np.float32)
    _core.array_conv2d(runtime, rows, taps, result)
    return result
