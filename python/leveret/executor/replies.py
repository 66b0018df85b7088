"""Where results of calls come: memory kept for them, or a memory file of the worker."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os

from .. import _core
from .work import Work

REPLY_BYTES_MAX = 16 << 20  # larger results come in a file of their own
REPLIES_BYTES_MAX = 64 << 20  # shared memory kept for results of calls under way
_SEALS = 2 | 4 | 8  # SHRINK, GROW, WRITE
_F_GET_SEALS = 1034


class Gone(Exception):
    """The process that has a large result is no more."""


class ReplySpace:
    """Shared memory for results of calls under way; used with the pool's lock."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}  # by function: bytes of its last results
        self.reserved = 0

    def reserve(self, work: Work) -> _core.SharedBlock | None:
        """Shared memory for the result, as large as the function's last one."""
        size = self.sizes.get(work.key, 0)
        size += size // 8
        if not 0 < size <= REPLY_BYTES_MAX or self.reserved + size > REPLIES_BYTES_MAX:
            return None
        with contextlib.suppress(MemoryError):
            block = _core.SharedBlock(size, False)
            work.reserved = size
            self.reserved += size
            return block
        return None

    def release(self, work: Work) -> None:
        self.reserved -= work.reserved
        work.reserved = 0

    def note(self, work: Work, size: int) -> None:
        """Learns from a result of so many bytes."""
        if len(self.sizes) > 1024:
            self.sizes.clear()
        if size > 1024:
            self.sizes[work.key] = size
        else:
            self.sizes.pop(work.key, None)


def open_file(pid: int, number: int, inode: int, size: int) -> memoryview:
    """Maps the memory file in which a worker left a large reply."""
    try:
        file = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        raise Gone from None
    try:
        about = os.fstat(file)
        if about.st_ino != inode or about.st_size != size:
            raise Gone
        if fcntl.fcntl(file, _F_GET_SEALS) & _SEALS != _SEALS:
            raise Gone
        place = mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        return memoryview(place)
    except OSError:
        raise Gone from None
    finally:
        os.close(file)
