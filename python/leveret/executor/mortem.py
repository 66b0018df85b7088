"""Post-mortem: what is known of the death of a worker, and whom it is blamed on.

Every worker has a page (leveret/wire/page.py). It says which call the worker was in, which threads
earlier calls had left behind, and holds what faulthandler wrote.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import re
import signal
import struct
from typing import Any

from .. import _core
from ..wire import page
from ..wire.files import close_file, keep_size, map_file, memory_file

# Of the text that faulthandler wrote. Compiled where a worker has died, which few programs see.
# The worker's own program is of no file; nor is a function of the call's that came from `python -c`
# or exec().
_OWN_FRAMES = (
    r'(?m)^  File "[^"]*/leveret/worker/\w+\.py", line \d+ in .*\n'
    r'(?:(?<=in main\n)  File "<string>", line \d+ in <module>\n)?'
)
# Below the call itself; its first line may be one of the extension module, where it crashed there.
_OWN_C_FRAMES = (
    r"(?m)^((?:Current thread's )?C stack[^\n]*\n)"
    r"([^\n]*\n(?:(?![^\n]*/leveret/_core)[^\n]+\n)*)(?:[^\n]+\n?)*"
)
_NO_FRAMES = r"(?m)^((?:Current t|T)hread 0x[^\n]*first\):\n)\n"
_MODULES = r"(?m)^Extension modules: .*\n?"
_CURRENT = r"(?m)^Current thread 0x([0-9a-f]+)[^\n]*\n(  Garbage-collecting\n)?"


_numbers = itertools.count(1)  # of this process's executors


def _why_no_page(error: OSError, workers: int) -> str:
    """What to do, for the limits that a shell may have set."""
    text = f"no memory file for each of {workers} workers: {error.strerror}"
    if error.errno == errno.EMFILE:
        return f"{text}; ask for fewer (max_workers), or allow more files (ulimit -n)"
    if error.errno == errno.EFBIG:
        return f"{text}; each has {page.BYTES >> 10} KiB: allow files as large (ulimit -f)"
    return text


class Pages:
    """The pages of an executor's workers."""

    def __init__(self, workers: int) -> None:
        self.files: list[int] = []
        number = next(_numbers)
        self.deaths: _core.Obituaries
        self.places: list[mmap.mmap] = []
        try:
            for index in range(workers):
                self.files.append(memory_file(f"leveret-page-{index}"))
                os.ftruncate(self.files[-1], page.BYTES)
                keep_size(self.files[-1])
                self.places.append(map_file(self.files[-1], page.BYTES))
                mark = struct.pack("<Q", number << 16 | index)
                self.places[-1][8 * page.POOL : 8 * page.POOL + 8] = mark
            self.deaths = _core.Obituaries(self.places)
        except OSError as error:
            self.close()
            raise OSError(error.errno, _why_no_page(error, workers)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Nobody may read or write them any more."""
        while self.places:
            self.places.pop().close()
        while self.files:
            close_file(self.files.pop())


class Death:
    """The end of one worker process."""

    def __init__(self, worker: int, how: int, head: bytes, notes: bytes, text: bytes) -> None:
        words = memoryview(head).cast("Q")
        self.worker = worker
        self.how = how
        self.notes = notes
        self.call: int = words[page.CALL]
        self.in_initializer = words[page.IN_SETUP] != 0
        self.is_blind = not words[page.IS_OPEN]  # it had no page
        self.signal = words[page.SIGNAL] & 0xFF or (os.WTERMSIG(how) if how & 0x7F else 0)
        if how == -1:
            self.signal = signal.SIGKILL  # with its zygote
        self.traceback = _readable(text)
        found = re.search(_CURRENT, self.traceback)
        # What is collected may be what an earlier call has left.
        is_garbage = found is not None and bool(found[2]) and words[page.HAS_RUN] != 0
        self.whose = "while garbage of earlier calls was collected" if is_garbage else ""
        for i in range(min(words[page.THREADS], page.THREADS_MAX)):
            ident, name = page.THREAD.unpack_from(head, page.THREADS_AT + i * page.THREAD.size)
            if found is not None and int(found[1], 16) == ident:
                left_by = name.rstrip(b"\0").decode("utf-8", "replace")
                self.whose = f"in a thread that an earlier call of {left_by} has left behind"

    @property
    def is_own(self) -> bool:
        """Whether the call that was marked is to blame."""
        return not self.whose

    def how_it_ended(self) -> str:
        if self.how == -1:
            return "its process was gone, with the one that it was started from"
        if self.signal == 0:
            return f"it called exit({os.waitstatus_to_exitcode(self.how)})"
        return f"signal {self.signal}{_names.get(self.signal, '')}"


_names = {s.value: f" ({s.name})" for s in signal.Signals}


def _readable(text: bytes) -> str:
    """What a broken process wrote, as text that a terminal may be given."""
    read = text.decode("utf-8", "replace")
    read = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in read)
    read = re.sub(_MODULES, "", re.sub(_OWN_FRAMES, "", read))
    read = re.sub(_OWN_C_FRAMES, r"\1\2", read)
    without = r"\1  (in the function itself, which is not one of Python)\n\n"
    read = re.sub(_NO_FRAMES, without, read + "\n")
    return re.sub(r"\n{3,}", "\n\n", read).strip("\n")


def how_it_ended(task_code: int) -> str:
    """The same from what the runtime says, where no death was seen."""
    if task_code < 0:
        return f"signal {-task_code}{_names.get(-task_code, '')}"
    return f"it called exit({task_code})" if task_code else "it was gone"


class Mortem:
    """The deaths of an executor's workers."""

    def __init__(self, workers: int) -> None:
        self.pages = Pages(workers)
        self.deaths = self.pages.deaths
        self.blind = 0  # deaths of workers that had no page: what they were in is not known

    def take(self) -> list[Death]:
        found: list[Any] = self.deaths.take()
        made = [Death(*each) for each in found]
        self.blind += sum(each.is_blind for each in made)
        return made

    def show_culprit(self, death: Death, call: str) -> None:
        """For `leveret top`. With the pool's lock."""
        if self.pages.places:
            place = self.pages.places[death.worker]
            text = f"{call}: {death.how_it_ended()}"
            page.write_text(place, page.CULPRIT_AT, page.CULPRIT_BYTES, text)

    def close(self) -> None:
        self.deaths.close()
        self.pages.close()
