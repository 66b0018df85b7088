"""The page of a worker: memory that outlives it, for its marks, its notes and its last words.

It is a memory file of the host's, which a worker maps and which faulthandler writes to. When the
worker is dead its host reads the page (python/src/obituaries.cpp), and clears it but for the first
KEPT_BYTES. A page cannot grow: what does not fit is cut.

head    words of 8 bytes, see below; then the threads that calls have left behind
notes   frames of wire.notes: what the call has logged so far
text    what faulthandler has written
"""

from __future__ import annotations

import struct

HEAD_BYTES = 1024
KEPT_BYTES = 64
TEXT_AT = 64 << 10
BYTES = 128 << 10
NOTES_BYTES = TEXT_AT - HEAD_BYTES

# Words of the head. LIVES is kept: how many processes have had this page.
LIVES, SIGNAL, USED, CALL, HAS_RUN, IS_OPEN, THREADS, IN_SETUP = 0, 8, 9, 10, 11, 12, 13, 14
WORDS = 16
# CALL: the call that the worker is in, 0 between calls; HAS_RUN: one has ended here; IN_SETUP: an
# initializer runs; SIGNAL: the fatal one, as a handler of the extension module notes it; USED:
# bytes of notes.

# Threads that calls have left behind: how it is identified, and which function has left it.
THREAD = struct.Struct("<Q48s")
THREADS_AT = 8 * WORDS
THREADS_MAX = (HEAD_BYTES - THREADS_AT) // THREAD.size
