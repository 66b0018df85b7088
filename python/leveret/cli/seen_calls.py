"""Which Python calls the workers of executors are in, and which one they died in last.

A runtime shows that a worker runs `leveret.python_call`; which function that is stands in the pages
of its executor's workers (wire/page.py), memory files of the host that are read from outside. What
is in them may be anything: workers write there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ..process_stat import parent_of
from ..records import SeenPool, SeenWorker
from ..wire import page

PYTHON_CALL = "leveret.python_call"
_GET_SEALS = 1034
_WORKERS_MAX = 1 << 16  # of a page's number


def name_calls(pools: list[SeenPool]) -> list[SeenPool]:
    """Puts the names of Python functions in the place of `leveret.python_call`."""
    by_process: defaultdict[int, list[SeenPool]] = defaultdict(list)
    for pool in pools:
        by_process[pool["pid"]].append(pool)
    for pid, of_it in by_process.items():
        executors = _executors(pid)
        for pool in of_it:
            pages = _own(pool, executors)
            for index, worker in enumerate(pool["workers"]):
                if index in pages:
                    _name(worker, pages[index])
    return pools


def _heads(pid: int) -> Iterator[bytes]:
    """The pages of a process's executors; their heads."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()).startswith("/memfd:leveret-page-"):
                    yield _head(link)


def _head(link: Path) -> bytes:
    file = os.open(link, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        fcntl.fcntl(file, _GET_SEALS)  # only memory files have them: nothing here keeps us waiting
        return os.pread(file, page.HEAD_BYTES, 0)
    finally:
        os.close(file)


def _word(head: bytes, index: int) -> int:
    return int.from_bytes(head[8 * index : 8 * index + 8], "little")


def _executors(pid: int) -> dict[int, dict[int, bytes]]:
    """By an executor's number: the heads of its workers' pages."""
    found: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for head in _heads(pid):
        if len(head) == page.HEAD_BYTES:
            executor, worker = divmod(_word(head, page.POOL), _WORKERS_MAX)
            found[executor][worker] = head
    return found


def _own(pool: SeenPool, executors: dict[int, dict[int, bytes]]) -> dict[int, bytes]:
    """The pages of a pool's workers: those that its processes have opened, or that were opened by
    others of the same parent."""
    pids = {worker["pid"] for worker in pool["workers"]} - {0}
    wanted = ((page.PROCESS, pids), (page.PARENT, set(map(parent_of, pids)) - {0}))
    for word, numbers in wanted:
        for pages in executors.values():
            if any(_word(head, word) in numbers for head in pages.values()):
                return pages
    return {}


def _name(worker: SeenWorker, head: bytes) -> None:
    is_in_call = _word(head, page.PROCESS) == worker["pid"] and _word(head, page.CALL) != 0
    if worker["procedure"].startswith(PYTHON_CALL) and is_in_call:
        worker["procedure"] = page.text_in(head, page.NAME_AT, page.NAME_BYTES) or PYTHON_CALL
    if worker["died_in"].startswith(PYTHON_CALL):
        died_in = page.text_in(head, page.CULPRIT_AT, page.CULPRIT_BYTES)
        worker["died_in"] = died_in or PYTHON_CALL
