"""What executors offer, found out by trying: `python -m leveret.report.executor_table [NAME ...]`.

Each question is put to each executor that is installed, in a process of its own, which is ended
when it takes too long ("does not end"). Prints a table in Markdown.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, Callable

from . import contestants
from .contestants import Contestant

PROBE_SECONDS = 45.0  # for one question; starting a cluster takes its time
GIVE_UP_SECONDS = 12.0  # for an answer within
CALL_SECONDS = 0.1
ALIVE_SECONDS = 1.0  # an endless call shows that it is alive a million times in it
YES, NO = "yes", "no"
_leaked: list[bytes] = []


# What is called.


def square(i: int) -> int:
    return i * i


def crash_at(i: int, bad: int) -> int:
    if i == bad:
        ctypes.string_at(8)
    time.sleep(CALL_SECONDS)  # else all may be over before the pool notices
    return i * i


def endless(path: str) -> None:
    """Holds the interpreter's lock nearly always, and shows that it is alive: the file grows."""
    with Path(path).open("ab", buffering=0) as file:
        while True:
            file.write(b".")


def leak() -> int:
    while len(_leaked) < 40:
        _leaked.append(b"\1" * (50 << 20))
    return len(_leaked)


def threads() -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def total(array: Any) -> float:
    return float(array.sum())


# What is asked. Each gets the contestant's class, and answers in a word or two.


def time_limit(kind: type[Contestant]) -> str:
    """a time limit for a call that ends it"""
    executor = kind(2, 3.0)
    with _folder() as folder:
        bad = executor.submit(endless, f"{folder}/alive")
        good = [executor.submit(square, i) for i in range(4)]
        assert [executor.result(each, GIVE_UP_SECONDS) for each in good] == [0, 1, 4, 9]
        try:
            executor.result(bad, GIVE_UP_SECONDS)
        except BaseException:
            return YES if not _is_growing(Path(f"{folder}/alive")) else NO
    return NO


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A folder in which a call that is still running may write while it is removed."""
    folder = tempfile.mkdtemp(prefix="leveret-table-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_growing(path: Path) -> bool:
    """Whether the call is alive: looked at for as long as a busy machine may need."""
    before = path.stat().st_size if path.exists() else 0
    end = time.monotonic() + ALIVE_SECONDS
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size > before:
            return True
        time.sleep(0.01)
    return False


def _with_a_crash(kind: type[Contestant]) -> tuple[int, BaseException | None, bool]:
    """Good calls that are done, of 19; what the bad one failed with; and whether others did."""
    outcomes = kind(2).outcomes(crash_at, [(i, 7) for i in range(20)], GIVE_UP_SECONDS)
    done = sum(outcomes[i] == i * i for i in range(20) if i != 7)
    bad = outcomes[7] if isinstance(outcomes[7], BaseException) else None
    return done, bad, any(type(each) is type(bad) for i, each in enumerate(outcomes) if i != 7)


def others_kept(kind: type[Contestant]) -> str:
    """calls of 19 that are done when a 20th crashes"""
    return str(_with_a_crash(kind)[0])


def culprit(kind: type[Contestant]) -> str:
    """the call that crashed is told apart"""
    _, error, is_shared = _with_a_crash(kind)
    if error is None or is_shared:
        return NO
    return "by name and arguments" if "crash_at(7, 7)" in str(error) else "by its future"


def crash_traceback(kind: type[Contestant]) -> str:
    """where it crashed"""
    _, error, _ = _with_a_crash(kind)
    text = f"{error} {getattr(error, 'traceback', '')}"
    return YES if "in crash_at" in text else NO


def cancel(kind: type[Contestant]) -> str:
    """a call that runs can be ended by its caller"""
    executor = kind(2)
    with _folder() as folder:
        path = Path(folder) / "alive"
        future = executor.submit_killable(endless, str(path))
        while not path.exists():
            time.sleep(0.05)
        if not executor.cancel(future):
            return NO
        end = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < end:
            if not _is_growing(path):
                return YES
        return NO


def memory_limit(kind: type[Contestant]) -> str:
    """a memory limit for workers"""
    executor = kind(2, None, 1 << 30)
    try:
        executor.result(executor.submit(leak), 2 * GIVE_UP_SECONDS)
    except BaseException as error:
        return f"{YES} ({type(error).__name__})"
    return NO


def thread_limit(kind: type[Contestant]) -> str:
    """threads of libraries are limited"""
    os.environ.pop("OMP_NUM_THREADS", None)
    executor = kind(2)
    found = executor.result(executor.submit(threads), 2 * GIVE_UP_SECONDS)
    return NO if found is None else f"{YES} ({found})"


def awaitable(kind: type[Contestant]) -> str:
    """asyncio can await its futures"""
    executor = kind(2)

    async def wait() -> Any:
        future = executor.submit(square, 3)
        if isinstance(future, futures.Future):
            return await asyncio.wrap_future(future)
        return await future

    return YES if asyncio.run(asyncio.wait_for(wait(), 2 * GIVE_UP_SECONDS)) == 9 else NO


def closures(kind: type[Contestant]) -> str:
    """lambdas and closures"""
    executor, more = kind(2), 5
    got = executor.result(executor.submit(lambda x: x + more, 1), 2 * GIVE_UP_SECONDS)
    return YES if got == 6 else NO


def arrays(kind: type[Contestant]) -> str:
    """ms for a call with an array of 64 MB"""
    import numpy as np

    executor, array = kind(2), np.ones(8_000_000)
    times = []
    for _ in range(6):
        begin = time.monotonic()
        assert executor.result(executor.submit(total, array), 2 * GIVE_UP_SECONDS) == 8e6
        times.append(time.monotonic() - begin)
    return f"{sorted(times)[1] * 1e3:.0f}"


def endless_map(kind: type[Contestant]) -> str:
    """items that `map` takes of an endless iterator before its first result"""
    executor = kind(2)
    taken = itertools.count()

    def items() -> Iterator[int]:
        while next(taken) < 200_000:
            yield 1

    inner = executor.executor
    how = getattr(inner, "imap", None) or getattr(inner, "map", None)
    if how is None:
        return NO
    more: dict[str, Any] = {}
    if type(executor).__name__ == "_Leveret" or sys.version_info >= (3, 14):
        more = {"buffersize": 8}
    with contextlib.suppress(TypeError):
        results = how(square, items(), **more)
        next(iter(results))
        count = next(taken)
        return "all" if count >= 200_000 else str(count)
    return "all"


def first_result(kind: type[Contestant]) -> str:
    """ms from opening to the first result"""
    begin = time.monotonic()
    executor = kind(2)
    executor.result(executor.submit(square, 3), 2 * GIVE_UP_SECONDS)
    return f"{(time.monotonic() - begin) * 1e3:.0f}"


QUESTIONS: tuple[Callable[[type[Contestant]], str], ...] = (
    others_kept,
    culprit,
    crash_traceback,
    time_limit,
    cancel,
    memory_limit,
    thread_limit,
    awaitable,
    closures,
    endless_map,
    arrays,
    first_result,
)


def ask(name: str, question: str) -> None:
    """Prints the answer as JSON, and ends the process."""
    try:
        answer = globals()[question](contestants.ALL[name])
    except BaseException as error:
        answer = f"no ({type(error).__name__})"
    print(json.dumps({"answer": answer}), flush=True)
    os._exit(0)  # an executor that hangs at its end hangs


def table(names: list[str]) -> str:
    """The answers of these executors as a table in Markdown."""
    versions = contestants.installed()
    asked = [name for name in names if name in versions]
    lines = ["| | " + " | ".join(f"{name} {versions[name]}" for name in asked) + " |"]
    lines.append("|---" * (len(asked) + 1) + "|")
    pairs = [(name, question.__name__) for question in QUESTIONS for name in asked]

    def answer(pair: tuple[str, str]) -> str:
        program = f"from leveret.report import executor_table as t; t.ask({pair[0]!r}, {pair[1]!r})"
        found, is_ended = contestants.run_apart(program, PROBE_SECONDS)
        return "does not end" if is_ended else str(found.get("answer", "takes its host with it"))

    with futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(answer, pairs))
    for i, question in enumerate(QUESTIONS):
        row = answers[i * len(asked) : (i + 1) * len(asked)]
        lines.append(f"| {question.__doc__} | " + " | ".join(row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sys.argv[1:] or list(contestants.ALL)))
