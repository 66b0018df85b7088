"""Native functions as procedures: from a shared library, an address, ctypes, cffi or Numba."""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InvalidArgument
from .paths import path_bytes

if TYPE_CHECKING:
    from _ctypes import CFuncPtr
    from pathlib import Path

    from .signature import Parsed, Signature

_lock = threading.RLock()
# In a child the tables below are whole, and no thread that is not there has the lock.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
_defined: dict[tuple[int, str], _core.Procedure] = {}  # by address and signature
_named: dict[tuple[int, str, str], _core.Procedure] = {}  # and those with other names, by these too
_kept: list[object] = []  # functions and libraries: procedures live as long as the process
_origins: dict[int, tuple[str, str]] = {}  # library and symbol of those that load() made, by id
_files: dict[str, tuple[int, int]] = {}  # device and inode of each library, when it was opened


def _cffi_address(function: Any) -> int | None:
    """None: it is no pointer of cffi's, or one to something else than a function.

    Its text does not tell: that of a callback has the address of the Python function.
    """
    if type(function).__module__ != "_cffi_backend":
        return None
    ffi = sys.modules["_cffi_backend"].FFI()
    try:
        kind = ffi.typeof(function)
    except TypeError:  # one of cffi's own classes
        return None
    is_function = kind.kind == "function" or kind.cname == "void *"
    return int(ffi.cast("uintptr_t", function)) if is_function else None


def _is_capsule(function: object) -> bool:
    return type(function).__name__ == "PyCapsule"


def _capsule_name(capsule: object) -> str | None:
    import ctypes

    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    name: bytes | None = name_of(capsule)
    return None if name is None else name.decode(errors="replace")


def _capsule_address(capsule: object) -> int:
    """What a capsule holds: Cython's __pyx_capi__, f2py's _cpointer, SciPy's callables."""
    import ctypes

    name = _capsule_name(capsule)
    if name is not None and "PyObject" in name:
        raise TypeError(f"the function takes or returns Python objects: {name}")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address: int = pointer(capsule, None if name is None else name.encode())
    return address


def _inner(function: Any) -> Any:
    """The native function inside SciPy's LowLevelCallable or what f2py makes of Fortran's."""
    if type(function).__name__ == "LowLevelCallable":
        if function.user_data is not None:
            raise TypeError(
                "a LowLevelCallable with user_data: pass its function, and the data's address as "
                "a value of code u8"
            )
        return function.function
    pointer = getattr(function, "_cpointer", None)
    return pointer if _is_capsule(pointer) else function


def is_of_ctypes(function: object) -> bool:
    ctypes = sys.modules.get("_ctypes")  # without that module there are no functions of it
    return ctypes is not None and isinstance(function, ctypes.CFuncPtr)


def _pointer_of(function: Any) -> int:
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value or 0


def address_of(function: object) -> int:
    """The address of a native function.

    Takes an int, a ctypes function (of a library or made by CFUNCTYPE), a cffi function pointer,
    anything with an integer `address`, as a Numba cfunc has, a PyCapsule of a function (Cython's
    module.__pyx_capi__["f"], which must be nogil), a SciPy LowLevelCallable, or a Fortran function
    of f2py. Raises TypeError for Python functions: they cannot run without the interpreter; compile
    them, with numba.cfunc say.
    """
    function = _inner(function)
    if _is_capsule(function):
        return _capsule_address(function)
    if isinstance(function, bool):
        raise TypeError("expected a native function, got a bool")
    if isinstance(function, int):
        if not 0 <= function < 1 << 64:
            raise ValueError(f"an address is a number of 64 bits, 0 or more, not {function}")
        return function
    if is_of_ctypes(function):
        return _pointer_of(function)
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return address
    address = _cffi_address(function)
    if address is not None:
        return address
    hint = ""
    if type(getattr(function, "__self__", None)).__module__ == "_cffi_backend":
        hint = "; of a library that cffi compiled, pass ffi.addressof(lib, 'name')"
    elif callable(function):
        hint = "; a Python function cannot be a task: compile it, for example with numba.cfunc"
    raise TypeError(
        "expected the address of a C function, a ctypes function, a cffi function pointer, a "
        f"Numba cfunc or a PyCapsule, got {type(function).__name__}{hint}"
    )


def parse(signature: Signature) -> Parsed:
    """See leveret.signature, which is loaded here: most programs that import leveret do without."""
    from . import signature as language

    return language.parse(signature)


_PROTOTYPE = r"[^()]*\(([^()]*)\)"


def _check_prototype(function: object, parsed: Parsed) -> None:
    """What Cython and SciPy write on a capsule, "double (double, void *)", must fit in number."""
    function = _inner(function)
    written = _capsule_name(function) if _is_capsule(function) else None
    prototype = re.fullmatch(_PROTOTYPE, (written or "").strip())
    if prototype is None:
        return
    names = prototype[1].strip()
    takes = 0 if names in ("", "void") else names.count(",") + 1
    given = len(parsed.parameters) + sum(p.what == "range" for p in parsed.parameters)
    if takes != given:
        raise ValueError(
            f"signature: it has {given} parameters (a range is two), the function takes {takes}: "
            f"{written}"
        )


def procedure(function: object, signature: Signature, name: str | None = None) -> _core.Procedure:
    """Makes a procedure of a native function.

    function: see address_of(). signature: what it takes, such as "f8, in f4, inout f4, count(1)";
    see leveret.signature. name: at most 63 bytes, unique in the process; by default made from the
    function's own name or address. The function is kept alive for ever.

    The same function with the same signature gives the same procedure. Raises ValueError for a
    signature that is wrong, InvalidArgument when the name is taken, Unavailable on a CPU whose
    calling convention is not known here. A signature that does not fit the function cannot be
    detected (but for the number of parameters of a Cython or SciPy capsule): the task then reads
    and writes whatever it finds. The function must not be variadic, nor take structs by value. What
    it raises in Python, as a Numba cfunc may, is printed and lost: return a code, "-> int", to
    fail. Thread safety: any thread.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string or None, not {name!r}")
    address = address_of(function)
    parsed = parse(signature)
    _check_prototype(function, parsed)
    key = (address, str(parsed))
    with _lock:
        known = _defined.get(key)
        if known is not None and name in (None, known.name):
            return known
        if name is not None and (address, key[1], name) in _named:
            return _named[address, key[1], name]
        if name is None:
            own = getattr(function, "__name__", None)
            name = f"{own if isinstance(own, str) else 'function'}@{address:x}"[:63]
            name = _free_name(name, str(parsed))
        made = _core.define(
            name,
            address,
            [
                (p.what, p.code, p.of, least.what, least.n)
                for p, least in zip(parsed.parameters, parsed.lengths)
            ],
            parsed.returns_code,
            str(parsed),
        )
        _kept.append(function)
        _defined.setdefault(key, made)
        _named[address, key[1], made.name] = made
        return made


def _free_name(name: str, signature: str) -> str:
    """A second signature for the same function gets a name of its own."""
    taken = {known.name for known in _defined.values()}
    number = 2
    candidate = name
    while candidate in taken:
        suffix = f"#{number}"
        candidate = name[: 63 - len(suffix)] + suffix
        number += 1
    return candidate


def load(
    path: str | os.PathLike[str], symbol: str, signature: Signature, name: str | None = None
) -> _core.Procedure:
    """Makes a procedure of a function in a shared library.

    path: the library, absolute or relative to the current folder; it is not searched for elsewhere.
    symbol: the function. signature, name: as for procedure(); the name is the symbol by default.
    Raises FileNotFoundError, OSError (not a library for this machine) or InvalidArgument (no such
    symbol, or the file has been replaced since this process loaded it: the loader would give the
    old one), each naming the path. Loading runs the library's constructors: load what you trust.
    """
    return _load(path, symbol, signature, name, may_be_old=False)


def load_for_nodes(
    path: str | os.PathLike[str], symbol: str, signature: Signature, name: str | None = None
) -> _core.Procedure:
    """load() of a procedure that nodes of a cluster call: they get the file as it is now."""
    return _load(path, symbol, signature, name, may_be_old=True)


def _load(
    path: str | os.PathLike[str],
    symbol: str,
    signature: Signature,
    name: str | None,
    may_be_old: bool,
) -> _core.Procedure:
    function, address = symbol_of(path, symbol, may_be_old)
    written = str(parse(signature))
    made = _defined.get((address, written))
    if name is None and may_be_old and _is_replaced(_full(path)):
        name = _free_name(symbol, written)  # it is another function on the nodes
    if made is None or name is not None:
        made = procedure(function, signature, name or symbol)
    _origins[made.id] = (str(_full(path)), symbol)
    return made


def origin_of(made: _core.Procedure) -> tuple[str, str] | None:
    """The library and the symbol of a procedure that load() made; None: it is of another kind."""
    return _origins.get(made.id)


def symbol_of(
    path: str | os.PathLike[str], symbol: str, may_be_old: bool = False
) -> tuple[CFuncPtr, int]:
    """A function of a shared library, which it keeps open, and its address; raises as load().

    may_be_old: it may be that of the file which the path named when it was first opened.
    """
    import ctypes

    if not isinstance(symbol, str):
        raise TypeError(f"symbol must be the name of a function, not {symbol!r}")
    full = _full(path)
    if not full.exists():
        shown = str(full) if str(full).isprintable() else repr(full)
        raise FileNotFoundError(f"there is no library {shown}")
    try:
        library = ctypes.CDLL(str(full))
    except OSError as error:
        raise OSError(f"{full} cannot be loaded: {error}") from error
    if _is_replaced(full) and not may_be_old:
        raise InvalidArgument(
            f"{full} was replaced after this process had loaded it, and the loader keeps the old "
            "one: start the program again, or load the new one from another path"
        )
    try:
        function: CFuncPtr = getattr(library, symbol)
    except AttributeError:
        raise InvalidArgument(f"{full} has no symbol '{symbol}'; is it extern \"C\"?") from None
    return function, _pointer_of(function)


def _full(path: str | bytes | os.PathLike[str]) -> Path:
    from pathlib import Path

    return Path(os.fsdecode(path_bytes("path", path, "the path of a library"))).absolute()


def _is_replaced(full: Path) -> bool:
    """Whether the path names another file than when it was first opened here."""
    about = full.stat()
    identity = about.st_dev, about.st_ino
    return _files.setdefault(str(full), identity) != identity


def builtin(name: str) -> _core.Procedure:
    """A procedure that comes with the package; ValueError lists them for a name that is unknown.

    null: nothing. spin: u8, nanoseconds of work. copy: in u1, out u1. scale: f8, inout f8.
    axpy: f8, in f8, inout f8 (y += a x). sum: in f8, result f8. The arrays of copy and of axpy have
    one shape, or the task fails.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, such as 'axpy', not {name!r}")
    return _core.builtin(name)
