"""How an executor tells its workers to set themselves up, and they that they are at it.

What workers read is a sealed memory file of the host: no call can spoil it for the others. (Where
the host's files are hidden from them, /proc is not there, say, it is shared memory.) What they
write, while an initializer runs, is a mark in shared memory. A call that overruns its memory
may write there, too; so a mark is a number that nobody writes by chance.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import NamedTuple

from .. import _core
from .files import close_file, sealed_file, shows_files
from .notes import Filter
from .settings import Settings

_HEAD = struct.Struct("<QQQ")  # address of the marks, their token, bytes of the setup
_MARK = struct.Struct("<Q")
_MARKS = 512
_NAME = "leveret-setup"  # of the file in memory
_IN_BLOCK = 1 << 63  # with the size: what is given is the address of shared memory
_SIZE = (1 << 32) - 1  # above it: a number by which workers tell this setup from others


class Depth:
    """Of executors in calls of executors."""

    here = 0  # in a worker: how many there are around this process
    most = 8


class About(NamedTuple):
    """What workers know of the host."""

    pid: int
    replies: bytes  # the address of the socket for large replies; empty: none
    name: str = "MainProcess"  # as multiprocessing has it
    authkey: bytes = b""  # of multiprocessing, if it is imported
    depth: int = 1  # executors around the worker


def about_this_process(replies: bytes) -> About:
    about = About(os.getpid(), replies, depth=Depth.here + 1)
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return about
    me = process.current_process()
    return about._replace(name=me.name, authkey=bytes(me.authkey))


class HostSetup:
    """The host's side. `place` is what a worker needs to find it: two integers.

    No two of them are the same, whatever process or file has a number again.
    """

    def __init__(self, setup: bytes) -> None:
        self._file = -1
        self._marks = _core.SharedBlock(_MARKS * _MARK.size)
        self._token = int.from_bytes(os.urandom(8), "little")
        content = _HEAD.pack(self._marks.address, self._token, len(setup)) + setup
        self._block: _core.SharedBlock | None = None
        number = len(content) | int.from_bytes(os.urandom(3), "little") << 32
        if shows_files():
            self._file = sealed_file(_NAME, content)
            self.place = (os.getpid() << 32 | self._file, number)
        else:
            self._block = _core.SharedBlock(len(content))
            memoryview(self._block)[: len(content)] = content
            self.place = (self._block.address, number | _IN_BLOCK)

    def has_marks(self) -> bool:
        """Whether a process has ended while its initializer ran."""
        marks = enumerate(_MARK.iter_unpack(self._marks))
        pids = ((i, mark ^ self._token) for i, (mark,) in marks)
        return any(0 < pid < 1 << 22 and pid % _MARKS == i for i, pid in pids)

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            close_file(file)

    def __del__(self) -> None:
        self.close()


def is_there(place: tuple[int, int]) -> bool:
    """Whether the executor with the setup at that place is open, as far as a worker sees it."""
    where, number = place
    if number & _IN_BLOCK:
        return True
    try:
        return _NAME in os.readlink(f"/proc/{where >> 32}/fd/{where & 0xFFFFFFFF}")  # noqa: PTH115
    except OSError:
        return False


class WorkerSetup:
    """The worker's side; raises OSError when the host's file cannot be read."""

    def __init__(self, place: int, size: int) -> None:
        if size & _IN_BLOCK:
            content = bytes(_core.memory_at(place, size & _SIZE))
        else:
            with open(f"/proc/{place >> 32}/fd/{place & 0xFFFFFFFF}", "rb") as file:  # noqa: PTH123
                content = file.read()[: size & _SIZE]
        address, token, length = _HEAD.unpack_from(content)
        self.pickled = content[_HEAD.size : _HEAD.size + length]
        if len(self.pickled) != length:
            raise OSError("what the host has left there is not the executor's setup")
        self._at = os.getpid() % _MARKS * _MARK.size
        self._mark = token ^ os.getpid()
        self._marks = _core.memory_at(address, _MARKS * _MARK.size)

    def mark(self, is_running: bool) -> None:
        _MARK.pack_into(self._marks, self._at, self._mark if is_running else 0)


class Setup:
    """What all workers of an executor are told; pickled.

    No data class: each process would compile one.
    """

    def __init__(self, initializer: bytes = b"") -> None:
        self.initializer = initializer  # pickled (initializer, initargs); empty: none
        self.calls_max = -1  # until a process is replaced; below 0: for ever
        self.idle_ns_max = 0  # without a call, until a process is replaced; 0: for ever
        self.about = About(0, b"")
        self.pages: list[int] = []  # the host's numbers of their files, by worker
        self.env: list[dict[str, str | None]] = []  # by worker; empty: the host's
        self.cwd: str | None = None
        self.path = b""  # pickled sys.path; empty: that with which the processes were started
        self.settings: Settings = {}  # of the interpreter, as the host has them
        self.seed = 0
        self.is_seed_given = False
        self.levels: dict[str, int] = {}  # of loggers; "": the root's
        self.level_names: dict[int, str] = {}
        self.filters: list[Filter] = []  # of warnings
        self.forwards_logs = True
        self.forwards_output = False
