"""Types, libraries and functions of ctypes that a program has, in its calls."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import LIMIT, needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes

PROGRAM = """
from ctypes import *
import leveret

FIELDS = [("a", c_int), ("b", c_double)]
class Base(Structure):
    _fields_ = FIELDS
class Derived(Base):
    _pack_ = 1
    _fields_ = [("c", c_char), ("d", c_int * 4)]
    def total(self):
        return self.a + self.b + sum(self.d)
class Parts(Union):
    _fields_ = [("i", c_uint32), ("f", c_float)]
class Anonymous(Structure):
    _anonymous_ = ("parts",)
    _fields_ = [("parts", Parts), ("low", c_uint, 3), ("high", c_uint, 5)]
class Big(BigEndianStructure):
    _fields_ = [("x", c_int), ("y", c_short * 3)]
class Node(Structure):
    pass
Node._fields_ = [("value", c_int), ("next", POINTER(Node))]
class Handle(c_void_p):
    pass
class Three(Array):
    _type_, _length_ = c_int, 3
Compare = CFUNCTYPE(c_int, POINTER(c_int), POINTER(c_int))

class Failed(Exception):
    pass
def check(result, function, arguments):
    if result < 0:
        raise Failed(get_errno())
    return result
libc = CDLL(None, use_errno=True)
libc.qsort.argtypes, libc.qsort.restype = [c_void_p, c_size_t, c_size_t, Compare], None
libc.close.errcheck = check
libm = CDLL("libm.so.6")
cos = libm.cos
cos.argtypes, cos.restype = [c_double], c_double

def structures():
    first = Node(1)
    second = Node(2, pointer(first))
    mixed = Anonymous(high=9)
    mixed.f = 1.0
    return (
        Derived(1, 2.0, b"x", (1, 2, 3, 4)).total(), sizeof(Derived), Derived.c.offset,
        second.next.contents.value, mixed.i, mixed.high, bytes(Big(1, (2, 3, 4))),
        Handle(5).value, list(Three(1, 2, 3)), sizeof(Big * 3),
    )
def functions():
    numbers = (c_int * 5)(5, 3, 1, 2, 4)
    libc.qsort(numbers, 5, sizeof(c_int), Compare(lambda a, b: a[0] - b[0]))
    try:
        libc.close(-1)
    except Failed as error:
        return list(numbers), cos(0.0), libm.cos is cos, error.args
def results():
    return [Derived(1, 2.0), (Derived * 2)(), Big(3), Three(1, 2, 3), (c_int * 3)(4)]
def added(value):
    value.a += 1
    return value
def same(one, other):
    return type(one) is type(other) and bytes(one) == bytes(other)

with leveret.ProcessExecutor(1) as executor:
    for _ in range(2):
        for function in (structures, functions):
            assert executor.submit(function).result() == function()
        assert all(map(same, executor.submit(results).result(), results()))
    assert [each.a for each in executor.map(added, [Derived(1), Derived(2)])] == [2, 3]
    print(executor.submit(lambda: (Derived, POINTER(Derived), Compare, libc._name)).result()
        == (Derived, POINTER(Derived), Compare, None))
"""


def test_what_the_main_module_has_of_ctypes() -> None:
    """As in a pool of forked processes, where it is there already."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_arrays_and_pointers_as_arguments_and_results(pool: ProcessExecutor) -> None:
    def summed(numbers: Any) -> Any:
        return sum(numbers), type(numbers), ctypes.POINTER(type(numbers))

    numbers = (ctypes.c_int * 3)(1, 2, 3)
    kind = type(numbers)
    assert pool.submit(summed, numbers).result() == (6, kind, ctypes.POINTER(kind))


def test_a_library_by_a_path_that_is_relative(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library.parent)
    opened = ctypes.CDLL(f"./{library.name}")
    with ProcessExecutor(1, cwd=tmp_path) as executor:
        assert Path(executor.submit(lambda: opened._name).result()) == library
