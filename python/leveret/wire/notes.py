"""Notes: what a call logs, warns of and prints on its way to the host.

They travel with the call's reply; those of a call that crashes are left in its worker's page. Each
is a frame: its length, then the pickle of (kind, content).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pickle import dumps as _dumps
from pickle import loads as _loads
from typing import Any

LOG, WARNING, OUTPUT, ERRORS = range(4)
NOTES_BYTES_MAX = 1 << 20  # of one call: of more the oldest are dropped, and the number is told

# Of warnings: what to do, a pattern or a text, the category's module and name, a pattern or a name
# of the module, the line; as in warnings.filters.
Filter = tuple[str, Any, tuple[str, str], Any, int]

WORKER = struct.Struct("<I")  # before the notes of a reply: whose they are
_LENGTH = struct.Struct("<I")


def frame(kind: int, content: Any) -> bytes:
    pickled = _dumps((kind, content), 5)
    return _LENGTH.pack(len(pickled)) + pickled


def frames(data: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """The notes in some bytes, up to the first that is none: the worker may have died in it."""
    at = 0
    while at + _LENGTH.size <= len(data):
        length = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        if not 0 < length <= len(data) - at:
            return
        try:
            kind, content = _loads(data[at : at + length])
        except Exception:
            return
        yield kind, content
        at += length
