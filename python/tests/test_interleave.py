"""Items of native code in flight on the calling thread."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import leveret

ITEMS = Path(__file__).with_name("items.c")


def compiled(folder: Path, source: Path, compilers: tuple[str, ...]) -> Path:
    found = [name for name in compilers if shutil.which(name)]
    if not found:
        pytest.skip(f"there is no compiler to make items with: {', '.join(compilers)}")
    path = folder / f"{source.stem}.so"
    command = [found[0], "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
    command += ["-I", str(leveret.include_folder()), "-o", str(path), str(source)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(scope="session")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """items.c as a shared library."""
    return compiled(tmp_path_factory.mktemp("items"), ITEMS, ("cc", "gcc", "clang"))


class Lists(ctypes.Structure):
    _fields_ = (
        ("behind", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
    )


@pytest.mark.parametrize("n", [0, 1, 2, 16, 64])
def test_lists_are_walked(items: Path, n: int) -> None:
    lengths = np.random.default_rng(7).integers(0, 50, 500)
    places = np.random.default_rng(8).permutation(int(lengths.sum()))
    behind = np.full(len(places), -1)
    first = np.full(len(lengths), -1)
    start = 0
    for each, length in enumerate(lengths):
        own = places[start : start + length]
        start += length
        if length:
            first[each] = own[0]
            behind[own[:-1]] = own[1:]
    found = np.full_like(lengths, -1)
    argument = Lists(behind.ctypes.data, first.ctypes.data, found.ctypes.data)
    leveret.interleave((items, "list_length"), len(lengths), argument, n)
    np.testing.assert_array_equal(found, lengths)


@pytest.mark.parametrize(("n", "each"), [(1, 1), (2, 16), (64, 16)])
def test_every_item_is_called_once(items: Path, n: int, each: int) -> None:
    calls = np.zeros(1000, np.uint8)
    leveret.interleave((items, "count_call"), len(calls), calls, n)
    assert (calls == each).all()  # 16: it had a strand


class Turns(ctypes.Structure):
    _fields_ = (("count", ctypes.c_size_t), ("items", ctypes.c_uint8 * 64))


def order(items: Path, n: int) -> list[int]:
    seen = Turns()
    leveret.interleave((items, "two_turns"), 4, ctypes.pointer(seen), n)
    return list(seen.items[: seen.count])


def test_items_in_flight_take_turns(items: Path) -> None:
    assert order(items, 1) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert order(items, 4) == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("how", ["ctypes", "address", "pair", "prototype", "cffi"])
def test_ways_to_name_an_item(items: Path, how: str) -> None:
    native = ctypes.CDLL(str(items)).count_call
    address = ctypes.cast(native, ctypes.c_void_p).value
    assert address is not None
    function: object = native
    if how == "address":
        function = address
    elif how == "pair":
        function = (str(items), "count_call")
    elif how == "prototype":
        kind = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
        function = kind(address)
    elif how == "cffi":
        cffi = pytest.importorskip("cffi", reason="cffi is not installed")
        function = cffi.FFI().cast("void (*)(size_t, void *, void *)", address)
    calls = bytearray(10)
    leveret.interleave(function, 10, calls, n=4)
    assert calls == bytes([16] * 10)


def test_a_numba_cfunc() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("void(uintp, voidptr, CPointer(float64))")
    def square(i, strand, places):  # type: ignore[no-untyped-def]
        places[i] = float(i) * float(i)

    squares = np.zeros(100)
    leveret.interleave(square, 100, squares)
    np.testing.assert_array_equal(squares, np.arange(100.0) ** 2)


def test_the_interpreter_is_free_meanwhile(items: Path) -> None:
    flag = np.zeros(1, np.uint8)
    first = threading.Thread(target=flag.fill, args=(1,))
    call = threading.Thread(
        target=leveret.interleave, args=((items, "wait_for_flag"), 2, flag, 2), daemon=True
    )
    call.start()
    first.start()
    call.join(30)
    assert not call.is_alive()


def can_grow(memory: bytearray) -> bool:
    try:
        memory.append(0)
    except BufferError:
        return False
    return True


def test_memory_stays_where_it_is_while_items_run(items: Path) -> None:
    flag = bytearray(1)
    call = threading.Thread(
        target=leveret.interleave, args=((items, "wait_for_flag"), 2, flag, 2), daemon=True
    )
    call.start()
    limit = time.monotonic() + 30
    while can_grow(flag) and time.monotonic() < limit:
        pass  # the call did not begin yet
    was_held = not can_grow(flag)
    flag[0] = 1
    call.join(30)
    assert was_held and not call.is_alive()
    assert can_grow(flag)


def test_no_items(items: Path) -> None:
    leveret.interleave((items, "count_call"), 0)


def test_what_is_no_item(items: Path) -> None:
    seen: list[int] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
    for function in (seen.append, print, None, "count_call", kind(seen.append)):
        with pytest.raises(TypeError):
            leveret.interleave(function, 1)
    with pytest.raises(TypeError, match="3 values"):
        leveret.interleave((items, "count_call", 1), 1)
    with pytest.raises(ValueError, match="null"):
        leveret.interleave(0, 1)
    with pytest.raises(leveret.InvalidArgument, match="no symbol 'nothing'"):
        leveret.interleave((items, "nothing"), 1)
    with pytest.raises(FileNotFoundError, match=r"missing\.so"):
        leveret.interleave((items.with_name("missing.so"), "count_call"), 1)
    assert not seen


def test_numbers_that_do_not_fit(items: Path) -> None:
    item = (items, "count_call")
    calls = np.zeros(4, np.uint8)
    for n in (65, 1 << 32, 1 << 70):
        with pytest.raises(leveret.InvalidArgument, match="64") as caught:
            leveret.interleave(item, 4, calls, n)
        assert caught.value.status == leveret.Status.TOO_BIG
    for count, n in ((-1, 0), (1 << 63, 0), (4, -1)):
        with pytest.raises(ValueError, match="expected"):
            leveret.interleave(item, count, calls, n)
    with pytest.raises(TypeError, match=r"count must be an integer, not 4\.0"):
        leveret.interleave(item, 4.0, calls)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="n must be an integer, not '4'"):
        leveret.interleave(item, 4, calls, "4")  # type: ignore[arg-type]
    assert not calls.any()


def test_arguments_that_do_not_fit(items: Path) -> None:
    item = (items, "count_call")
    with pytest.raises(TypeError, match="buffer protocol"):
        leveret.interleave(item, 1, "text")
    with pytest.raises(ValueError, match="contiguous"):
        leveret.interleave(item, 1, np.zeros(8, np.uint8)[::2])
    with pytest.raises(BufferError, match="contiguous"):
        leveret.interleave(item, 1, memoryview(bytearray(8))[::2])
    for address in (-8, 1 << 64):
        with pytest.raises(ValueError, match="argument: an address is a number of 64 bits"):
            leveret.interleave(item, 1, address)


def test_what_an_item_throws(tmp_path: Path) -> None:
    source = tmp_path / "throws.cpp"
    source.write_text(
        "#include <leveret/leveret.h>\n"
        "#include <stdexcept>\n"
        'extern "C" void third(size_t i, lev_strand* strand, void* argument) {\n'
        "  lev_strand_yield(strand);\n"
        '  if (i == 2) throw std::runtime_error("the third");\n'
        "  ++static_cast<uint8_t*>(argument)[i];\n"
        "}\n"
    )
    library = compiled(tmp_path, source, ("c++", "g++", "clang++"))
    calls = np.zeros(100, np.uint8)
    with pytest.raises(leveret.TaskFailed, match="the third"):
        leveret.interleave((library, "third"), len(calls), calls, 4)
    assert calls[:2].all() and not calls[20:].any()
