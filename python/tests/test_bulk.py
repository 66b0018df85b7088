"""submit_bulk and parallel: many tasks in one call."""

from __future__ import annotations

import array
import random
import re
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import leveret

NULL, SUM, AXPY = leveret.builtin("null"), leveret.builtin("sum"), leveret.builtin("axpy")


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_null_tasks(runtime: leveret.Runtime, count: int) -> None:
    before = runtime.counters()["submitted"]
    ticket = runtime.submit_bulk(NULL, count=count)
    ticket.wait(60)
    assert ticket.result() is None
    submitted = runtime.counters()["submitted"] - before
    assert submitted <= count + 1  # pieces of the bulk, and their join
    assert (submitted == 0) == (count == 0)


def test_a_null_task_costs_less_than_half_a_microsecond(threads: leveret.Runtime) -> None:
    count = 200_000
    cost = float("inf")
    for _ in range(100):  # on a full machine one of them has the cores to itself
        start = time.perf_counter()
        threads.submit_bulk(NULL, count=count).wait()
        cost = min(cost, (time.perf_counter() - start) / count)
        if cost < 0.5e-6:
            break
    assert cost < 0.5e-6, f"{cost * 1e9:.0f} ns a task"


def test_rows_and_values(runtime: leveret.Runtime) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((100, 7)), rng.random((100, 7))
    factors = rng.random(100)
    expected = y + factors[:, None] * x
    runtime.submit_bulk(AXPY, factors, x, y).wait(60)
    np.testing.assert_allclose(y, expected, rtol=1e-15)
    y[:] = 0
    runtime.submit_bulk(AXPY, list(factors), x[:, ::1], y).wait(60)
    np.testing.assert_allclose(y, factors[:, None] * x, rtol=1e-15)
    y[:] = 0
    runtime.submit_bulk(AXPY, 2, leveret.whole(x[3]), y, count=100).wait(60)
    np.testing.assert_array_equal(y, np.broadcast_to(2 * x[3], y.shape))


def test_results_are_arrays(runtime: leveret.Runtime, library: Path) -> None:
    x = np.arange(60.0).reshape(20, 3)
    sums = runtime.submit_bulk(SUM, x).result(60)
    np.testing.assert_array_equal(sums, x.sum(axis=1))
    two = leveret.load(library, "two_results", "f8, result f8, result i4")
    doubled, truncated = runtime.submit_bulk(two, x.ravel()).result(60)
    np.testing.assert_array_equal(doubled, 2 * x.ravel())
    np.testing.assert_array_equal(truncated, x.ravel().astype(np.int32))
    assert truncated.dtype == np.int32
    one = runtime.submit_bulk(SUM, x[:1]).result(60)
    assert one.shape == (1,)


def test_strided_rows(runtime: leveret.Runtime, library: Path) -> None:
    block_sum = leveret.load(library, "block_sum", "in f8, rows(0), count(0), stride(0), result f8")
    matrix = np.arange(32.0 * 32).reshape(32, 32)
    columns = matrix.reshape(32, 4, 8).transpose(1, 0, 2)  # four blocks of eight columns
    sums = runtime.submit_bulk(block_sum, columns).result(60)
    np.testing.assert_array_equal(sums, columns.sum(axis=(1, 2)))
    backwards = runtime.submit_bulk(SUM, matrix[::-1]).result(60)
    np.testing.assert_array_equal(backwards, matrix[::-1].sum(axis=1))


def test_a_list_of_tasks(runtime: leveret.Runtime) -> None:
    arrays = [np.ones(n) for n in range(1, 50)]
    sums = runtime.submit_bulk(SUM, [(a,) for a in arrays]).result(60)
    np.testing.assert_array_equal(sums, [a.size for a in arrays])
    runtime.submit_bulk(NULL, [()] * 10).wait(60)


def test_a_bulk_of_no_tasks_has_empty_results(runtime: leveret.Runtime) -> None:
    empty: list[tuple[object, ...]] = []
    rows = np.ones((0, 4))
    for ticket in (
        runtime.submit_bulk(SUM, rows),
        runtime.submit_bulk(SUM, empty),
        runtime.submit_bulk(SUM, leveret.whole(np.ones(4)), count=0),
    ):
        assert ticket.done()
        sums = ticket.result(60)
        assert sums.shape == (0,) and sums.dtype == np.float64
    runtime.submit_bulk(AXPY, empty).wait(60)


def test_ranges(runtime: leveret.Runtime, library: Path) -> None:
    square = leveret.load(library, "square_range", "range, out u8", name="square_bulk")
    out = np.zeros((10, 5), np.uint64)
    runtime.submit_bulk(square, [(5 * i, 5 * i + 5) for i in range(10)], out).wait(60)
    np.testing.assert_array_equal(out.ravel(), np.arange(50, dtype=np.uint64) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_output_rows_of_tasks_that_overlap_are_refused(
    threads: leveret.Runtime, library: Path, seed: int
) -> None:
    """Whatever another column is like: a list of ranges makes tasks of their own."""
    square = leveret.load(library, "square_range", "range, out u8[any]", name="bulk.out")
    other = leveret.load(library, "square_range", "range, inout u8[any]", name="bulk.inout")
    dice = random.Random(seed)
    refused = 0
    for _ in range(200):
        tasks, rows, length = (dice.randrange(1, 6) for _ in range(3))
        stride = dice.randrange(length, 9)
        steps = (8 * dice.choice([-1, 1]) * dice.randrange(1, 30), 8 * stride, 8)
        memory = np.zeros(400, np.uint64)[150:]
        array = as_strided(memory, (tasks, rows, length), steps)
        places = [
            steps[0] * i + steps[1] * r + k
            for i in range(tasks)
            for r in range(rows)
            for k in range(8 * length)
        ]
        columns: list[Any] = [[(0, 0)] * tasks, array]
        if len(set(places)) == len(places):
            threads.submit_bulk(dice.choice([square, other]), *columns).wait(60)
            continue
        refused += 1
        with pytest.raises(leveret.InvalidArgument, match=r"argument 1 .*rows overlap") as error:
            threads.submit_bulk(dice.choice([square, other]), *columns)
        assert error.value.status == leveret.Status.OVERLAP
    assert 0 < refused < 200


def test_a_bulk_that_is_refused_half_way_keeps_no_array(
    threads: leveret.Runtime, library: Path
) -> None:
    add = leveret.load(library, "add_to", "inout f8, inout f8, count(1)", name="bulk.pair")
    one, two = array.array("d", [1.0] * 8), array.array("d", [0.0] * 8)
    with pytest.raises(leveret.InvalidArgument, match="task 1 of the bulk"):
        threads.submit_bulk(add, [(one, two), (two, two)])
    assert two == one  # the first has run
    one.append(1.0)
    two.append(1.0)


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 50_000])
def test_parallel(runtime: leveret.Runtime, library: Path, n: int) -> None:
    square = leveret.load(library, "square_range", "range, out u8")
    out = np.zeros(n, np.uint64)
    runtime.parallel(square, n, leveret.sliced(out)).wait(60)
    np.testing.assert_array_equal(out, np.arange(n, dtype=np.uint64) ** 2)


def test_parallel_slices_every_sliced_array(runtime: leveret.Runtime, library: Path) -> None:
    add = leveret.load(library, "add_range", "range, f8, in f8, out f8")
    x, y = np.arange(10_000.0), np.zeros(10_000)
    ticket = runtime.parallel(add, x.size, 3.0, leveret.sliced(x), leveret.sliced(y), grain=16)
    ticket.wait(60)
    np.testing.assert_array_equal(y, x + 3)
    y[:] = 0
    runtime.submit(add, range(x.size), 1.0, leveret.sliced(x), leveret.sliced(y)).wait(60)
    np.testing.assert_array_equal(y, x + 1)
    with pytest.raises(leveret.InvalidArgument):
        runtime.parallel(add, 99, 3.0, leveret.sliced(x), leveret.sliced(y))


def test_parallel_needs_a_range(runtime: leveret.Runtime, library: Path) -> None:
    axpy = leveret.load(library, "axpy_f4", "f4, in f4, inout f4, count(1)")
    x, y = np.ones(10, "f4"), np.zeros(10, "f4")
    for arrays in ((x, y), (leveret.sliced(x), leveret.sliced(y))):
        with pytest.raises(TypeError, match=r"'axpy_f4'.*no range parameter.*submit\(\)"):
            runtime.parallel(axpy, 3, 1.0, *arrays)
    assert (y == 0).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 2**32))
def test_bulk_equals_one_by_one(rows: int, columns: int, seed: int) -> None:
    x = np.random.default_rng(seed).random((rows, columns))
    with leveret.Runtime(workers=1) as runtime:
        bulk = runtime.submit_bulk(SUM, x).result(60)
        single = [runtime.submit(SUM, row).result(60) for row in x]
    np.testing.assert_array_equal(bulk, single)


BAD = [
    ((np.zeros(3), np.zeros((4, 2)), np.zeros((4, 2))), ValueError, r"argument 1 .* 4 tasks"),
    ((1.0, np.zeros((4, 2)), np.zeros((5, 2))), ValueError, r"argument 2 .* 5 tasks"),
    ((1.0, np.array(1.0), np.zeros((4, 2))), ValueError, "argument 1 .*no axis"),
    ((np.zeros((4, 1)), np.zeros((4, 2)), np.zeros((4, 2))), ValueError, "argument 0 .*one axis"),
    ((np.zeros(4, "f4"), np.zeros((4, 2)), np.zeros((4, 2))), TypeError, "argument 0 .*f4"),
    (([1, "a", 2, 3], np.zeros((4, 2)), np.zeros((4, 2))), TypeError, "argument 0"),
    ((1.0, np.zeros((4, 2)), leveret.sliced(np.zeros((4, 2)))), TypeError, "argument 2 .*cuts"),
    ((leveret.whole(1.0), np.zeros((4, 2)), np.zeros((4, 2))), TypeError, "argument 0 .*value"),
    ((1.0, np.zeros((4, 2)), np.zeros((4, 2, 2))[:, :, 0]), ValueError, "argument 2 .*contiguous"),
    ((1.0, np.zeros((4, 2))), TypeError, "takes 3 arguments"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD)
def test_bad_columns(
    threads: leveret.Runtime, given: tuple[object, ...], error: type[Exception], message: str
) -> None:
    before = threads.counters()["submitted"]
    with pytest.raises(error, match=message):
        threads.submit_bulk(AXPY, *given)
    assert threads.counters()["submitted"] == before


def test_bad_counts(threads: leveret.Runtime) -> None:
    with pytest.raises(ValueError, match="count=n"):
        threads.submit_bulk(NULL)
    with pytest.raises(ValueError, match="0 or more"):
        threads.submit_bulk(NULL, count=-1)
    with pytest.raises(TypeError, match="count"):
        threads.submit_bulk(NULL, count="3")  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="count"):
        threads.submit_bulk(NULL, count=2**70)
    for count in (2**50, 2**60, 2**61, 2**62, 2**63 - 1):  # the results' bytes pass 2**64
        with pytest.raises(MemoryError):
            threads.submit_bulk(SUM, leveret.whole(np.ones(2)), count=count)
    with pytest.raises(ValueError, match="count is 3, but the list has 2 tasks"):
        threads.submit_bulk(NULL, [(), ()], count=3)
    with pytest.raises(ValueError, match="argument 0"):
        threads.submit_bulk(SUM, np.zeros((4, 2)), count=5)


def test_failures_are_counted(runtime: leveret.Runtime, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    codes = np.zeros(50, np.int32)
    codes[[7, 21, 40]] = 5
    ticket = runtime.submit_bulk(fail, codes)
    with pytest.raises(leveret.TaskFailed) as caught:
        ticket.wait(60)
    assert caught.value.failures == 3
    assert caught.value.code == 5
    assert re.search(r"task (7|21|40) of the bulk: its procedure returned 5", str(caught.value))


def test_a_death_names_its_index_and_the_others_run(library: Path) -> None:
    procedure = leveret.load(library, "die_or_set", "i4, inout f8, count(1)")
    dies = np.zeros(50, np.int32)
    dies[30] = 1
    rows = np.zeros((50, 2))
    with leveret.Runtime("processes", workers=2) as runtime:
        ticket = runtime.submit_bulk(procedure, dies, rows)
        with pytest.raises(leveret.Poison, match="task 30 of the bulk"):
            ticket.wait(60)
    assert (rows[:, 1] == (dies == 0)).all()


def test_values_may_change_after_the_call(runtime: leveret.Runtime) -> None:
    values, x, y = np.full(3000, 2.0), np.ones((3000, 2)), np.zeros((3000, 2))
    ticket = runtime.submit_bulk(AXPY, values, x, y)
    values[:] = 100
    ticket.wait(60)
    assert (y == 2).all()


class Changes:
    """A number that changes a list as it is read."""

    def __init__(self, change: Callable[[], object]) -> None:
        self.change = change

    def __index__(self) -> int:
        self.change()
        return 3


@pytest.mark.parametrize("way", ["shrinks", "grows"])
def test_a_list_that_changes_while_it_is_read(threads: leveret.Runtime, way: str) -> None:
    count = 10_000
    numbers: list[object] = [2.0] * count
    tasks: list[object] = [(2.0, np.ones(1), np.ones(1)) for _ in range(count)]

    def change() -> None:
        for each in (numbers, tasks):
            if way == "shrinks":
                del each[1:]
            else:
                each.extend(each)

    x, y = np.ones((count, 1)), np.zeros((count, 1))
    numbers[0] = Changes(change)
    threads.submit_bulk(AXPY, numbers, x, y).wait(60)
    assert y[0] == 3 and (y[1:] == 2).all()
    tasks[:] = [(Changes(change), x[0], y[0])] + [(1.0, x[i], y[i]) for i in range(1, count)]
    threads.submit_bulk(AXPY, tasks).wait(60)
    assert y[0] == 6 and (y[1:] == 3).all()
