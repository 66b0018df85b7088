"""Large parts of pickles of globals: in shared memory once, for all calls that need them just now.

A call holds what its pickle refers to. A worker copies a part only when the global has changed, and
checks the copy: a body may have written to shared memory, or the call may have been given up. It
marks a part that is not what was stored, and the next call gets another.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from typing import Any, Optional, Union

from .. import _core

STORED_BYTES_MIN = 1 << 16  # copying less costs little beside a call

# A part as it is sent: its bytes, or (address, bytes, digest).
Part = Union[bytes, tuple[int, int, bytes]]


class Stored:
    """A part in shared memory, for as long as something holds this."""

    def __init__(self, part: memoryview) -> None:
        self.block = _core.SharedBlock(part.nbytes + 1, False)
        view = memoryview(self.block)
        place, self.mark = view[: part.nbytes], view[part.nbytes :]
        _core.copy_shared(place, part)
        self.mark[0] = 0
        self.digest = digest_of(place)  # another thread may have changed it meanwhile


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
    if stored is None or stored.mark[0] != 0:
        try:
            stored = Stored(part)
        except MemoryError:
            return bytes(part)
        _stored[stored.digest] = stored
    held.append(stored)
    return stored.block.address, part.nbytes, stored.digest


def fetch(part: Part) -> bytearray:
    """In a worker: a part, as a copy of its own."""
    if isinstance(part, bytes):
        return bytearray(part)
    address, size, digest = part
    place = _core.memory_at(address, size + 1)
    data = bytearray(place[:size])
    if digest_of(data) != digest:
        place[size] = 1
        raise RuntimeError("a global of the call was overwritten in shared memory")
    return data
