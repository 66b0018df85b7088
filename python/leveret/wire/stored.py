"""Large parts of pickles of globals: in shared memory once, for all calls that need them just now.

A call holds what its pickle refers to. A worker copies a part only when the global has changed, and
checks the copy, as a body may have written to shared memory. It marks a part that is not what was
stored, and the next call gets another.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from typing import Any, Optional, Union

from .. import _core

STORED_BYTES_MIN = 1 << 16  # copying less costs little beside a call

# A part as it is sent: its bytes, or (address, bytes, address of the mark, digest).
Part = Union[bytes, tuple[int, int, int, bytes]]


class Stored:
    """A part in shared memory, for as long as something holds this."""

    def __init__(self, part: memoryview) -> None:
        self.block = _core.SharedBlock(part.nbytes, False)
        self.mark = _core.SharedBlock(1)
        place = memoryview(self.block)[: part.nbytes]
        _core.copy_shared(place, part)
        self.digest = digest_of(place)  # another thread may have changed it meanwhile

    def is_overwritten(self) -> bool:
        return memoryview(self.mark)[0] != 0


Held = Optional[list[Stored]]

_stored: weakref.WeakValueDictionary[bytes, Stored] = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_stored.clear)  # its workers do not see the parent's memory


def digest_of(part: Any) -> bytes:
    return hashlib.blake2b(part, digest_size=16).digest()


def put(part: memoryview, digest: bytes, held: Held) -> Part:
    """In the host: what is sent of a part. held: gets what the call must hold; None: whole."""
    if held is None or part.nbytes < STORED_BYTES_MIN:
        return bytes(part)
    stored = _stored.get(digest)
    if stored is None or stored.is_overwritten():
        try:
            stored = Stored(part)
        except MemoryError:
            return bytes(part)
        _stored[stored.digest] = stored
    held.append(stored)
    return stored.block.address, part.nbytes, stored.mark.address, stored.digest


def fetch(part: Part) -> bytearray:
    """In a worker: a part, as a copy of its own."""
    if isinstance(part, bytes):
        return bytearray(part)
    address, size, mark, digest = part
    data = bytearray(_core.memory_at(address, size))
    if digest_of(data) != digest:
        _core.memory_at(mark, 1)[0] = 1
        raise RuntimeError("a global of the call was overwritten in shared memory")
    return data
