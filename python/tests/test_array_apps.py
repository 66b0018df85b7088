"""The applications over arrays, against NumPy, and strict about their options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leveret
from leveret import apps
from leveret.array_apps import run_arrays

RANDOM = np.random.default_rng(1)


def floats(*shape: int) -> Any:
    return RANDOM.random(shape, np.float32) - np.float32(0.5)


@pytest.mark.parametrize("n", [1, 4, 16, 1024, 4096, 16384])
def test_fft(runtime: leveret.Runtime, n: int) -> None:
    points = (floats(n) + 1j * floats(n)).astype(np.complex64)
    expected = np.fft.fft(points.astype(np.complex128))
    first = apps.fft(runtime, points, tasks=1)
    np.testing.assert_allclose(first, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    for tasks, dice in ((3, False), (1000, True)):
        np.testing.assert_array_equal(apps.fft(runtime, points, tasks=tasks, dice=dice), first)


@pytest.mark.parametrize("n", [1, 7, 100_003])
def test_saxpy(runtime: leveret.Runtime, n: int) -> None:
    x, y = floats(n), floats(n)
    for tasks, dice in ((1, True), (9, False)):
        found = apps.saxpy(runtime, 0.75, x, y, tasks=tasks, dice=dice)
        np.testing.assert_allclose(found, np.float32(0.75) * x + y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1000), (500, 7), (130, 129), (5, 0), (0, 5)])
def test_sgemv(runtime: leveret.Runtime, shape: tuple[int, int]) -> None:
    matrix, x = floats(*shape), floats(shape[1])
    expected = matrix.astype(float) @ x.astype(float)
    for tasks, dice in ((1, True), (4, False)):
        found = apps.sgemv(runtime, matrix, x, tasks=tasks, dice=dice)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(15, 15), (32, 64), (100, 131), (40, 300)])
@pytest.mark.parametrize("taps", [1, 2, 5, 15])
def test_conv2d(runtime: leveret.Runtime, shape: tuple[int, int], taps: int) -> None:
    picture, weights = floats(*shape), floats(taps, taps)
    windows = np.lib.stride_tricks.sliding_window_view(picture.astype(float), (taps, taps))
    expected = np.einsum("rcij,ij->rc", windows, weights.astype(float))
    np.testing.assert_allclose(apps.conv2d(runtime, picture, weights), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("app", "n"), [("fft", 1024), ("saxpy", 10_007), ("sgemv", 100), ("conv2d", 90)]
)
def test_run(runtime: leveret.Runtime, app: str, n: int) -> None:
    report = run_arrays(runtime, app, n=n, tasks=5, steps=2)
    assert report.app == app
    assert report.correct
    assert report.error < 1e-5
    assert report.tasks >= 2
    assert not run_arrays(runtime, app, n=n, check=False).correct


@pytest.mark.parametrize(
    ("app", "options"),
    [
        ("dft", {}),
        ("fft", {"n": 8}),
        ("fft", {"n": 4**14}),
        ("fft", {"n": 0}),
        ("saxpy", {"n": 0}),
        ("sgemv", {"n": 2**16}),
        ("conv2d", {"n": 4}),
        ("saxpy", {"tasks": 0}),
        ("saxpy", {"steps": 0}),
    ],
)
def test_bad_options(threads: leveret.Runtime, app: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        run_arrays(threads, app, **options)


def test_shapes_that_do_not_fit(threads: leveret.Runtime) -> None:
    for call in (
        lambda: apps.fft(threads, np.zeros((2, 2))),
        lambda: apps.fft(threads, np.zeros(5)),
        lambda: apps.saxpy(threads, 1, np.zeros(3), np.zeros(4)),
        lambda: apps.saxpy(threads, 1, np.zeros((3, 1)), np.zeros((3, 1))),
        lambda: apps.sgemv(threads, np.zeros((3, 4)), np.zeros(3)),
        lambda: apps.sgemv(threads, np.zeros(4), np.zeros(4)),
        lambda: apps.conv2d(threads, np.zeros((4, 4)), np.zeros((2, 3))),
        lambda: apps.conv2d(threads, np.zeros((4, 4)), np.zeros((16, 16))),
        lambda: apps.conv2d(threads, np.zeros((4, 9)), np.zeros((5, 5))),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
