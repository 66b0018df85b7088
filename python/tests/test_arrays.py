"""Arrays as arguments: without copying, of every layout that is allowed, and what is refused."""

from __future__ import annotations

import array
import ctypes
import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import Gate

import leveret

SUM = leveret.builtin("sum")
SCALE = leveret.builtin("scale")
COPY = leveret.builtin("copy")


def test_strided_blocks(runtime: leveret.Runtime, library: Path) -> None:
    block_sum = leveret.load(library, "block_sum", "in f8, rows(0), count(0), stride(0), result f8")
    fill = leveret.load(library, "fill_block", "f8, out f8, rows(1), count(1), stride(1)")
    matrix = np.arange(20 * 30, dtype=np.float64).reshape(20, 30)
    block = matrix[3:9, 10:17]
    assert runtime.submit(block_sum, block).result() == block.sum()
    assert runtime.submit(block_sum, matrix).result() == matrix.sum()
    assert runtime.submit(block_sum, matrix[::2]).result() == matrix[::2].sum()
    before = matrix.copy()
    runtime.submit(fill, -1.0, block).wait()
    assert (block == -1).all()
    before[3:9, 10:17] = -1
    np.testing.assert_array_equal(matrix, before)


def test_arrays_of_ctypes_whose_buffers_say_no_strides(runtime: leveret.Runtime) -> None:
    numbers = (ctypes.c_double * 4)(1, 2, 3, 4)
    assert runtime.submit(SUM, numbers).result() == 10
    runtime.submit(SCALE, 1.0, leveret.sliced(numbers)).wait()
    row = ctypes.c_double * 3
    assert runtime.submit(SUM, (row * 2)(row(1, 2, 3), row(4, 5, 6))).result() == 21
    runtime.submit(SCALE, 2.0, numbers).wait()
    assert list(numbers) == [2, 4, 6, 8]
    pair = ctypes.c_double * 2
    rows = (pair * 2)(pair(1, 2), pair(3, 4))
    runtime.submit_bulk(SCALE, 2.0, rows).wait()
    assert [list(each) for each in rows] == [[2, 4], [6, 8]]
    with pytest.raises(TypeError, match="holds f4"):
        runtime.submit(SUM, (ctypes.c_float * 4)())
    assert leveret._core.is_array_shared(numbers) is False


def test_outputs_left_as_they_are_show_nothing_of_other_tasks(machine: str, library: Path) -> None:
    assign = leveret.load(library, "assign_or_not", "i4, result f8, out f8, count(2)")
    with leveret.Runtime(machine, workers=1, staging="copy") as runtime:
        for _ in range(20):
            filled, left = np.ones(500), np.ones(500)
            assert runtime.submit(assign, 1, filled).result() == 7.5
            assert (filled == 7.5).all()
            assert runtime.submit(assign, 0, left).result() == 0
            assert (left == 0).all()


def test_other_layouts(runtime: leveret.Runtime) -> None:
    cube = np.arange(2 * 3 * 4, dtype=np.float64).reshape(2, 3, 4)
    for view in (cube, cube[:1], cube[:, :1, :1][:, 0, 0][:1], cube[1], cube[0, 1], cube[0, 1, 2:]):
        assert runtime.submit(SUM, view).result() == view.sum()
    assert runtime.submit(SUM, np.array(7.0)).result() == 7
    assert runtime.submit(SUM, np.zeros(0)).result() == 0
    assert runtime.submit(SUM, np.zeros((0, 5))).result() == 0
    assert runtime.submit(SUM, np.zeros((5, 0))).result() == 0


def test_other_things_with_memory(runtime: leveret.Runtime) -> None:
    source, target = bytes(range(16)), bytearray(16)
    runtime.submit(COPY, source, target).wait()
    assert target == source
    runtime.submit(COPY, memoryview(source)[4:8], memoryview(target)[:4]).wait()
    assert target[:4] == source[4:8]
    assert runtime.submit(SUM, array.array("d", [1, 2, 3])).result() == 6


def test_builtins_of_two_arrays_want_one_shape(runtime: leveret.Runtime) -> None:
    x, y = np.ones((4, 8)), np.zeros(32)
    with pytest.raises(leveret.TaskFailed, match=r"must have one shape.* 4 by 8 and 1 by 32"):
        runtime.submit(leveret.builtin("axpy"), 2.0, x, y).wait()
    with pytest.raises(leveret.TaskFailed, match="16 and 1 by 15 elements"):
        runtime.submit(COPY, bytes(16), bytearray(15)).wait()
    assert not y.any()


def test_an_array_is_not_copied(threads: leveret.Runtime, gate: Gate) -> None:
    ticket = gate.submit(threads)
    assert not ticket.done()
    gate.open()  # the task sees what is written now
    ticket.wait(30)


def bad_arrays() -> list[tuple[str, object, type[Exception], str]]:
    big_endian = np.zeros(4, ">f8")
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    return [
        ("list", [1.0, 2.0], TypeError, "numpy.asarray"),
        ("None", None, TypeError, "expected an array"),
        ("number", 3.0, TypeError, "expected an array"),
        ("other dtype", np.zeros(4, np.float32), TypeError, "f4, the procedure takes f8"),
        ("same size", np.zeros(4, np.int64), TypeError, "astype"),
        ("bool", np.zeros(4, bool), TypeError, "bool"),
        ("objects", np.array([1, "a"], dtype=object), TypeError, "Python objects"),
        (
            "complex",
            np.zeros(4, complex),
            TypeError,
            "complex128, the procedure takes f8; take a.r",
        ),
        ("strings", np.zeros(4, "U2"), TypeError, "the array holds strings"),
        ("byte strings", np.zeros(4, "S8"), TypeError, "the array holds byte strings"),
        ("long doubles", np.zeros(4, "g"), TypeError, "the array holds long doubles"),
        ("masked", np.ma.masked_less(np.zeros(4), 1), TypeError, "a.filled(value)"),
        ("bytearray", bytearray(32), TypeError, "numpy.frombuffer(a, 'f8')"),
        ("array.array", array.array("f", [1]), TypeError, "numpy.asarray(a, 'f8')"),
        ("record", np.zeros(4, [("a", "f8")]), TypeError, "view"),
        ("dates", np.zeros(4, "M8[s]"), TypeError, "astype"),
        ("big-endian", big_endian, ValueError, "big-endian"),
        ("every other", np.zeros(8)[::2], ValueError, "ascontiguousarray"),
        ("backwards", np.zeros(8)[::-1], ValueError, "ascontiguousarray"),
        ("columns", np.zeros((4, 4))[:, ::2], ValueError, "ascontiguousarray"),
        ("transposed", np.zeros((4, 5)).T, ValueError, "ascontiguousarray"),
        ("rows backwards", np.zeros((4, 5))[::-1], ValueError, "ascontiguousarray"),
        ("repeated rows", np.broadcast_to(np.zeros(4), (3, 4)), BufferError, "read-only"),
        ("read-only", read_only, BufferError, "read-only"),
        ("bytes", bytes(8), BufferError, "read-only"),
    ]


@pytest.mark.parametrize(
    ("value", "error", "message"), [b[1:] for b in bad_arrays()], ids=[b[0] for b in bad_arrays()]
)
def test_bad_arrays(
    threads: leveret.Runtime, value: object, error: type[Exception], message: str
) -> None:
    before = threads.counters()["submitted"]
    with pytest.raises(error, match=r"argument 1 \(inout f8\): ") as caught:
        threads.submit(SCALE, 2.0, value)
    assert message in str(caught.value)
    assert threads.counters()["submitted"] == before
    threads.submit(SCALE, 2.0, np.ones(4)).wait()  # still usable


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("2", TypeError),
        (2j, TypeError),
        (None, TypeError),
        (np.zeros(3), TypeError),
        ([1.0], TypeError),
        (10**400, OverflowError),
        (10**5000, OverflowError),
    ],
    ids=["text", "complex", "none", "array", "list", "big", "bigger"],
)
def test_bad_values(threads: leveret.Runtime, value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        threads.submit(SCALE, value, np.ones(4))


@pytest.mark.parametrize("value", [-1, 2**64, 10**30, 1.5, "3", None], ids=str)
def test_bad_integers(threads: leveret.Runtime, value: object) -> None:
    with pytest.raises((TypeError, OverflowError), match=r"argument 0 \(u8\): "):
        threads.submit(leveret.builtin("spin"), value)


def test_numpy_numbers_are_numbers(threads: leveret.Runtime) -> None:
    x = np.ones(3)
    threads.submit(SCALE, np.float32(2), x).wait()
    threads.submit(SCALE, np.int8(3), x).wait()
    threads.submit(SCALE, True, x).wait()
    np.testing.assert_array_equal(x, 6)
    threads.submit(leveret.builtin("spin"), np.uint64(1)).wait()


@pytest.mark.parametrize("given", [(), (1.0,), (1.0, np.ones(2), 3)])
def test_wrong_number_of_arguments(threads: leveret.Runtime, given: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=f"takes 2 arguments .*{len(given)} given"):
        threads.submit(SCALE, *given)


def test_outputs_that_overlap_are_refused(threads: leveret.Runtime) -> None:
    memory = bytearray(8)
    view = memoryview(memory)
    with pytest.raises(leveret.InvalidArgument) as caught:
        threads.submit(COPY, view[0:6], view[2:8])
    assert caught.value.status == leveret.Status.OVERLAP
    assert caught.value.argument in (0, 1)


def test_more_than_the_local_store_holds(machine: str) -> None:
    with leveret.Runtime(machine, workers=1, staging="copy", local_store_bytes=65536) as runtime:
        with pytest.raises(leveret.InvalidArgument) as caught:
            runtime.submit(SUM, np.zeros(1 << 20))
        assert caught.value.status == leveret.Status.TOO_BIG


def test_buffers_are_held_while_the_task_runs(threads: leveret.Runtime, library: Path) -> None:
    wait = leveret.load(library, "wait_for_flag", "in i4 -> int")
    memory = bytearray(4)
    ticket = threads.submit(wait, np.frombuffer(memory, np.int32))
    with pytest.raises(BufferError):
        memory.extend(b"more")
    memory[0] = 1
    ticket.wait(30)
    gc.collect()
    memory.extend(b"more")


def test_buffers_of_a_dropped_ticket_are_released(threads: leveret.Runtime, gate: Gate) -> None:
    memory = bytearray(64)
    held = gate.submit(threads)
    threads.submit(COPY, bytes(64), memory, after=held)
    with pytest.raises(BufferError):
        memory.append(0)
    gate.open()
    threads.wait_for_completion(30)
    memory.append(0)


def test_arrays_live_until_the_task_is_complete(threads: leveret.Runtime, gate: Gate) -> None:
    class Watched(np.ndarray):
        pass

    x = np.ones(1000).view(Watched)
    alive = weakref.ref(x)
    held = gate.submit(threads)
    ticket = threads.submit(SUM, x, after=held)
    del x
    gc.collect()
    assert alive() is not None
    gate.open()
    assert ticket.result(30) == 1000
    gc.collect()
    assert alive() is None


def test_no_references_are_lost_or_leaked(threads: leveret.Runtime) -> None:
    x = np.ones(16)
    before = sys.getrefcount(x)
    for _ in range(50):
        threads.submit(SUM, x).result()
        threads.submit_bulk(SUM, x.reshape(4, 4)).result()
        threads.submit(SUM, x)
        with pytest.raises(TypeError):
            threads.submit(leveret.builtin("axpy"), 1.0, x, "no array")
    threads.wait_for_completion()
    assert sys.getrefcount(x) == before
