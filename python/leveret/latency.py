"""Hiding memory latency: many items of a native loop at once, on the calling thread."""

from __future__ import annotations

import ctypes
import operator
import sys
from _ctypes import CFuncPtr, _Pointer
from pathlib import Path
from typing import Any

from . import _core
from .procedures import address_of, symbol_of


def interleave(function: object, count: int, argument: object = None, n: int = 0) -> None:
    """Calls function(i, strand, argument) for each i in range(count), n of them in flight.

    While an item waits for memory that it has asked for by lev_strand_fetch(strand, p), the other
    items in flight go on, all on the calling thread. It pays where addresses depend on data just
    read and the data is far larger than the caches; docs/how-to/hide-memory-latency.md says more.

    function: native code, `void item(size_t i, lev_strand *strand, void *argument)` in terms of
    <leveret/leveret.h>, which is in include_folder(). An address, a ctypes function, a cffi
    function pointer, a Numba cfunc, or a pair (library, symbol) for a function of a shared library,
    as leveret.load() takes it. count: items. argument: what every item gets: None (a null pointer),
    an address, a ctypes pointer, or anything contiguous with the buffer protocol (a NumPy array, a
    bytearray, a ctypes structure), which the items see in place; they must not write to what is
    read-only. n: items in flight, 1 to 64, or 0: found by trying 1, 16, 24 and 48 now and then, and
    kept for the next call with the same function on this thread.

    Items start in order and may end in any. With n=1, and while n=0 tries it, `strand` is null, and
    the functions of the header do nothing.

    Raises TypeError for a Python function (compile it), also one that ctypes or cffi has made
    native: the interpreter cannot be left in the middle; ValueError for a negative count or n and
    an address that is null or no number of 64 bits; InvalidArgument when n is above 64; OutOfMemory
    when no stacks can be mapped for n items (with n=0 one runs at a time instead); ValueError or
    BufferError, as the array does, for memory that is not contiguous; TaskFailed when an item in
    C++ throws: those in flight end first, and no other is started. What load() raises for a library
    or symbol that is not there.
    A function of another type cannot be detected. An item has 256 KiB of stack. An interrupt
    (Ctrl-C) arrives when the items have run.

    Thread safety: any thread; each call is its own. The GIL is released while items run.
    Cost: 1 to 3 us beside the items, 30 us for a pair (library, symbol), which is looked up; 12 to
    15 core cycles for each fetch with n > 1.
    """
    count, n = _integer("count", count), _integer("n", n)
    if not 0 <= count < 1 << 63:
        raise ValueError(f"count: expected a number of items, got {count}")
    if n < 0:
        raise ValueError(f"n: expected 1 to 64 items in flight, or 0 for automatic, got {n}")
    kept, address = _native(function)
    if address == 0:
        raise ValueError("function: the address is null")
    if isinstance(argument, (_Pointer, ctypes.c_void_p, ctypes.c_char_p)):
        place: object = ctypes.cast(argument, ctypes.c_void_p).value
    else:
        place = argument
    if isinstance(place, int) and not 0 <= place < 1 << 64:
        raise ValueError(f"argument: an address is a number of 64 bits, 0 or more, not {place}")
    _core.interleave(address, count, place, min(n, 1 << 31))
    del kept  # the library or function, in use until here


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None


def _native(function: object) -> tuple[object, int]:
    """What must live while items run, and the address."""
    if isinstance(function, tuple):
        if len(function) != 2:
            raise TypeError(f"function: expected (library, symbol), got {len(function)} values")
        library, symbol = function
        return symbol_of(library, symbol)
    if _is_python(function):
        raise TypeError(
            "function: an item cannot be a Python function: other items go on in its middle; "
            "compile it, for example with numba.cfunc"
        )
    return function, address_of(function)


def _is_python(function: object) -> bool:
    """Whether ctypes or cffi made the function of a Python one."""
    if type(function).__name__ == "__CDataOwnGC":
        return " calling " in repr(function)
    held: Any = (isinstance(function, CFuncPtr) and getattr(function, "_objects", None)) or {}
    return any(type(each).__name__ == "CThunkObject" for each in held.values())


def include_folder() -> Path:
    """The folder to give a C compiler (-I) for <leveret/leveret.h>; nothing need be linked.

    The header declares what an item of interleave() uses: lev_strand, lev_strand_fetch() and
    lev_strand_yield(). Raises FileNotFoundError when the package was installed without it.
    """
    # One that is installed to be edited is in two folders.
    folders = [Path(each) / "include" for each in sys.modules[str(__package__)].__path__]
    for folder in folders:
        if (folder / "leveret" / "leveret.h").is_file():
            return folder
    raise FileNotFoundError(f"there is no leveret/leveret.h in {folders[0]}")
