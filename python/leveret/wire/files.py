"""files: the numbers of this package's own files.

A program may close files that are not its own, as daemons do, and open others, which get the lowest
numbers. Files here have numbers that no other file gets by itself, so that nobody's file is taken
for one of these, nor closed in its place.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import sys
from fcntl import F_DUPFD_CLOEXEC, fcntl
from os import MFD_ALLOW_SEALING, MFD_CLOEXEC, close, fstat, memfd_create, write
from typing import Callable, TypeVar

_FIRST = 640  # as share/own_files.cpp: of the 1,024 that are the usual limit
_NUMBERS = 256
_count = itertools.count()
# F_ADD_SEALS, F_GET_SEALS and F_SEAL_..., which Python's fcntl has where its C library has them.
_ADD_SEALS, _GET_SEALS = 1033, 1034
_SEAL, _SHRINK, _GROW, _WRITE = 1, 2, 4, 8
_SPARES = 2  # what a large result needs at once: a file, and the mapping's second number of it

_Made = TypeVar("_Made")
_spares: list[tuple[int, int]] = []  # number and inode, as a call may close them and open others


def out_of_the_way(file: int) -> int:
    """The same file under a number that is out of the way, where the limit on files allows it."""
    number = _FIRST + next(_count) % _NUMBERS
    try:
        moved = fcntl(file, F_DUPFD_CLOEXEC, number)
    except OSError:
        return file
    close(file)
    return moved


def memory_file(name: str) -> int:
    """A new memory file, which can be sealed. Raises OSError."""
    return out_of_the_way(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING))


def keep_size(file: int) -> None:
    """What is written to the file from now on ends where it does."""
    fcntl(file, _ADD_SEALS, _SEAL | _SHRINK | _GROW)


def seal(file: int) -> None:
    """Nobody changes the file from now on: what is read of it stays as it is."""
    fcntl(file, _ADD_SEALS, _SEAL | _SHRINK | _GROW | _WRITE)


def is_sealed(file: int) -> bool:
    fixed = _SHRINK | _GROW | _WRITE
    return fcntl(file, _GET_SEALS) & fixed == fixed


def sealed_file(name: str, content: bytes | memoryview) -> int:
    """A sealed memory file. Raises OSError."""
    file = memory_file(name)
    try:
        at = 0
        while at < len(content):
            at += write(file, content[at:])
        seal(file)
    except BaseException:
        close(file)
        raise
    return file


def map_file(file: int, size: int) -> mmap.mmap:
    """The file's memory. Python before 3.13 keeps a second, low number of the file for it."""
    return mmap.mmap(file, size, **({"trackfd": False} if sys.version_info >= (3, 13) else {}))


def close_file(file: int) -> None:
    """Closes a file, if the program has not done so."""
    with contextlib.suppress(OSError):
        close(file)


def keep_spares() -> None:
    """Opens files that are given up for a moment where a call has left no others to be opened."""
    with contextlib.suppress(OSError):
        while len(_spares) < _SPARES:
            file = memory_file("leveret-spare")
            _spares.append((file, fstat(file).st_ino))


def _give_up_spares() -> bool:
    """Whether there was one."""
    is_one = False
    while _spares:
        file, inode = _spares.pop()
        with contextlib.suppress(OSError):
            if fstat(file).st_ino == inode:
                close(file)
                is_one = True
    return is_one


def with_spares(make: Callable[[], _Made]) -> _Made:
    """Calls what opens files, and again, on the spare ones, if there are no others."""
    try:
        return make()
    except OSError as error:
        if error.errno != errno.EMFILE or not _give_up_spares():
            raise
    try:
        return make()
    finally:
        keep_spares()


def shows_files() -> bool:
    """Whether processes of the same user see this one's files under its number in /proc.

    Not where that is the /proc of another PID namespace: the number is another process's there.
    """
    me = str(os.getpid())
    try:
        is_its_number = os.readlink("/proc/self") == me  # noqa: PTH115
        owner = os.stat(f"/proc/{me}/fd").st_uid  # noqa: PTH116 (pathlib takes long to import)
        return is_its_number and owner == os.geteuid()
    except OSError:
        return False
