"""Native functions as Cython, SciPy, f2py and cffi hand them out."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leveret


def capsule(address: int, name: bytes | None) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, name, None)


@pytest.fixture
def address(library: Path) -> int:
    function = ctypes.CDLL(str(library)).axpy_f4
    return ctypes.cast(function, ctypes.c_void_p).value or 0


SIGNATURE = "f4, in f4, inout f4, count(1)"
PROTOTYPE = b"void (float, float const *, float *, size_t)"


@pytest.mark.parametrize("name", [None, PROTOTYPE, b"no prototype"])
def test_a_capsule(threads: leveret.Runtime, address: int, name: bytes | None) -> None:
    x, y = np.ones(3, "f4"), np.ones(3, "f4")
    held = capsule(address, name)
    threads.submit(leveret.procedure(held, SIGNATURE), 2.0, x, y).wait()
    assert (y == 3).all()


def test_a_fortran_function_has_its_capsule(threads: leveret.Runtime, address: int) -> None:
    class Fortran:  # as f2py makes it
        _cpointer = capsule(address, None)
        __name__ = "axpy"

        def __call__(self) -> None:
            """Python's way to it."""

    y = np.zeros(3, "f4")
    threads.submit(leveret.procedure(Fortran(), SIGNATURE), 2.0, np.ones(3, "f4"), y).wait()
    assert (y == 2).all()


def test_a_capsule_that_cannot_be_meant(address: int) -> None:
    with pytest.raises(ValueError, match=r"it has 4 parameters .* takes 5: void"):
        leveret.procedure(capsule(address, b"void (int, int, int, int, int)"), SIGNATURE)
    with pytest.raises(ValueError, match="takes 0: int"):
        leveret.procedure(capsule(address, b"int (void)"), SIGNATURE)
    with pytest.raises(TypeError, match="Python objects: PyObject"):
        leveret.procedure(capsule(address, b"PyObject *(PyObject *)"), "in f8")


def test_low_level_callables_of_scipy(threads: leveret.Runtime, address: int) -> None:
    scipy = pytest.importorskip("scipy", reason="scipy is not installed")
    held = scipy.LowLevelCallable(capsule(address, PROTOTYPE), signature=PROTOTYPE.decode())
    y = np.zeros(3, "f4")
    threads.submit(leveret.procedure(held, SIGNATURE), 2.0, np.ones(3, "f4"), y).wait()
    assert (y == 2).all()
    data = ctypes.c_int(3)
    with_data = scipy.LowLevelCallable(
        capsule(address, PROTOTYPE), ctypes.cast(ctypes.pointer(data), ctypes.c_void_p)
    )
    with pytest.raises(TypeError, match="user_data"):
        leveret.procedure(with_data, SIGNATURE)


def test_functions_of_cython(threads: leveret.Runtime, address: int) -> None:
    linalg = pytest.importorskip("scipy.linalg.cython_blas", reason="scipy is not installed")
    dasum = linalg.__pyx_capi__["dscal"]  # void (int *, double *, double *, int *)
    scale = leveret.procedure(dasum, "in i4[1], in f8[1], inout f8, in i4[1]", name="dscal")
    x = np.arange(4.0)
    one, count = np.ones(1, "i4"), np.full(1, 4, "i4")
    threads.submit(scale, count, np.array([2.0]), x, one).wait()
    np.testing.assert_array_equal(x, [0, 2, 4, 6])


def test_a_library_that_cffi_compiled(tmp_path: Path, threads: leveret.Runtime) -> None:
    pytest.importorskip("cffi", reason="cffi is not installed")
    pytest.importorskip("setuptools", reason="cffi compiles with setuptools")
    script = tmp_path / "build.py"
    script.write_text(
        "import cffi\nffi = cffi.FFI()\nffi.cdef('void twice(double, double *);')\n"
        "ffi.set_source('_leveret_cffi',"
        " 'static void twice(double x, double *y) { *y = 2 * x; }')\nffi.compile()\n"
    )
    subprocess.run([sys.executable, script.name], cwd=tmp_path, check=True, capture_output=True)
    sys.path.insert(0, str(tmp_path))
    try:
        compiled = __import__("_leveret_cffi")
    finally:
        sys.path.remove(str(tmp_path))
    with pytest.raises(TypeError, match=r"pass ffi\.addressof\(lib, 'name'\)"):
        leveret.procedure(compiled.lib.twice, "f8, result f8")
    made = leveret.procedure(compiled.ffi.addressof(compiled.lib, "twice"), "f8, result f8")
    assert threads.submit(made, 4.0).result() == 8.0


def test_a_callback_of_cffi(threads: leveret.Runtime) -> None:
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    seen: list[int] = []
    callback = ffi.callback("void (int)", seen.append)
    threads.submit(leveret.procedure(callback, "i4"), 7).wait()
    assert seen == [7]
    with pytest.raises(TypeError, match="cannot be a Python function"):
        leveret.interleave(ffi.callback("void (size_t, void *, void *)", print), 3)


def test_data_of_cffi_is_no_function() -> None:
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    number = ffi.new("int *")
    for given in (number, number + 0, ffi.cast("int", 5), ffi.typeof("int")):
        with pytest.raises(TypeError, match="expected the address of a C function"):
            leveret.procedure(given, "i4")
