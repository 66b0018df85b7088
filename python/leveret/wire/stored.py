"""Large parts of pickles that many calls need: in a memory file once, as long as they are the same.

1. A part is known by its place: what was there for an earlier call is compared, which takes 4 ms
   for 80 MB, where a copy in new memory takes 33 (2026-11-26). Globals are known by their digests
   as well.
2. Parts of globals are stored at once. A large buffer of a function or of an argument is stored
   when one comes from the same place a second time: most never do.
3. A worker maps the sealed file for itself alone: nobody can change what it reads, what it writes
   is its own, and what it never touches is never copied.

Where the host's files are hidden from workers, or none is free, parts of globals are in shared
memory. A worker copies those and checks the copy, as a body may have written there. It marks a part
that is not what was stored, and the next call gets another.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections import OrderedDict
from os import O_CLOEXEC, O_RDONLY, close, fstat
from os import open as open_file
from typing import Any, Optional, Union

try:  # hashlib's own, without OpenSSL, which takes longer to load than all modules of this folder
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from .. import _core
from .files import close_file, sealed_file, shows_files, with_spares

STORED_BYTES_MIN = 1 << 16  # copying less costs little beside a call
FILE_BYTES_MIN = 1 << 18  # a file costs as much as to copy some 200 KB, and has a number
FILES_MAX = 128
# Of a call's own: malloc() gives so many bytes new pages each time, which cost more than the copy
# (1 ms for a MB, where memory that was in use before takes 0.1; a virtual machine, 2026-11-26).
CALL_BYTES_MIN = 32 << 20
IDLE_BYTES_MAX = 256 << 20  # kept for calls to come
PLACES_MAX, SKIPS_MAX = 1024, 8
COPY_BYTES_MIN, COPIES_MAX = 1 << 14, 64  # of parts of globals that are too small for a file

# A buffer that is shorter than any other, in the place of one that is stored: the host, the number
# of its file, the file's inode, and how many bytes there are.
REFERENCE = struct.Struct("<QQQQ")

# A part as it is sent: its bytes, a reference to its file, or (address, bytes, address of the mark,
# digest).
Part = Union[bytes, tuple[bytes], tuple[int, int, int, bytes]]


class StoredFile:
    """A part in a sealed memory file, for as long as something holds this. Raises OSError."""

    count = 0

    def __init__(self, part: memoryview) -> None:
        if StoredFile.count >= FILES_MAX or not shows_files():
            raise OSError
        self.file = sealed_file("leveret-stored", part)
        StoredFile.count += 1
        # Not in __del__(): another thread could take this from a dictionary meanwhile.
        weakref.finalize(self, _close, self.file)
        self.size = part.nbytes
        self.owner = _watch(part, id(self))
        self.map = _core.FileMap(self.file, self.size)
        self.inode = fstat(self.file).st_ino
        self.reference = REFERENCE.pack(os.getpid(), self.file, self.inode, self.size)
        self.known_digest = b""

    @property
    def digest(self) -> bytes:
        self.known_digest = self.known_digest or digest_of(self.map)
        return self.known_digest

    def is_spoiled(self) -> bool:
        """Whether the program has closed the file."""
        try:
            return fstat(self.file).st_ino != self.inode
        except OSError:
            return True

    def sent(self) -> Part:
        return (self.reference,)


def _close(file: int) -> None:
    StoredFile.count -= 1
    close_file(file)


def _watch(part: memoryview, number: int) -> weakref.ref[Any] | None:
    """Has what is stored of an array dropped with it, but for calls under way."""
    owner: Any = part.obj
    if isinstance(getattr(owner, "base", None), type(owner)):  # a view, made for the pickle perhaps
        owner = owner.base
    if type(owner).__module__ != "numpy":
        return None

    try:
        return weakref.ref(owner, lambda _: _drop_idle(number))
    except TypeError:
        return None


def _drop_idle(number: int) -> None:
    for each in list(_recents):
        each.stored.pop(number, None)


class StoredBlock:
    """A part in shared memory, for as long as something holds this. Raises MemoryError."""

    owner = None

    def __init__(self, part: memoryview) -> None:
        self.size = part.nbytes
        self.block = _core.SharedBlock(part.nbytes, False)
        self.mark = _core.SharedBlock(1)
        place = memoryview(self.block)[: part.nbytes]
        _core.copy_shared(place, part)
        self.digest = digest_of(place)  # another thread may have changed it meanwhile

    def is_spoiled(self) -> bool:
        """Whether a worker has found it overwritten."""
        return memoryview(self.mark)[0] != 0

    def sent(self) -> Part:
        return self.block.address, self.size, self.mark.address, self.digest


Stored = Union[StoredFile, StoredBlock]
Held = Optional[list[Stored]]
Place = tuple[int, int]  # address and bytes

_by_digest: weakref.WeakValueDictionary[bytes, Stored] = weakref.WeakValueDictionary()
_by_place: weakref.WeakValueDictionary[Place, StoredFile] = weakref.WeakValueDictionary()


class _Seen:
    """A place that a large buffer came from."""

    def __init__(self) -> None:
        self.left = 1  # so often nothing is stored of it
        self.is_stored = False
        self.failures = 0  # times in a row that it was stored for nothing


_seen: OrderedDict[Place, _Seen] = OrderedDict()
# Smaller parts of globals, with their digests; in the place of the latest.
_copies: OrderedDict[Place, tuple[bytes, bytes]] = OrderedDict()


def _forget() -> None:
    """In a child: its workers do not see the parent's memory."""
    for each in (_by_digest, _by_place, _seen, _copies):
        each.clear()


os.register_at_fork(after_in_child=_forget)


def digest_of(part: Any) -> bytes:
    return bytes(blake2b(part, digest_size=16).digest())


def _at(place: Place, part: memoryview) -> StoredFile | None:
    """What is stored of that place, if that is what is there now."""
    stored = _by_place.get(place)
    if stored is None or (not stored.is_spoiled() and _core.same_bytes(stored.map, part)):
        return stored
    _by_place.pop(place, None)
    _drop_idle(id(stored))
    return None


def known_digest(part: memoryview) -> bytes:
    """The digest of a part of a global. To compare takes a tenth of the time that it takes."""
    if part.nbytes < COPY_BYTES_MIN:
        return digest_of(part)
    place = _core.address_of(part), part.nbytes
    if part.nbytes >= FILE_BYTES_MIN:
        stored = _at(place, part)
        return digest_of(part) if stored is None else stored.digest
    copy, digest = _copies.get(place, (b"", b""))
    if not _core.same_bytes(copy, part):
        copy = bytes(part)
        digest = digest_of(copy)
        _copies[place] = copy, digest
        while len(_copies) > COPIES_MAX:
            _copies.popitem(last=False)
    return digest


def put(part: memoryview, digest: bytes, held: Held) -> Part:
    """In the host: what is sent of a part. held: gets what the call must hold; None: whole."""
    if held is None or part.nbytes < STORED_BYTES_MIN:
        return bytes(part)
    stored = _by_digest.get(digest)
    if stored is None or stored.is_spoiled():
        try:
            stored = _store(part)
        except MemoryError:
            return bytes(part)
        _by_digest[stored.digest] = stored
    held.append(stored)
    return stored.sent()


def _store(part: memoryview) -> Stored:
    if part.nbytes >= FILE_BYTES_MIN:
        try:
            stored = StoredFile(part)
        except (OSError, MemoryError):
            pass
        else:
            _by_place[_core.address_of(part), part.nbytes] = stored
            return stored
    return StoredBlock(part)


def refer(buffers: list[memoryview], held: Held) -> list[Any]:
    """In the host: the buffers of a call, references in the place of those that are stored."""
    if held is None or not buffers:
        return buffers
    return [_reference(each, held) if each.nbytes >= CALL_BYTES_MIN else each for each in buffers]


def _reference(buffer: memoryview, held: list[Stored]) -> Any:
    place = _core.address_of(buffer), buffer.nbytes
    stored = _at(place, buffer)
    if stored is None:
        if not _is_due(place):
            return buffer
        try:
            stored = _by_place[place] = StoredFile(buffer)
        except (OSError, MemoryError):
            return buffer
    elif place in _seen:
        _seen[place].failures = 0
    held.append(stored)
    return stored.reference


def _is_due(place: Place) -> bool:
    """Whether what is there is to be stored: it has come before, and not as another one."""
    seen = _seen.get(place)
    if seen is None:
        seen = _seen[place] = _Seen()
        while len(_seen) > PLACES_MAX:
            _seen.popitem(last=False)
    elif seen.is_stored:  # but as another one than what is there now, or it has been dropped
        seen.failures += 1
        seen.left = min(1 << seen.failures, SKIPS_MAX)
    seen.left -= 1
    seen.is_stored = seen.left < 0
    return seen.is_stored


class Recent:
    """What the latest call has held, and earlier ones of arrays that are still there.

    With the pool's lock; but an array may end meanwhile, in any thread.
    """

    def __init__(self) -> None:
        self.stored: dict[int, Stored] = {}  # the latest last
        _recents.add(self)

    def note(self, held: list[Stored]) -> None:
        for each in held:
            self.stored.pop(id(each), None)
            self.stored[id(each)] = each
        size = 0
        for number, each in reversed(list(self.stored.items())):
            size += each.size
            if each not in held and (each.owner is None or size > IDLE_BYTES_MAX):
                self.stored.pop(number, None)

    def clear(self) -> None:
        self.stored.clear()


_recents: weakref.WeakSet[Recent] = weakref.WeakSet()

# In a worker.


def fetch(part: Part) -> Any:
    """A part, as memory of its own."""
    if isinstance(part, bytes):
        return bytearray(part)
    if len(part) == 1:
        return map_reference(part[0])
    address, size, mark, digest = part
    data = bytearray(_core.memory_at(address, size))
    if digest_of(data) != digest:
        _core.memory_at(mark, 1)[0] = 1
        raise RuntimeError("a global of the call was overwritten in shared memory")
    return data


def own(buffer: Any) -> Any:
    """A buffer of a call, as memory of its own: the function may write to it, and keep it."""
    return map_reference(buffer) if len(buffer) == REFERENCE.size else bytearray(buffer)


def map_reference(reference: Any) -> _core.FileMap:
    try:
        return with_spares(lambda: _map_reference(reference))
    except OSError as error:
        raise RuntimeError(f"a large argument of the call cannot be opened: {error}") from None


def _map_reference(reference: Any) -> _core.FileMap:
    pid, number, inode, size = REFERENCE.unpack(reference)
    file = open_file(f"/proc/{pid}/fd/{number}", O_RDONLY | O_CLOEXEC)
    try:
        if fstat(file).st_ino != inode:
            raise RuntimeError("a large argument of the call is no longer where the host had it")
        return _core.FileMap(file, size)
    finally:
        close(file)
