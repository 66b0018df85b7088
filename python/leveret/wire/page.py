"""The page of a worker: memory that outlives it, for its marks, its notes and its last words.

It is a memory file of the host's, which a worker maps and which faulthandler writes to. When the
worker is dead its host reads the page (python/src/obituaries.cpp), and clears it but for the first
KEPT_BYTES. A page cannot grow: what does not fit is cut. `leveret top` looks at the head from
outside (cli/seen_calls.py): both texts in it end at a zero byte.

head    words of 8 bytes, see below; then the name of the call that the worker is in, and the
        threads that calls have left behind. Kept, and written by the host: of which call the
        worker died last
notes   frames of wire.notes: what the call has logged so far
text    what faulthandler has written
"""

from __future__ import annotations

import mmap
import struct

HEAD_BYTES = 2048
KEPT_BYTES = 512
TEXT_AT = 64 << 10
BYTES = 128 << 10
NOTES_BYTES = TEXT_AT - HEAD_BYTES

# Words of the head. Three are kept. LIVES: how many processes have had this page; POOL, written by
# the host: the number of its executor and the worker's; PARENT: what the worker was forked from.
LIVES, POOL, PARENT = 0, 1, 2
SIGNAL, USED, CALL, HAS_RUN, IS_OPEN, THREADS, IN_SETUP, PROCESS = range(64, 72)
WORDS = 72
# PROCESS: the worker's. CALL: the call that the worker is in, 0 between calls; HAS_RUN: one has
# ended here; IN_SETUP: an initializer runs; SIGNAL: the fatal one, as a handler of the extension
# module notes it; USED: bytes of notes.

# Threads that calls have left behind: how it is identified, and which function has left it.
THREAD = struct.Struct("<Q48s")
THREADS_AT = 8 * WORDS + 128
THREADS_MAX = (HEAD_BYTES - THREADS_AT) // THREAD.size

# Texts: where they are, and the bytes that there are for them, with the zero.
NAME_AT, NAME_BYTES = 8 * WORDS, 128
CULPRIT_AT, CULPRIT_BYTES = 64, KEPT_BYTES - 64


def write_text(place: mmap.mmap, at: int, size: int, text: str) -> None:
    place[at : at + size] = text.encode("utf-8", "replace")[: size - 1].ljust(size, b"\0")


def text_in(head: bytes, at: int, size: int) -> str:
    return head[at : at + size].partition(b"\0")[0].decode("utf-8", "replace")
