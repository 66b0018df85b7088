"""Arrays shorter than the function believes are refused: it would write behind their end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import leveret


@pytest.fixture
def add_to(library: Path) -> leveret.Procedure:
    return leveret.load(library, "add_to", "in f8, inout f8, count(0)")


@pytest.mark.parametrize("size", [0, 1, 999])
def test_an_output_shorter_than_the_count(
    runtime: leveret.Runtime, add_to: leveret.Procedure, size: int
) -> None:
    x = np.ones(1000)
    text = rf"argument 1 \(inout f8\): has {size} elements?; .* argument 0 .* 1000 elements; pass"
    with pytest.raises(ValueError, match=text):
        runtime.submit(add_to, x, np.zeros(size))
    for longer in (1000, 1001):  # a buffer may be larger than what is needed
        y = np.zeros(longer)
        runtime.submit(add_to, x, y).wait()
        assert y.sum() == 1000


def test_an_input_shorter_than_the_count(threads: leveret.Runtime, library: Path) -> None:
    counted_last = leveret.load(library, "add_to", "in f8, inout f8, count(1)", name="last")
    with pytest.raises(ValueError, match=r"argument 0 \(in f8\): has 5 .* argument 1"):
        threads.submit(counted_last, np.ones(5), np.ones(6))
    shape = r"has 6 elements; .* 8 elements"
    with pytest.raises(ValueError, match=shape):  # rows count as what they hold
        threads.submit(counted_last, np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"or say in the signature .* 'in f8\[N\]'"):
        threads.submit(counted_last, np.ones(5), np.ones(6))


def test_lengths_that_the_signature_tells(runtime: leveret.Runtime, library: Path) -> None:
    any_length = leveret.load(library, "add_to", "in f8, inout f8[any], count(0)", name="any")
    runtime.submit(any_length, np.zeros(0), np.zeros(0)).wait()
    runtime.submit(any_length, np.ones(2), np.zeros((1, 2))).wait()
    fixed = leveret.load(library, "add_to", "in f8[4], inout f8[4], u8", name="fixed")
    y = np.zeros(4)
    runtime.submit(fixed, np.ones(5), y, 4).wait()
    assert y.sum() == 4
    with pytest.raises(ValueError, match=r"has 3 elements; the procedure takes at least 4"):
        runtime.submit(fixed, np.ones(5), np.zeros(3), 4)
    sums = leveret.load(library, "sum_rows", "in f8, rows(0), count(0), out f8[rows(0)]")
    matrix, totals = np.arange(12.0).reshape(4, 3), np.zeros(4)
    runtime.submit(sums, matrix, totals).wait()
    np.testing.assert_array_equal(totals, matrix.sum(1))
    with pytest.raises(ValueError, match=r"one for each row of argument 0 .* 4 rows"):
        runtime.submit(sums, matrix, np.zeros(3))


def test_the_shape_must_fit_where_rows_are_stepped_through(
    runtime: leveret.Runtime, library: Path
) -> None:
    copy = leveret.load(library, "copy_block", "in f4, out f4, rows(0), count(0), stride(1)")
    block, target = np.ones((3, 4), "f4"), np.zeros((3, 8), "f4")
    runtime.submit(copy, block, target[:, 1:5]).wait()
    assert target.sum() == 12
    for wrong in (np.zeros((4, 3), "f4"), np.zeros((2, 9), "f4"), np.zeros(12, "f4")):
        with pytest.raises(ValueError, match=r"the shape of argument 0 .* 3 rows of 4"):
            runtime.submit(copy, block, wrong)


def test_arrays_of_a_bulk(runtime: leveret.Runtime, add_to: leveret.Procedure) -> None:
    rows, sums = np.ones((10, 7)), np.zeros((10, 7))
    runtime.submit_bulk(add_to, rows, sums).wait()
    assert (sums == 1).all()
    with pytest.raises(ValueError, match=r"argument 1 .*: has 6 elements; .* 7 elements"):
        runtime.submit_bulk(add_to, rows, sums[:, :6].copy())
    with pytest.raises(ValueError, match=r"argument 1 .*: has 7 elements; .* 8 elements"):
        runtime.submit_bulk(add_to, leveret.whole(np.ones(8)), sums)
    with pytest.raises(ValueError, match=r"argument 1 .*: has 1 element; .* 2 elements"):
        runtime.submit_bulk(add_to, [(np.ones(2), np.ones(2)), (np.ones(2), np.ones(1))])
    runtime.submit_bulk(add_to, np.ones((0, 5)), np.ones((0, 4))).wait()


def test_what_is_cut_is_cut_together(runtime: leveret.Runtime, add_to: leveret.Procedure) -> None:
    n = 10_000
    x, y = np.arange(float(n)), np.zeros(n)
    runtime.submit(add_to, leveret.sliced(x), leveret.sliced(y), grain=64).wait()
    np.testing.assert_array_equal(x, y)
    # Each piece of y would be added all of x.
    with pytest.raises(ValueError, match=r"argument 1 .*cut it, and not argument 0"):
        runtime.submit(add_to, x, leveret.sliced(y))


def test_a_fixed_length_is_not_cut(threads: leveret.Runtime, library: Path) -> None:
    fixed = leveret.load(library, "add_to", "in f8[4], inout f8[4], u8", name="fixed")
    with pytest.raises(ValueError, match=r"pass it without leveret\.sliced"):
        threads.submit(fixed, leveret.sliced(np.ones(8)), leveret.sliced(np.ones(8)), 4)
    table = leveret.load(library, "add_range", "range, f8, in f8, out f8[2]", name="with_table")
    with pytest.raises(ValueError, match=r"argument 3 \(out f8\): has 1 element"):
        threads.submit(table, (0, 1), 1.0, np.ones(2), np.ones(1))
    with pytest.raises(ValueError, match=r"argument 2 .* fewer"):
        threads.parallel(table, 8, 1.0, np.ones(8), leveret.sliced(np.ones(8)))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_that_are_sliced(runtime: leveret.Runtime, library: Path, rows: int) -> None:
    """One row is one slice, and an array without elements has no rows."""
    sum_rows = leveret.load(library, "sum_rows", "in f8, rows(0), count(0), out f8[rows(0)]")
    matrix, sums = np.ones((3, 5)), np.full(3, -1.0)
    sliced = leveret.sliced
    runtime.submit(sum_rows, sliced(matrix[:rows]), sliced(sums[:rows])).wait()
    assert (sums[:rows] == 5).all() and (sums[rows:] == -1).all()
