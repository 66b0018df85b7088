"""files: the numbers of this package's own files.

A program may close files that are not its own, as daemons do, and open others, which get the lowest
numbers. Files here have numbers that no other file gets by itself, so that nobody's file is taken
for one of these, nor closed in its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import mmap
import os
import sys

_FIRST = 640  # as share/zone.cpp: of the 1,024 that are the usual limit
_NUMBERS = 256
_count = itertools.count()


def out_of_the_way(file: int) -> int:
    """The same file under a number that is out of the way, where the limit on files allows it."""
    number = _FIRST + next(_count) % _NUMBERS
    try:
        moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, number)
    except OSError:
        return file
    os.close(file)
    return moved


def memory_file(name: str) -> int:
    """A new memory file, which can be sealed. Raises OSError."""
    return out_of_the_way(os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))


def map_file(file: int, size: int) -> mmap.mmap:
    """The file's memory. Python before 3.13 keeps a second, low number of the file for it."""
    return mmap.mmap(file, size, **({"trackfd": False} if sys.version_info >= (3, 13) else {}))


def close_file(file: int) -> None:
    """Closes a file, if the program has not done so."""
    with contextlib.suppress(OSError):
        os.close(file)


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
