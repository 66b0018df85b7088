"""Programs to which a signal comes at each step of them in turn, and ends what they run.

python interrupted_calls.py BODY HANDLER FIRST STRIDE

Python runs a signal's handler where a call has returned or a function begins. A profile function
is called there too, and what it raises goes on from there as a handler's exception does: so each
such moment has its turn, whatever the machine's speed. Prints how many there were.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import leveret
from leveret import ProcessExecutor

SECONDS_MAX = 300  # of a round, which takes less than one on a free machine
FOLDER = str(Path(leveret.__file__).parent)


def hang(*_: object) -> None:
    threading.Event().wait()


def interrupts(_: ProcessExecutor) -> None:
    raise KeyboardInterrupt


def terminates(pool: ProcessExecutor) -> None:
    pool.terminate_workers()


def shuts_down(pool: ProcessExecutor) -> None:
    pool.shutdown(False, cancel_futures=True)
    raise KeyboardInterrupt


class Steps:
    """Calls the handler at the step of leveret's modules with this number."""

    def __init__(self, number: int, handler: Callable[[], None]) -> None:
        self.left = number
        self.handler = handler
        self.has_come = False

    def __call__(self, frame: Any, event: str, _: object) -> None:
        if event not in ("c_return", "call") or not frame.f_code.co_filename.startswith(FOLDER):
            return
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            self.has_come = True
            self.handler()


def submits(pool: ProcessExecutor, futures: list[Any]) -> None:
    # Two run, some wait in the runtime, some in the queue.
    futures.extend(pool.submit(hang) for _ in range(6))


def submits_by_options(pool: ProcessExecutor, futures: list[Any]) -> None:
    view = pool.options(timeout=500, cancel="kill", priority=1)
    futures.extend(view.submit(hang, bytes(9)) for _ in range(3))
    futures[-1].cancel()
    futures.extend(pool.submit(hang) for _ in range(2))
    futures.append(view.submit(hang, bytes(9)))  # before one that waits


def maps(pool: ProcessExecutor, _: list[Any]) -> None:
    pool.map(hang, range(6), chunksize=1)


def submits_many(pool: ProcessExecutor, _: list[Any]) -> None:
    pool.submit_many(hang, iter(range(6)))


def ends_a_map(pool: ProcessExecutor, _: list[Any]) -> None:
    results = pool.map(hang, range(4), chunksize=1)
    results.close()  # type: ignore[attr-defined]


def is_interrupted(
    body: Callable[[ProcessExecutor, list[Any]], None],
    handler: Callable[[ProcessExecutor], None],
    number: int,
) -> bool:
    """Whether the body has so many steps. Its block ends, and with it what runs."""
    futures: list[Any] = []
    with contextlib.suppress(KeyboardInterrupt), ProcessExecutor(2, preload=()) as pool:
        steps = Steps(number, functools.partial(handler, pool))
        sys.setprofile(steps)
        with contextlib.suppress(leveret.Closed):
            body(pool, futures)
        sys.setprofile(None)
        if handler is not terminates or not steps.has_come:
            raise KeyboardInterrupt  # where the body was shorter, or Python lets nobody have it
    assert all(each.done() for each in futures), futures
    return steps.has_come


def main(body: str, handler: str, number: int, stride: int) -> None:
    while True:
        faulthandler.dump_traceback_later(SECONDS_MAX, exit=True)
        if not is_interrupted(globals()[body], globals()[handler], number):
            break
        number += stride
    faulthandler.cancel_dump_traceback_later()
    print(number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
