"""leveret demo --kill: a picture drawn by worker processes that are killed all the time.

1. Draw the serial picture.
2. Draw it on `processes`, while a thread kills one worker after the other with SIGKILL.
3. Compare, byte for byte. Again, until enough workers have died.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import _core, apps
from ..errors import Unavailable
from ..process_stat import parent_of
from ..runtime import Runtime
from .common import FAILED, notes, print_json, stop, tables, writing

ATTEMPTS = 1000  # the most there may be: it is not the tasks that kill
RESTARTS = 1_000_000
SHOWN_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class Plan:
    """How much to do. kill_seconds: from one kill to the next. deaths: at least so many."""

    width: int
    height: int
    tasks: int
    kill_seconds: float
    deaths: int


FULL = Plan(1920, 1440, 1440, 0.004, 100)
QUICK = Plan(320, 240, 120, 0.003, 5)


@dataclass(frozen=True)
class Result:
    """What --json prints, with the files. frames: drawn, each compared with the serial picture."""

    correct: bool
    frames: int
    deaths: int
    reruns: int
    tasks: int
    seconds: float
    serial_seconds: float
    sha256: str


def kill_worker(pid: int) -> None:
    """Kills a worker process of this program, and nothing that has got its number since."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if parent_of(parent_of(pid)) == os.getpid():  # the parent is its zygote
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def own_workers() -> list[int]:
    """The worker processes of this program's runtimes."""
    pools = _core.look_at_pools(os.getpid())
    return [each["pid"] for pool in pools for each in pool["workers"] if each["pid"]]


@contextlib.contextmanager
def _every(seconds: float, work: Callable[[], object]) -> Iterator[None]:
    """Does it again and again while the block runs, on a thread."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(seconds):
            work()

    thread = threading.Thread(target=run, name="leveret-demo")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def killing(every_seconds: float, seed: int, spared: set[int]) -> Iterator[None]:
    """While the block runs, workers die one after the other, but for those of `spared` parents."""
    chance = random.Random(seed)

    def kill() -> None:
        with contextlib.suppress(Unavailable):  # there is no runtime
            workers = [pid for pid in own_workers() if parent_of(pid) not in spared]
            if workers:
                kill_worker(chance.choice(workers))

    with _every(every_seconds, kill):
        yield


@contextlib.contextmanager
def showing(runtime: Runtime, progress: Progress, frame: int) -> Iterator[None]:
    """A bar for a frame, with the deaths, while the block runs native code."""
    bar = progress.add_task(f"frame {frame}", total=None, deaths=0, reruns=0)
    before = runtime.counters()

    def show() -> None:
        now = runtime.counters()
        progress.update(
            bar,
            total=now["submitted"] - before["submitted"],
            completed=now["completed"] - before["completed"],
            deaths=now["deaths"],
            reruns=now["reruns"],
        )

    try:
        with _every(SHOWN_EVERY_SECONDS, show):
            yield
    finally:
        show()


def draw(plan: Plan, workers: int, progress: Progress) -> tuple[Result, npt.NDArray[np.uint16]]:
    width, height = plan.width, plan.height
    start = perf_counter()
    reference = apps.mandelbrot_picture(None, width=width, height=height)
    serial_seconds = perf_counter() - start
    expected = reference.tobytes()
    frames, seconds, correct = 0, 0.0, True
    spared: set[int] = set()
    with contextlib.suppress(Unavailable):  # there is no other runtime
        spared.update(map(parent_of, own_workers()))
    with Runtime(
        "processes", workers=workers, max_attempts=ATTEMPTS, restarts_max=RESTARTS
    ) as runtime:
        own_workers()  # raises where it cannot be done: nobody would be killed
        while correct and runtime.counters()["deaths"] < plan.deaths:
            frames += 1
            with showing(runtime, progress, frames), killing(plan.kill_seconds, frames, spared):
                start = perf_counter()
                picture = apps.mandelbrot_picture(
                    runtime, width=width, height=height, tasks=plan.tasks
                )
                seconds += perf_counter() - start
            correct = picture.tobytes() == expected
        counters = runtime.counters()
    digest = hashlib.sha256(picture.tobytes()).hexdigest()
    result = Result(
        correct,
        frames,
        counters["deaths"],
        counters["reruns"],
        counters["completed"],
        seconds,
        serial_seconds,
        digest,
    )
    return result, picture


def demo_kill(out: Path, quick: bool, workers: int, as_json: bool) -> None:
    """What `leveret demo --kill` does."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks, {task.fields[reruns]} run again, {task.fields[deaths]} workers killed"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=notes()) as progress:
        result, picture = draw(QUICK if quick else FULL, workers, progress)
    from ..report.plots import save_mandelbrot  # matplotlib takes a second to load

    path = out / "mandelbrot_killed.png"
    with writing(path):
        save_mandelbrot(picture, 1000, path)
    if as_json:
        print_json({**asdict(result), "files": {"picture": str(path)}})
    else:
        report(result, path)
    if not result.correct:
        stop(FAILED, "the picture differs from the serial one")


def report(result: Result, path: Path) -> None:
    """What people read."""
    compared = "byte for byte the serial one" if result.correct else "NOT the serial one"
    tables().print(
        f"{result.deaths} worker processes died, {result.reruns} tasks were run again. "
        f"Picture {result.frames} is {compared}."
    )
    tables().print(f"SHA-256 of its pixels: {result.sha256}")
    notes().print(f"picture: {path}")
