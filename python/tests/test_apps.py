"""The applications from Python: right on every machine, and strict about their options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leveret
from leveret import apps


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (
            {"seed": -1},
            ValueError,
            "seed must be an integer from 0 to 18446744073709551615, not -1",
        ),
        ({"seed": 2**64}, ValueError, "seed must be an integer from 0 to"),
        ({"seed": None}, TypeError, "seed must be an integer from 0 to"),
        ({"n": 32.5}, TypeError, "n must be an integer from 0 to .*, not 32.5"),
        ({"dice": "yes"}, TypeError, "dice must be True or False, not 'yes'"),
    ],
)
def test_options_of_the_wrong_kind(
    runtime: leveret.Runtime, options: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        apps.lu(runtime, **{"n": 32, **options})


def test_mandelbrot(runtime: leveret.Runtime) -> None:
    size: dict[str, Any] = {"width": 80, "height": 60, "iterations": 200}
    reference = apps.mandelbrot_picture(None, **size)
    for tasks, dice in ((1, True), (7, False), (60, True)):
        picture = apps.mandelbrot_picture(runtime, tasks=tasks, dice=dice, **size)
        assert picture.shape == (60, 80)
        np.testing.assert_array_equal(picture, reference)
    report = apps.mandelbrot(runtime, tasks=5, frames=2, **size)
    assert report.correct
    assert report.error == 0
    assert report.speed_up > 0
    assert report.iterations == int(reference.astype(np.uint64).sum())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"blocks": True, "block": 16},
        {"blocks": True, "block": 16, "dependencies": True},
        {"columns_per_task": 0},
        {"double_precision": True, "dice": False},
    ],
)
def test_lu(runtime: leveret.Runtime, options: dict[str, Any]) -> None:
    report = apps.lu(runtime, n=96, **options)
    assert report.correct
    assert report.tasks > 0


def test_barnes_hut(runtime: leveret.Runtime) -> None:
    report = apps.barnes_hut(runtime, bodies=500, steps=2)
    assert report.correct
    assert report.error < 0.05


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 1, "tasks": 3},
        {"n": 99_999, "form": "far", "chunk_bytes": 64},
        {"n": 160_000, "mode": "ecb", "form": "far", "buffers": 2},
        {"n": 160_000, "mode": "ecb", "dice": False},
    ],
)
def test_aes(runtime: leveret.Runtime, options: dict[str, Any]) -> None:
    options = {"n": 100_003, **options}
    if runtime.machine == "processes" and options.get("form") == "far":
        with pytest.raises(leveret.Unavailable, match="cannot"):
            apps.aes(runtime, **options)
        return
    report = apps.aes(runtime, **options)
    assert report.correct
    assert report.error == 0
    assert report.tasks > 0


def test_aes_by_openssl(threads: leveret.Runtime) -> None:
    try:
        assert apps.aes(threads, n=100_003, kernel="openssl").correct
    except leveret.Unavailable as e:  # a build without it says so
        assert "LEVERET_OPENSSL" in str(e)


@pytest.mark.parametrize("options", [{}, {"lists": 9, "cuts": 0}, {"tasks": 1, "dice": False}])
def test_list_ranking(runtime: leveret.Runtime, options: dict[str, Any]) -> None:
    if runtime.machine == "processes":
        with pytest.raises(leveret.Unavailable, match="cannot"):
            apps.list_ranking(runtime, nodes=5000, **options)
        return
    report = apps.list_ranking(runtime, nodes=5000, **options)
    assert report.correct
    assert report.error == 0
    assert report.sublists > 0


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (apps.mandelbrot, {"width": 0}),
        (apps.mandelbrot, {"width": 2**40}),
        (apps.mandelbrot, {"width": 2**20, "height": 2**20, "tasks": 1}),
        (apps.mandelbrot, {"iterations": 65536}),
        (apps.mandelbrot, {"tasks": 0}),
        (apps.mandelbrot, {"tasks": 481}),
        (apps.mandelbrot, {"frames": 0}),
        (apps.lu, {"n": 0}),
        (apps.lu, {"n": 2**17}),
        (apps.lu, {"block": 0}),
        (apps.lu, {"columns_per_task": -1}),
        (apps.barnes_hut, {"bodies": 0}),
        (apps.barnes_hut, {"steps": 0}),
        (apps.barnes_hut, {"theta": 0.8}),
        (apps.barnes_hut, {"theta": float("nan")}),
        (apps.barnes_hut, {"set_bodies": 0}),
        (apps.aes, {"n": 0}),
        (apps.aes, {"n": 2**50}),
        (apps.aes, {"n": 17, "mode": "ecb"}),
        (apps.aes, {"mode": "cbc"}),
        (apps.aes, {"form": "near"}),
        (apps.aes, {"kernel": "magic"}),
        (apps.aes, {"tasks": 0}),
        (apps.aes, {"chunk_bytes": 24}),
        (apps.aes, {"buffers": 17}),
        (apps.aes, {"chunk_bytes": 32768}),
        (apps.list_ranking, {"nodes": 0}),
        (apps.list_ranking, {"nodes": 2**32 - 1}),
        (apps.list_ranking, {"nodes": 5, "lists": 6}),
        (apps.list_ranking, {"tasks": 0}),
        (apps.list_ranking, {"cuts": -1}),
    ],
)
def test_bad_options(threads: leveret.Runtime, function: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|too big"):
        function(threads, **options)
