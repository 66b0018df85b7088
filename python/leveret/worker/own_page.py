"""A worker's own page: its marks, and the last words of a call that crashes."""

from __future__ import annotations

import array
import contextlib
import faulthandler
import fcntl
import functools
import mmap
import operator
import os
import sys
import threading
from typing import Any, ClassVar, NamedTuple, NoReturn

from .. import _core
from ..wire import page
from ..wire.setup import Setup

_FILE_MIN = 200  # above what programs that close all files, or count on a number, know of


class Own:
    """The page of this process; words that nobody reads where it has none."""

    place: mmap.mmap | None = None
    words: memoryview = memoryview(array.array("Q", [0] * page.WORDS))
    file = -1
    inode = 0  # of the file
    owner = 0  # the process that may write there
    gives_up = False  # in a process that is forked
    named = b""  # by what the call's name was found that stands in the page
    left: ClassVar[
        dict[int, str]
    ] = {}  # threads that calls have left behind, and by which function


def open_page(setup: Setup, index: int) -> None:
    """Maps the page of this worker; without it (a /proc that hides) calls run all the same."""
    try:
        found = os.open(
            f"/proc/{setup.about.pid}/fd/{setup.pages[index]}", os.O_RDWR | os.O_CLOEXEC
        )
        try:
            Own.file = fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, _FILE_MIN)
        except OSError:  # fewer files are allowed
            Own.file = os.dup(found)
        os.close(found)
        Own.inode = os.fstat(Own.file).st_ino
        Own.place = mmap.mmap(Own.file, page.BYTES)
    except (OSError, ValueError, IndexError):
        return
    Own.words = memoryview(Own.place).cast("Q")[: page.HEAD_BYTES // 8]
    Own.words[page.LIVES] += 1
    Own.words[page.IS_OPEN] = 1
    Own.words[page.PROCESS] = Own.owner = os.getpid()
    Own.words[page.PARENT] = os.getppid()
    if not Own.gives_up:  # of other hosts' pages; what is registered is kept for ever
        Own.gives_up = True
        os.register_at_fork(after_in_child=_give_up)


class PutAway(NamedTuple):
    """The page that this process has of another host's."""

    place: mmap.mmap | None
    words: memoryview
    file: int
    inode: int

    def close(self) -> None:
        if self.place is not None:
            self.words.release()
            with contextlib.suppress(BufferError):  # fatal signals are still marked there
                self.place.close()
            os.close(self.file)


def put_away() -> PutAway:
    """Leaves the page of a host to which this process may come back."""
    put = PutAway(Own.place, Own.words, Own.file, Own.inode)
    _drop()
    return put


def take_back(put: PutAway) -> None:
    Own.place, Own.words, Own.file, Own.inode = put
    Own.named = b""
    watch()
    _write_threads()


def watch() -> None:
    """Has fatal signals and the end of a call's time written to the page.

    Again after the initializer, which may have told faulthandler otherwise.
    """
    if Own.place is None:
        return
    rewind()
    _seek()
    faulthandler.disable()
    # From Python 3.14 on faulthandler writes the frames of C itself.
    _core.watch_signals(Own.file, Own.place, sys.version_info < (3, 14))
    faulthandler.enable(file=Own.file, all_threads=True)
    faulthandler.register(_core.overrun_signal(), file=Own.file, all_threads=True, chain=False)


_real_exit = os._exit


def _exit(status: int) -> NoReturn:
    """os._exit() in a call: says where, and in which thread: it may be an earlier one's."""
    status = operator.index(status)
    if Own.owner == os.getpid() and Own.words[page.CALL]:
        rewind()
        with contextlib.suppress(Exception):
            faulthandler.dump_traceback(Own.file, all_threads=True)
    _real_exit(status)


def watch_exit() -> None:
    _exit.__module__ = "os"  # it is pickled by that name
    os._exit = _exit


def name_call(key: bytes, function: Any) -> None:
    """Writes what the function is called for those who look from outside.

    key: what stands for the name; empty: nothing does.
    """
    Own.named = key
    if Own.place is None:
        return
    while type(function) is functools.partial:
        function = function.func
    name = function if type(function) is str else getattr(function, "__qualname__", None)
    name = name if type(name) is str else type(function).__qualname__
    page.write_text(Own.place, page.NAME_AT, page.NAME_BYTES, name)


def rewind() -> None:
    """Takes back what was written of a call that was nearly over its time."""
    at = page.TEXT_AT
    if Own.place is None or not Own.place[at]:
        return
    Own.place[at : page.BYTES] = bytes(page.BYTES - at)
    _seek()


def _seek() -> None:
    """To where the text begins. A call may have closed the file, and opened another one."""
    with contextlib.suppress(OSError):
        if os.fstat(Own.file).st_ino == Own.inode:
            os.lseek(Own.file, page.TEXT_AT, os.SEEK_SET)


def note_threads(function: str) -> None:
    """Remembers which function has left threads behind: they may crash in calls of others."""
    alive = set(sys._current_frames())
    alive.discard(threading.main_thread().ident or 0)
    left = {ident: Own.left.get(ident, function) for ident in alive}
    Own.left = left
    _write_threads()


def _write_threads() -> None:
    if Own.place is None:
        return
    entries = list(Own.left.items())[-page.THREADS_MAX :]
    for i, (ident, name) in enumerate(entries):
        at = page.THREADS_AT + i * page.THREAD.size
        page.THREAD.pack_into(Own.place, at, ident, name.encode("utf-8", "replace")[:48])
    Own.words[page.THREADS] = len(entries)


def _give_up() -> None:
    """In a process that a call has forked: the page is the worker's."""
    faulthandler.unregister(_core.overrun_signal())
    faulthandler.disable()
    _drop()


def _drop() -> None:
    Own.words = memoryview(array.array("Q", [0] * page.WORDS))
    Own.place = None
