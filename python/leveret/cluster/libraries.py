"""Libraries by their content: what is sent to a node is named by a hash, and loaded once.

1. The driver remembers of which file each procedure is, and reads it when a cluster first uses it:
   what becomes of the file later, when it is built anew say, is nothing to this procedure.
2. A node that lacks the content is sent it, and writes it to a folder of this process.
3. A process that has the file already, as the driver's own, uses that one, while it is the same.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core, procedures
from ..errors import InvalidArgument, Status
from .names import ProcedureName


class Place(NamedTuple):
    """A file, and what it was when it had the content: a linker writes another one in its place."""

    path: str
    stamp: tuple[int, ...]


_lock = threading.Lock()
_contents: dict[str, bytes] = {}  # of libraries that were read here, by hash
_names: dict[int, ProcedureName] = {}  # by a procedure's id
_places: dict[str, Place] = {}  # where a content lies, by hash
_made: dict[ProcedureName, _core.Procedure] = {}
_folders: list[str] = []
os.register_at_fork(after_in_child=_folders.clear)  # they are the parent's to remove


def content_of(key: str) -> bytes | None:
    """The library with this hash, if this process has read it."""
    return _contents.get(key)


def _stamp(path: str) -> tuple[int, ...]:
    found = os.stat(path)  # noqa: PTH116
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: str) -> str:
    stamp = _stamp(path)
    data = Path(path).read_bytes()
    key = hashlib.sha256(data).hexdigest()
    with _lock:
        _contents[key] = data
        if not has(key):
            _places[key] = Place(path, stamp)
    return key


def name_of(procedure: Any) -> ProcedureName:
    """How nodes know a procedure. Raises TypeError and InvalidArgument for what they cannot have.

    Cost: the first time, reads the library.
    """
    if not isinstance(procedure, _core.Procedure):
        is_function = callable(procedure)
        next_step = "; Python functions are run by Dask's Client.submit()" if is_function else ""
        raise TypeError(
            "procedure must be a Procedure, made with Cluster.load(), leveret.load() or "
            f"leveret.builtin(), not {type(procedure).__name__}{next_step}"
        )
    if procedure.id in _names:
        return _names[procedure.id]
    origin = procedures.origin_of(procedure)
    if origin is not None:
        path, symbol = origin
        try:
            key = _read(path)
        except OSError as error:
            raise InvalidArgument(
                f"procedure '{procedure.name}' is of {path}, which cannot be read any more to send "
                f"it to the nodes ({error}); use Cluster.load(), which reads it at once",
                Status.BAD_PROCEDURE,
            ) from error
        name = ProcedureName(procedure.name, procedure.signature, key, symbol)
        return _names.setdefault(procedure.id, name)
    with contextlib.suppress(ValueError):
        builtin = procedure.name.removeprefix("leveret.")
        if _core.builtin(builtin).id == procedure.id:
            return ProcedureName(builtin, procedure.signature)
    raise InvalidArgument(
        f"procedure '{procedure.name}' is known by its address, which means nothing on another "
        "computer; put the function into a shared library, and use Cluster.load()",
        Status.BAD_PROCEDURE,
    )


def keep(key: str, data: bytes, folder: str | None) -> None:
    """Writes a library that was sent here. Raises ValueError when its content is not its hash's."""
    if hashlib.sha256(data).hexdigest() != key:
        raise ValueError(f"a library arrived with another content than its hash {key[:12]} says")
    with _lock:
        if has(key):
            return
        if not _folders or not os.path.isdir(_folders[-1]):  # noqa: PTH112
            _folders.append(tempfile.mkdtemp(prefix="leveret-", dir=folder))
        path = f"{_folders[-1]}/{key[:16]}.so"
        Path(path).write_bytes(data)
        _places[key] = Place(path, _stamp(path))


def has(key: str) -> bool:
    """Whether its file is here, and as it was."""
    place = _places.get(key)
    if place is None:
        return False
    try:
        return _stamp(place.path) == place.stamp
    except OSError:
        return False


def procedure_of(name: ProcedureName) -> _core.Procedure:
    """The procedure in this process; its library is here. Raises what load() raises."""
    if not name.library:
        return _core.builtin(name.name)
    with _lock:
        made = _made.get(name)
    if made is None:
        path = _places[name.library].path
        made = _load(path, name, name.name)
        with _lock:
            made = _made.setdefault(name, made)
    return made


def _load(path: str, name: ProcedureName, called: str) -> _core.Procedure:
    try:
        return procedures.load(path, name.symbol, name.signature, called)
    except InvalidArgument as error:
        if error.status != Status.EXISTS:
            raise
        # Another version of the library has it: this one's name tells them apart.
        return _load(path, name, f"{called[:54]}@{name.library[:8]}")


@atexit.register
def _remove_folders() -> None:
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
