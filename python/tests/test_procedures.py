"""Native functions as procedures: every shape of call, every way to name a function."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import leveret

once_a_run = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def values(code: str) -> st.SearchStrategy[float]:
    bits = 8 * int(code[1])
    if code[0] == "f":
        return st.floats(width=32 if bits == 32 else 64, allow_nan=False)
    low = -(1 << bits - 1) if code[0] == "i" else 0
    return st.integers(low, low + (1 << bits) - 1)


def test_the_example_of_the_documents(runtime: leveret.Runtime, library: Path) -> None:
    axpy = leveret.load(library, "axpy_f4", "f4, in f4, inout f4, count(1)")
    x, y = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    expected = y + np.float32(0.5) * x
    assert runtime.submit(axpy, 0.5, x, y).result() is None
    np.testing.assert_array_equal(y, expected)


@once_a_run
@given(*(values(code) for code in ("i1", "u1", "i2", "u2", "i4", "u4")))
def test_narrow_integers_are_extended(
    threads: leveret.Runtime, library: Path, a: int, b: int, c: int, d: int, e: int, f: int
) -> None:
    narrow = leveret.load(library, "narrow", "i1, u1, i2, u2, i4, u4, result i8")
    assert threads.submit(narrow, a, b, c, d, e, f).result() == a + b + c + d + e + f


@pytest.mark.parametrize("how", ["ctypes", "address", "load", "prototype", "cffi"])
def test_ways_to_name_a_function(threads: leveret.Runtime, library: Path, how: str) -> None:
    handle = ctypes.CDLL(str(library))
    function: object = handle.two_results
    address = ctypes.cast(handle.two_results, ctypes.c_void_p).value
    assert address is not None
    signature = "f8, result f8, result i4"
    if how == "address":
        function = address
    elif how == "prototype":
        kind = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)
        function = kind(address)
    elif how == "cffi":
        cffi = pytest.importorskip("cffi", reason="cffi is not installed")
        function = cffi.FFI().cast("void (*)(double, double *, int32_t *)", address)
    made = (
        leveret.load(library, "two_results", signature)
        if how == "load"
        else leveret.procedure(function, signature)
    )
    assert threads.submit(made, 3.75).result() == (7.5, 3)


def test_a_numba_cfunc(threads: leveret.Runtime) -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("void(float64, CPointer(float64))")
    def halve(x, place):  # type: ignore[no-untyped-def]
        place[0] = x / 2

    made = leveret.procedure(halve, "f8, result f8")
    assert threads.submit(made, 5.0).result() == 2.5


def test_a_python_function_made_native_by_ctypes(threads: leveret.Runtime) -> None:
    """It takes the GIL on a worker: this must not deadlock with waits and full runtimes."""
    seen: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(seen.append)
    made = leveret.procedure(callback, "i8")
    with leveret.Runtime(workers=2, tickets=16) as small:
        for i in range(200):
            small.submit(made, i)
        small.submit_bulk(made, list(range(200, 400))).wait(30)
        small.wait_for_completion(30)
    assert sorted(seen) == list(range(400))


def test_the_same_function_gives_the_same_procedure(library: Path) -> None:
    first = leveret.load(library, "fail_with", "i4 -> int")
    assert leveret.load(library, "fail_with", "i4->int").id == first.id
    other = leveret.load(library, "fail_with", "u4 -> int", name="fail_with_unsigned")
    assert other.id != first.id
    assert repr(first) == "<leveret.Procedure 'fail_with' (i4 -> int)>"


def test_names_are_unique(library: Path) -> None:
    leveret.load(library, "increment", "inout i8", name="taken")
    with pytest.raises(leveret.InvalidArgument, match="taken") as caught:
        leveret.load(library, "axpy_f4", "f4, in f4, inout f4, count(1)", name="taken")
    assert caught.value.status == leveret.Status.EXISTS
    with pytest.raises(leveret.InvalidArgument, match="63 bytes"):
        leveret.load(library, "increment", "inout i8, count(0)", name="n" * 64)


def test_names_of_built_in_procedures_are_taken_before_their_first_use(library: Path) -> None:
    code = f"""
import leveret
try:
    leveret.load({str(library)!r}, "increment", "inout i8", name="leveret.null")
except leveret.InvalidArgument as error:
    assert "the name is taken" in str(error), error
else:
    raise AssertionError
assert leveret.builtin("sum").name == "leveret.sum"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_libraries_that_cannot_be_loaded(tmp_path: Path, library: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.so"):
        leveret.load(tmp_path / "missing.so", "f", "")
    wrong = tmp_path / "wrong.so"
    wrong.write_bytes(b"\x7fELF nonsense")
    with pytest.raises(OSError, match=r"wrong\.so"):
        leveret.load(wrong, "f", "")
    with pytest.raises(leveret.InvalidArgument, match="no symbol 'nothing'"):
        leveret.load(library, "nothing", "")


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda: None, TypeError),
        (print, TypeError),
        ("axpy", TypeError),
        (True, TypeError),
        (None, TypeError),
        (0, ValueError),
    ],
)
def test_what_is_no_native_function(function: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        leveret.procedure(function, "i8")


def test_builtins() -> None:
    with pytest.raises(ValueError, match="axpy, copy, null, scale, spin, sum"):
        leveret.builtin("nothing")
    assert leveret.builtin("null").name == "leveret.null"


def test_a_code_other_than_zero_fails_the_task(runtime: leveret.Runtime, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    runtime.submit(fail, 0).wait()
    with pytest.raises(leveret.TaskFailed, match="'fail_with': returned -7") as caught:
        runtime.submit(fail, -7).wait()
    assert caught.value.code == -7
    assert caught.value.status == leveret.Status.TASK_FAILED
    ignored = leveret.load(library, "fail_with", "i4", name="fail_ignored")
    runtime.submit(ignored, 3).wait()


def test_float_values_keep_their_bits(threads: leveret.Runtime, library: Path) -> None:
    two = leveret.load(library, "two_results", "f8, result f8, result i4")
    for value in (0.0, -0.0, 1e308 / 2, 5e-324, 2.5):
        doubled, _ = threads.submit(two, value).result()
        assert struct.pack("d", doubled) == struct.pack("d", 2 * value)
    assert sys.float_info.max * 2 == threads.submit(two, 1e308).result()[0]


def test_a_second_name_may_be_asked_for_again(library: Path) -> None:
    first = leveret.load(library, "narrow", "i1, u1, i2, u2, i4, u4, result i8")
    other = leveret.load(library, "narrow", "i1, u1, i2, u2, i4, u4, result i8", name="narrow-too")
    again = leveret.load(library, "narrow", "i1, u1, i2, u2, i4, u4, result i8", name="narrow-too")
    assert other is again and other is not first
