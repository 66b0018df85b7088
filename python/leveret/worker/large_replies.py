"""Replies that find no room in the memory that the host gave: memory files, sent to the host."""

from __future__ import annotations

from array import array
from collections import deque
from mmap import mmap
from os import close, fstat, ftruncate, getpid

from ..wire.files import close_file, memory_file, seal, with_spares
from ..wire.replies import FILE, write_reply

_KEPT_MAX = 32  # more than the replies that are on their way from one worker
_SEND_SECONDS = 1.0  # the host takes files in with replies; a socket has room for some
_kept: deque[int] = deque()


def make_file(
    address: bytes, kind: int, pickled: bytes, buffers: list[memoryview], ns: int, size: int
) -> bytes:
    """Writes a reply into a memory file, and says where it is.

    address: the host's socket. What could not be sent is kept here for the host to open. Raises
    OSError, which says what for.
    """
    try:
        return with_spares(lambda: _make_file(address, kind, pickled, buffers, ns, size))
    except OSError as error:
        raise OSError(error.errno, f"no file for a large result: {error.strerror}") from None


def _make_file(
    address: bytes, kind: int, pickled: bytes, buffers: list[memoryview], ns: int, size: int
) -> bytes:
    file = memory_file("leveret-reply")
    try:
        ftruncate(file, size)
        with mmap(file, size) as place, memoryview(place) as view:
            write_reply(view, kind, pickled, buffers, ns, size)
        seal(file)
        inode = fstat(file).st_ino
        is_sent = _send(address, file)
    except BaseException:
        close(file)
        raise
    if is_sent:
        close(file)
        return FILE.pack(getpid(), -1, inode)
    _kept.append(file)
    while len(_kept) > _KEPT_MAX:
        close_file(_kept.popleft())
    return FILE.pack(getpid(), file, inode)


def _send(address: bytes, file: int) -> bool:
    """Whether the host has it, or will find it in its socket."""
    if not address:
        return False
    try:
        import _socket
    except ImportError:  # a call has taken away where modules are found
        return False
    try:
        way = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    except OSError:
        return False
    try:
        way.settimeout(_SEND_SECONDS)
        way.connect(address)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [file]))
        return way.sendmsg([b"r"], [rights]) == 1
    except OSError:
        return False
    finally:
        way.close()
