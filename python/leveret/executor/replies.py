"""Where results of calls come: memory kept for them, or a memory file that the worker sends."""

from __future__ import annotations

import _socket
import array
import contextlib
import errno
import mmap
import os
from collections.abc import Iterable
from typing import Any

from .. import _core
from ..wire.files import close_file, is_sealed, out_of_the_way
from .work import Work

REPLY_BYTES_MAX = 16 << 20  # larger results come in a file of their own
REPLIES_BYTES_MAX = 64 << 20  # shared memory kept for results of calls under way
BYTES_AT_HAND = 1024  # a call has room for so much
FILES_MAX = 1024
STAGED_BYTES_MAX = 16 << 20  # of a call's arguments: a quarter of a worker's local store


class Gone(Exception):
    """The process that has a large result is no more."""


class NoRoom(Exception):
    """This process has no file descriptor left, or no memory, for a large result."""


_FEW_FILES = "no file descriptor was free for it; close some, or raise the limit (ulimit -n)"
_SHORT = {
    errno.EMFILE: _FEW_FILES,
    errno.ENFILE: "the system has no file descriptor left for it",
    errno.ENOMEM: "no memory could be mapped for it; free some, or raise the limit if one is set "
    "(ulimit -v)",
}


def in_shared(data: Any) -> Any:
    """Larger data does not go through a worker's local store, where all of a call must fit."""
    if len(data) < STAGED_BYTES_MAX // 64:
        return data
    view = memoryview(data)
    place = memoryview(_core.SharedBlock(view.nbytes, False))[: view.nbytes]
    _core.copy_shared(place, view)
    return place


class ReplySpace:
    """Shared memory for results of calls under way; used with the pool's lock."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}  # by function: bytes of its last result
        self.reserved = 0

    def reserve(self, work: Work) -> _core.SharedBlock | None:
        """Shared memory for the result, as large as the function's last one."""
        size = self.sizes.get(work.key, 0) * work.count
        if not size:
            return None
        size += size // 8
        if not BYTES_AT_HAND < size <= REPLY_BYTES_MAX or self.reserved + size > REPLIES_BYTES_MAX:
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
        if size <= BYTES_AT_HAND and work.count == 1 and work.key not in self.sizes:
            return
        if len(self.sizes) > 1024:
            self.sizes.clear()
        self.sizes[work.key] = size // work.count + 1


class ReplyFiles:
    """Memory files with large replies: workers send them, and keep nothing themselves.

    A file waits in a socket, or in `here` when it came before its reply, whose place says which one
    it is. Used with the pool's lock.
    """

    def __init__(self) -> None:
        self.address = b""  # none: workers keep their files, and they are opened there
        self.here: dict[int, int] = {}  # file descriptors by inode
        self.lost = 0  # messages whose file came when no descriptor was free
        self.socket: _socket.socket | None = None
        with contextlib.suppress(OSError):
            made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
            made = _socket.socket(fileno=out_of_the_way(made.detach()))
            made.settimeout(0)
            # A name of no file system: nothing is left behind, whatever happens.
            name = b"\0leveret-" + str(os.getpid()).encode() + b"-" + os.urandom(12).hex().encode()
            made.bind(name)
            self.socket, self.address = made, name

    def receive(self) -> None:
        """Takes in what has come."""
        while self.socket is not None:
            try:
                _, extra, flags, _ = self.socket.recvmsg(1, 64, _socket.MSG_CMSG_CLOEXEC)
            except OSError:  # that was all, or the program has closed it
                return
            if flags & _socket.MSG_CTRUNC:
                self.lost += 1
            for level, kind, data in extra:
                if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                    self.keep(array.array("i", data[: len(data) // 4 * 4]))

    def keep(self, files: Iterable[int]) -> None:
        for file in files:
            inode = os.fstat(file).st_ino
            if inode in self.here or len(self.here) >= FILES_MAX:
                close_file(file)
            else:
                self.here[inode] = file

    def forget(self) -> None:
        """Drops those whose replies never came: their workers died in between."""
        self.receive()
        self.lost = 0
        while self.here:
            close_file(self.here.popitem()[1])

    def open(self, pid: int, number: int, inode: int, size: int) -> memoryview:
        """Maps the file in which a worker has left a large reply."""
        file = self.here.pop(inode, -1)
        if file < 0 and number < 0:
            self.receive()
            file = self.here.pop(inode, -1)
            if file < 0 and self.lost:
                self.lost -= 1
                raise NoRoom(_FEW_FILES)
        try:
            if file < 0:
                file = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
            return _map(file, inode, size)
        except OSError as error:
            if error.errno in _SHORT:
                raise NoRoom(_SHORT[error.errno]) from None
            raise Gone from None
        finally:
            if file >= 0:
                os.close(file)

    def close(self) -> None:
        self.forget()
        if self.socket is not None:
            with contextlib.suppress(OSError):  # the program may have closed it
                self.socket.close()
            self.socket = None


def _map(file: int, inode: int, size: int) -> memoryview:
    about = os.fstat(file)
    if about.st_ino != inode or about.st_size != size or not is_sealed(file):
        raise Gone
    return memoryview(mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
