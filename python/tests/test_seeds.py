"""A seed counts for generators that are imported later, and deep recursion is told of shortly."""

from __future__ import annotations

import sys

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes


def draw_late() -> tuple[bool, float]:
    was_there = "numpy.random" in sys.modules
    import numpy as np

    return was_there, float(np.random.random())


@pytest.mark.parametrize("seed_calls", [False, True])
def test_a_generator_that_is_imported_in_a_call_is_seeded(seed_calls: bool) -> None:
    drawn = []
    for _ in range(2):
        # By value, so that the call does not import this module, which imports NumPy.
        draw = eval("lambda: draw()", {"draw": draw_late})
        with ProcessExecutor(1, seed=5, preload=(), seed_calls=seed_calls) as executor:
            drawn.append(executor.submit(draw).result())
    assert drawn[0] == drawn[1]


def endless(depth: int) -> int:
    return endless(depth + 1)


def recurse(limit: int) -> int:
    sys.setrecursionlimit(limit)
    return endless(0)


def test_the_traceback_of_a_deep_recursion_is_cut() -> None:
    with ProcessExecutor(1, preload=()) as own, pytest.raises(RecursionError) as caught:
        own.submit(recurse, 5000).result()  # before Python 3.11 each takes stack of C
    text = str(caught.value.__cause__)
    assert "most recent call last; the last 200)" in text and "in endless" in text
    assert len(text) < 100_000


def nested(depth: int) -> None:
    try:
        raise ValueError(depth)
    except ValueError as error:
        if depth == 0:
            recurse(5000)
        try:
            nested(depth - 1)
        except BaseException as inner:
            raise KeyError(depth) from inner
        raise AssertionError from error


def test_causes_are_cut_too() -> None:
    with ProcessExecutor(1, preload=()) as own, pytest.raises(KeyError) as caught:
        own.submit(nested, 3).result()
    text = str(caught.value.__cause__)
    assert "in endless" in text and "KeyError: 2" in text and len(text) < 200_000


def divide(number: int) -> int:
    return 1 // number


def test_short_ones_are_as_everywhere(pool: ProcessExecutor) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        pool.submit(divide, 0).result()
    assert "Traceback (most recent call last):\n" in str(caught.value.__cause__)
