"""Annotations say what functions take and give: what these tests state for mypy, they also run.

An ignored error that mypy does not find is an error of its own (warn_unused_ignores), so that each
wrong line here shows that the annotation is no Any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor


def scaled(number: int, by: float = 1.0) -> float:
    return 1.0 / number * by


@needs_processes
def test_futures_have_the_type_of_their_function_s_result(pool: ProcessExecutor) -> None:
    for executor in (pool, pool.options(name="one", cancel="kill")):
        call: futures.Future[float] = executor.submit(scaled, 2, by=4.0)
        assert call.result(60) == 2.0
        text: str = executor.submit(scaled, 1).result(60)  # type: ignore[assignment]
        assert text == 1.0  # type: ignore[comparison-overlap]
        with pytest.raises(TypeError):
            executor.submit(scaled, "2").result(60)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            executor.submit(scaled, 2, to=1.0).result(60)  # type: ignore[call-arg]


@needs_processes
def test_maps_give_results_and_exceptions_only_if_they_are_asked_for(pool: ProcessExecutor) -> None:
    for executor in (pool, pool.options(name="one")):
        results: Iterator[float] = executor.map(scaled, [1, 2])
        assert list(results) == [1.0, 0.5]
        both: list[float | BaseException]
        both = list(executor.map(scaled, [1, 0], return_exceptions=True))
        assert both[0] == 1.0 and isinstance(both[1], ZeroDivisionError)
        results = executor.map(scaled, [1], on_poison="return")  # type: ignore[assignment]
        assert list(results) == [1.0]
        for index, outcome in executor.submit_many(scaled, [1, 0]):
            assert isinstance(outcome, ZeroDivisionError if index else float)
        with pytest.raises(ValueError, match="did you mean 'return'"):
            executor.map(scaled, [1], on_poison="retrun")  # type: ignore[call-overload]


@needs_processes
def test_awaited_calls(pool: ProcessExecutor) -> None:
    async def wait() -> float:
        text: str = await pool.run(scaled, 1)  # type: ignore[arg-type]
        assert text == 1.0  # type: ignore[comparison-overlap]
        return await pool.run(scaled, 2, by=4.0)

    assert asyncio.run(wait()) == 2.0


@needs_processes
def test_options_of_calls(pool: ProcessExecutor) -> None:
    with pytest.raises(TypeError, match="did you mean 'timeout'"):
        pool.options(time=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="did you mean 'kill'"):
        pool.options(cancel="kil")  # type: ignore[arg-type]


def test_what_only_a_runtime_makes() -> None:
    with pytest.raises(TypeError, match="no constructor"):
        leveret.Ticket()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no constructor"):
        leveret.Mutex()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no constructor"):
        leveret.Ordered()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no constructor"):
        leveret.Procedure()  # type: ignore[call-arg]


def test_shapes_of_shared_arrays() -> None:
    given: list[Any] = [np.int64(3), [3], (np.int8(3),), range(3, 4)]
    assert [leveret.shared_array(each).shape for each in given] == [(3,)] * 4
    assert leveret.shared_array(np.int64(3)).shape == leveret.shared_array([3]).shape
    for wrong in ("3", 3.0, None, [3.0]):
        with pytest.raises(TypeError, match="shape must be an int or a tuple"):
            leveret.shared_array(wrong)  # type: ignore[arg-type]
