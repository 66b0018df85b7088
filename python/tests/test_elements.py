"""Elements of every type, and memory that is not NumPy's own or lies oddly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leveret

SUM = leveret.builtin("sum")
SCALE = leveret.builtin("scale")


def test_complex_numbers(runtime: leveret.Runtime, library: Path) -> None:
    conjugate = leveret.load(library, "conjugate", "in c16, out c16, count(0)")
    z = np.array([1 + 2j, 3 - 4j, -0.5j])
    out = np.empty_like(z)
    runtime.submit(conjugate, z, out).wait()
    np.testing.assert_array_equal(out, z.conj())
    make = leveret.load(library, "make_complex", "f4, f4, result c8")
    assert runtime.submit(make, 1.5, -2).result() == 1.5 - 2j
    many = runtime.submit_bulk(make, np.arange(3, dtype="f4"), 1.0).result()
    assert many.dtype == np.complex64
    np.testing.assert_array_equal(many, [1j, 1 + 1j, 2 + 1j])


def test_truth_values(runtime: leveret.Runtime, library: Path) -> None:
    invert = leveret.load(library, "invert", "in b1, out b1, count(0), b1, result b1")
    x = np.array([False, False, True])
    y = np.zeros(3, bool)
    assert runtime.submit(invert, x, y, False).result() is True
    np.testing.assert_array_equal(y, ~x)
    assert runtime.submit(invert, x[:2], y, np.bool_(False)).result() is False
    assert runtime.submit(invert, x[:2], y, 1).result() is True
    any_of = runtime.submit_bulk(invert, x.reshape(3, 1), y.reshape(3, 1), [False] * 3).result()
    assert any_of.dtype == bool
    np.testing.assert_array_equal(any_of, x)
    for wrong, error in ((2, OverflowError), (1.0, TypeError), (None, TypeError), ("", TypeError)):
        with pytest.raises(error, match=r"argument 2 \(b1\): "):
            runtime.submit(invert, x, y, wrong)


class Custombool:
    """A name with "bool" where NumPy's has it."""


class Refuses(int):
    def __bool__(self) -> bool:
        raise LookupError("no truth in it")


def test_what_is_no_truth_value(threads: leveret.Runtime, library: Path) -> None:
    invert = leveret.load(library, "invert", "in b1, out b1, count(0), b1, result b1")
    x, y = np.zeros(3, bool), np.zeros(3, bool)
    with pytest.raises(TypeError, match=r"expected True or False, got .*Custombool"):
        threads.submit(invert, x, y, Custombool())
    with pytest.raises(LookupError, match="no truth in it"):
        threads.submit(invert, x, y, Refuses(1))
    assert not y.any()


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -2.5, 65504.0, 2**-14, 2**-24, math.inf])
def test_half_floats(threads: leveret.Runtime, library: Path, number: float) -> None:
    last = leveret.load(library, "last_half", "in f2, count(0), result f2")
    got = threads.submit(last, np.array([7, number], "f2")).result()
    assert got == number and math.copysign(1, got) == math.copysign(1, number)
    many = threads.submit_bulk(last, np.full((2, 1), number, "f2")).result()
    assert many.dtype == np.float16 and (many == number).all()
    assert math.isnan(threads.submit(last, np.array([math.nan], "f2")).result())


def unaligned(values: Any) -> Any:
    """The same numbers at an odd address."""
    memory = np.empty(values.nbytes + 1, np.uint8)[1:]
    made = memory.view(values.dtype).reshape(values.shape)
    made[...] = values
    assert made.ctypes.data % 2 == 1
    return made


@pytest.mark.parametrize("staging", ["auto", "in_place", "copy"])
def test_elements_that_are_not_aligned_are_copied(machine: str, staging: Any) -> None:
    with leveret.Runtime(machine, workers=2, staging=staging) as runtime:
        x = unaligned(np.arange(100.0))
        assert runtime.submit(SUM, x).result() == 4950
        runtime.submit(SCALE, 2.0, x).wait()
        np.testing.assert_array_equal(x, 2 * np.arange(100.0))
        runtime.submit(SCALE, 0.5, leveret.sliced(x), grain=7).wait()
        rows = x.reshape(4, 25)
        sums = runtime.submit_bulk(SUM, rows).result()
        np.testing.assert_array_equal(sums, np.arange(100.0).reshape(4, 25).sum(1))
        records = np.zeros(3, [("tag", "u1"), ("x", "f8", 4)])
        records["x"] = np.arange(12.0).reshape(3, 4)
        assert runtime.submit(SUM, records["x"]).result() == 66
        np.testing.assert_array_equal(runtime.submit_bulk(SUM, records["x"]).result(), [6, 22, 38])
        runtime.submit_bulk(SCALE, 2.0, records["x"]).wait()
        assert records["x"].sum() == 132


def test_an_aligned_task_copies_nothing(threads: leveret.Runtime) -> None:
    before = threads.counters()["staged_bytes"]
    threads.submit(SUM, np.ones(100)).wait()
    assert threads.counters()["staged_bytes"] == before
    threads.submit(SUM, unaligned(np.ones(100))).wait()
    assert threads.counters()["staged_bytes"] == before + 832  # rounded up to lines


def test_inputs_that_are_read_only(runtime: leveret.Runtime) -> None:
    x = unaligned(np.ones(10))
    for each in (np.ones(10), x):
        each.flags.writeable = False
        assert runtime.submit(SUM, each).result() == 10


class Tensor:
    """Memory that is offered by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Column:
    """Memory, or a copy of it, that is offered by __array__."""

    def __init__(self, array: Any, copies: bool) -> None:
        self.array, self.copies = array, copies

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array.copy() if self.copies else self.array


class Elsewhere:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("the data is on another planet")


def test_other_libraries_memory_is_not_copied(threads: leveret.Runtime) -> None:
    x = np.arange(10.0)
    assert threads.submit(SUM, Tensor(x)).result() == 45
    assert threads.submit(SUM, Column(x, False)).result() == 45
    assert threads.submit(SUM, Column(x, True)).result() == 45
    np.testing.assert_array_equal(threads.submit_bulk(SCALE, 2.0, x.reshape(5, 2)).result(), None)
    threads.submit(SCALE, 0.5, Column(x, False)).wait()
    np.testing.assert_array_equal(x, np.arange(10.0))
    spins = Column(np.ones(3, "u8"), False)
    threads.submit_bulk(leveret.builtin("spin"), spins).wait()


def test_what_would_be_written_to_a_copy_is_refused(threads: leveret.Runtime) -> None:
    x = np.ones(4)
    with pytest.raises(BufferError, match="only given as a copy"):
        threads.submit(SCALE, 2.0, Column(x, True))
    x.flags.writeable = False
    with pytest.raises(BufferError, match="Column is read-only"):
        threads.submit(SCALE, 2.0, Column(x, False))
    with pytest.raises(TypeError, match=r"argument 0 \(in f8\): .* on another planet"):
        threads.submit(SUM, Elsewhere())


def test_pandas(threads: leveret.Runtime) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert threads.submit(SUM, frame["a"]).result() == 3
    assert threads.submit(SUM, frame["b"].to_numpy()).result() == 7
    with pytest.raises(TypeError, match="Python objects"):
        threads.submit(SUM, pandas.Series([1, "a"], dtype="object"))


def test_arrow(threads: leveret.Runtime) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    column = arrow.array(np.arange(5.0))
    assert threads.submit(SUM, column).result() == 10
    assert threads.submit(SUM, column.slice(3)).result() == 7
    with pytest.raises(BufferError, match="read-only"):
        threads.submit(SCALE, 2.0, column)


def test_torch(threads: leveret.Runtime) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.ones(6, dtype=torch.float64)
    threads.submit(SCALE, 3.0, tensor).wait()
    assert threads.submit(SUM, tensor).result() == 18
