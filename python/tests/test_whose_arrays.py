"""Whose memory an array is when it goes to a call, comes back, and goes to the next one."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor, _core

pytestmark = needs_processes

kept: list[Any] = []


def _spoil(array: Any) -> float:
    total = float(array.sum())
    array[...] = 0
    return total


def _echo(array: Any) -> Any:
    return array


def _keep(array: Any) -> None:
    kept.append(array)


def _kept() -> Any:
    return kept.pop()


def _made(value: float) -> Any:
    array = leveret.shared_array(1000)
    array[:] = value
    return array


@pytest.mark.parametrize("count", [10, 600, 10_000, 300_000])
def test_the_result_of_one_call_is_copied_for_the_next(pool: ProcessExecutor, count: int) -> None:
    """Results lie in shared memory where a function's earlier ones have told how large they are."""
    for first in (*(pool.submit(np.ones, count).result() for _ in range(3)), *_mapped(pool, count)):
        assert pool.submit(_spoil, first).result() == count
        assert list(pool.map(_spoil, [first, first], chunksize=2)) == [count, count]
        assert pool.submit(_spoil, first[::-1]).result() == count
        assert first.sum() == count and pool.submit(_echo, first).result().base is not first.base


def _mapped(pool: ProcessExecutor, count: int) -> list[Any]:
    return list(pool.map(np.ones, [count] * 4))


def test_a_crashed_attempt_does_not_change_an_earlier_result(pool: ProcessExecutor) -> None:
    def half(array: Any) -> float:
        if array[0] == 1:
            array[0] = 2
            os.abort()
        return float(array[0])

    pool.submit(np.ones, 10_000).result()
    array = pool.submit(np.ones, 10_000).result()
    assert isinstance(pool.submit(half, array).exception(), leveret.Poison)


def test_read_only_arrays_in_shared_memory_stay_so(pool: ProcessExecutor) -> None:
    array = leveret.shared_array((5, 4))
    array.flags.writeable = False
    for view in (array, array[::-2], array.view(np.matrix), np.broadcast_to(array[0], (3, 4))):
        assert isinstance(pool.submit(_spoil, view).exception(), ValueError)
        back = pool.submit(_echo, view).result()
        assert not back.flags.writeable and np.shares_memory(back, array)
    assert pool.submit(_echo, array[:, :0]).result().shape == (5, 0)


def test_a_shared_array_that_a_call_makes_comes_back_as_a_copy(pool: ProcessExecutor) -> None:
    made = pool.submit(_made, 3.0).result()
    assert made.shape == (1000,) and (made == 3).all() and _core.block_at(made.ctypes.data) is None


def _of_workers(array: Any) -> Any:
    own = leveret.shared_array(3)
    with ProcessExecutor(1, preload=()) as inner:
        total = inner.submit(_spoil, array).result()
        results = [inner.submit(_made, 2.0).result() for _ in range(3)]
        inner.submit(_fill, own).result()
        return total, own, results[-1]


def _fill(array: Any) -> None:
    array[:] = 7


def test_workers_of_a_worker() -> None:
    """They have the memory of the worker, but not of its host, whose arrays are copied."""
    array = leveret.shared_array(3000)
    array[:] = 1
    with ProcessExecutor(1) as executor:
        total, own, result = executor.submit(_of_workers, array).result()
    assert total == 3000 and (array == 1).all() and (own == 7).all() and (result == 2).all()


def test_an_array_that_was_dropped_while_a_process_kept_it() -> None:
    with ProcessExecutor(1) as executor:
        array = leveret.shared_array(5000)
        executor.submit(_keep, array).result()
        del array
        gc.collect()
        error = executor.submit(_kept).exception()
    assert isinstance(error, leveret.TaskFailed) and "keep it meanwhile" in str(error)
