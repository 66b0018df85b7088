"""Replies as bytes: what a worker writes, and the host checks before it believes it."""

from __future__ import annotations

import struct
from pickle import loads
from typing import Any
from zlib import crc32

from .. import _core
from . import described
from .described import DESCRIBED

# A reply: its check, kind, number of buffers, bytes of the pickle, nanoseconds, bytes in all. Then
# the buffers' sizes, the pickle, and the buffers, each at a multiple of 64. The check is over all
# between it and the buffers: any call of a worker may write anywhere, and the host must not believe
# what comes of it.
REPLY = struct.Struct("<IIIqqq")
VALUE, ERROR, BROKEN, IN_FILE = range(4)
NOTED = 16  # added to the kind: the last buffer holds notes (wire.notes)
# So is DESCRIBED: the value is as described.py writes it.
FILE = struct.Struct("<qqq")  # process, file number, inode: where a reply is that found no room
SIZES = struct.Struct("<q")
CHECK = struct.Struct("<I")


class Overwritten(Exception):
    """A reply is not as it was written."""


def _check_of(place: memoryview, end: int) -> int:
    return crc32(place[4:end]) or 1  # memory that nobody wrote is no reply


def reply_size(pickle_bytes: int, buffers: list[memoryview]) -> int:
    end = REPLY.size + SIZES.size * len(buffers) + pickle_bytes
    for each in buffers:
        end = (end + 63) // 64 * 64 + each.nbytes
    return end


def write_reply(
    place: memoryview, kind: int, pickled: bytes, buffers: list[memoryview], ns: int, size: int
) -> None:
    REPLY.pack_into(place, 0, 0, kind, len(buffers), len(pickled), ns, size)
    at = REPLY.size
    for each in buffers:
        SIZES.pack_into(place, at, each.nbytes)
        at += SIZES.size
    place[at : at + len(pickled)] = pickled
    at += len(pickled)
    CHECK.pack_into(place, 0, _check_of(place, at))
    for each in buffers:
        at = (at + 63) // 64 * 64
        _core.copy_shared(place[at : at + each.nbytes], each)
        at += each.nbytes


def read_reply(place: memoryview) -> tuple[int, Any, int, int, memoryview | None]:
    """(kind, value, nanoseconds, bytes, notes); arrays in the value use the memory of `place`."""
    check, _, count, length, *_ = REPLY.unpack_from(place)
    at = REPLY.size + SIZES.size * count
    if length < 0 or at + length > len(place):
        raise Overwritten
    head = memoryview(bytes(place[: at + length]))  # nobody changes it while it is read
    if check != _check_of(head, at + length):
        raise Overwritten
    _, kind, count, length, ns, size = REPLY.unpack_from(head)
    pickled = head[at : at + length]
    if kind == IN_FILE:
        return kind, FILE.unpack_from(pickled), ns, size, None
    sizes = [SIZES.unpack_from(head, REPLY.size + SIZES.size * i)[0] for i in range(count)]
    at += length
    buffers = []
    for each in sizes:
        at = (at + 63) // 64 * 64
        buffers.append(place[at : at + each])
        at += each
    noted = buffers.pop() if kind & NOTED else None
    load = described.load if kind & DESCRIBED else loads
    return kind & ~(NOTED | DESCRIBED), load(pickled, buffers=buffers), ns, size, noted
