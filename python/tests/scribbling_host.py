"""A host whose workers write over what they share with it, at random, while calls run.

    python scribbling_host.py SEED SECONDS WHERE

WHERE is lane, heap or all: which of the shared mappings are written to. Each call must have an end;
those that ran in a process where nobody wrote, and whose data is not in the heap, the right one.
The program ends with 0 and says how many calls there were.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np

import leveret

REACH = 4 << 20  # what of a mapping is written to: the heap has little more that is used
PATTERNS = (b"\x00", b"\xff", b"\x7f", b"\x01\x00\x00\x00\x00\x00\x00\x00")
NAMES = {"lane": ("leveret-lane",), "heap": ("leveret-heap",)}


def shared_mappings(where: str) -> list[tuple[int, int]]:
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split()
        if words[1] == "rw-s" and any(n in line for n in NAMES.get(where, ("leveret",))):
            begin, end = (int(x, 16) for x in words[0].split("-"))
            found.append((begin, min(end - begin, REACH)))
    return found


def scribble(seed: int, where: str) -> int:
    """Writes over some places, or over all there is."""
    rng = random.Random(seed)
    for begin, size in shared_mappings(where):
        for _ in range(rng.choice((1, 10, 300))):
            length = min(size, 1 << rng.randrange(1, 22))
            at = begin + rng.randrange(0, size - length + 1)
            pattern = rng.choice((*PATTERNS, rng.randbytes(64)))
            ctypes.memmove(at, (pattern * (length // len(pattern) + 1))[:length], length)
    return os.getpid()


def scribble_later(seed: int, where: str) -> int:
    """The same by a thread that is left behind, while other calls of the process run."""

    pause = threading.Event()

    def run() -> None:
        for i in range(20):
            scribble(seed + i, where)
            pause.wait(0.001)

    threading.Thread(target=run, daemon=True).start()
    return os.getpid()


def small(n: int) -> tuple[int, int]:
    return os.getpid(), n * n


def large(n: int) -> tuple[int, np.ndarray]:
    return os.getpid(), np.full(20_000, n)


def is_right(number: int, how: str, value: object) -> bool:
    if how == "small":
        return value == number * number
    return isinstance(value, np.ndarray) and bool((value == number).all())


def one_round(seed: int, where: str, counts: dict[str, int]) -> None:
    rng = random.Random(seed)
    culprits: set[int] = set()
    pending: list[tuple[str, int, futures.Future[object]]] = []
    # Without a time limit a worker that was made to say nothing would be waited for.
    with leveret.ProcessExecutor(3, timeout=2, max_attempts=2) as executor:
        for i in range(60):
            how = rng.choice(("small", "small", "large"))
            pending.append((how, i, executor.submit(globals()[how], i)))
            if rng.random() < 0.1:
                bad = rng.choice((scribble, scribble_later))
                pending.append(("bad", i, executor.submit(bad, seed + i, where)))
        unended = futures.wait([future for *_, future in pending], 90).not_done
        if unended:
            print(f"seed {seed}, {where}: {len(unended)} calls have no end", flush=True)
            os._exit(1)
    ends: list[tuple[str, int, Any]] = []
    for how, i, future in pending:
        if future.exception() is None:
            ends.append((how, i, future.result()))
        else:
            counts["errors"] += 1
    for how, _, value in ends:
        if how == "bad" and isinstance(value, int):
            culprits.add(value)
    for how, i, value in ends:
        counts["ends"] += 1
        if how == "bad" or (how == "large" and where != "lane"):
            continue
        whole = isinstance(value, tuple) and len(value) == 2
        if whole and value[0] in culprits:
            continue
        if not whole or not is_right(i, how, value[1]):
            raise SystemExit(f"seed {seed}, {where}: {how}({i}) gave {value!r}")


def main() -> None:
    seed, seconds, where = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    counts = {"ends": 0, "errors": 0, "rounds": 0}
    end = time.monotonic() + seconds
    while counts["rounds"] == 0 or time.monotonic() < end:
        one_round(seed, where, counts)
        seed += 1000
        counts["rounds"] += 1
    with leveret.ProcessExecutor(1) as executor:
        assert executor.submit(pow, 3, 4).result(60) == 81
    print(counts)


if __name__ == "__main__":
    main()
