"""leveret demo: the papers' applications side by side, checked, with pictures and a timeline.

    1. Mandelbrot, many frames: one task that Leveret dices, 128 tasks, one task that stays whole.
    2. LU factorisation of a 1024 x 1024 matrix by blocks, with dependencies instead of barriers.
    3. Barnes-Hut: gravity between 10,000 bodies.
    4. The likelihood of a phylogenetic tree of 107 species, 4,000 sites each.
    5. A Fourier transform in six steps, SAXPY, SGEMV, and CONV2D in blocks.

Every result is compared with the serial reference before its time is reported. With --kill it is
something else: see demo_kill.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Optional

import numpy as np
import numpy.typing as npt
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .. import apps
from ..array_apps import DEFAULT_N, run_arrays
from ..runtime import Runtime
from .common import (
    FAILED,
    check_out,
    check_workers,
    interruptible,
    notes,
    print_json,
    reporting,
    share_text,
    stop,
    tables,
    time_limit,
    writing,
)
from .demo_kill import demo_kill
from .missing import need_plot
from .run import busy_ns, idle_shares

ITERATIONS = 1000
TRACE_EVENTS = 1 << 17  # per worker: the whole demo without overwriting
LOCAL_STORE_BYTES = 1 << 20  # a whole picture fits, so that one undiced task is possible


@dataclass(frozen=True)
class Plan:
    """How much to do: the whole demo takes ten to twenty seconds, the quick one some."""

    frames_seconds: float  # of serial time for each way to draw frames
    frames_max: int
    lu_n: int
    lu_repeats: int
    bodies: int
    steps: int
    sites: int
    trees: int
    arrays: dict[str, tuple[int, int]]  # by application: n, how many times


# Arrays of 2 to 64 MiB: tasks of 4 (conv2d) to 28 us (sgemv) on an AMD EPYC.
FULL_ARRAYS = {
    "fft": (1 << 18, 20),
    "saxpy": (1 << 23, 20),
    "sgemv": (4096, 20),
    "conv2d": (1024, 40),
}
QUICK_ARRAYS = {name: (n, 2) for name, n in DEFAULT_N.items()}
FULL = Plan(1.0, 100, 1024, 5, 10_000, 8, 4_000, 20, FULL_ARRAYS)
QUICK = Plan(0.4, 2, 512, 1, 2_000, 2, 500, 2, QUICK_ARRAYS)


@dataclass(frozen=True)
class Row:
    """One line of the table. idle: share of each worker; host: of the thread that waits."""

    name: str
    amount: str
    seconds: float
    serial_seconds: float
    speed_up: float
    idle: list[float]
    host_idle: float
    tasks: int
    correct: bool


Step = Callable[[], None]


class Demo:
    """Runs the steps on one runtime, so that one trace shows them all."""

    def __init__(self, runtime: Runtime, plan: Plan, progress: Progress) -> None:
        self.opened = self.begun = perf_counter()  # a moment after the runtime's clock began
        self.phases: list[tuple[str, float, float]] = []  # name, begin, end, on this clock
        self.runtime = runtime
        self.plan = plan
        self.progress = progress
        self.rows: list[Row] = []
        self.picture: npt.NDArray[np.uint16] = np.zeros((0, 0), np.uint16)

    def run(self) -> None:
        start = perf_counter()
        apps.mandelbrot_picture(None, iterations=ITERATIONS)
        serial = perf_counter() - start
        wanted = int(self.plan.frames_seconds / max(serial, 1e-3))
        frames = max(1, min(self.plan.frames_max, wanted))
        for name, tasks, dice in (
            ("Mandelbrot, 1 task, diced", 1, True),
            ("Mandelbrot, 128 tasks", 128, False),
            ("Mandelbrot, 1 task, whole", 1, False),
        ):
            self.draw_frames(name, tasks, dice, frames)
        self.factor()
        self.move_bodies()
        self.compare_trees()
        self.work_on_arrays()

    def draw_frames(self, name: str, tasks: int, dice: bool, frames: int) -> None:
        """Each frame is drawn serially, then by tasks: what slows the computer down slows both."""
        bar = self.progress.add_task(name, total=frames)
        self.begun = perf_counter()
        runtime = self.runtime
        busy, submitted = busy_ns(runtime), runtime.counters()["submitted"]
        seconds, serial_seconds, correct = 0.0, 0.0, True
        for _ in range(frames):
            start = perf_counter()
            reference = apps.mandelbrot_picture(None, iterations=ITERATIONS)
            middle = perf_counter()
            self.picture = apps.mandelbrot_picture(
                runtime, iterations=ITERATIONS, tasks=tasks, dice=dice
            )
            seconds += perf_counter() - middle
            serial_seconds += middle - start
            correct = correct and bool(np.array_equal(self.picture, reference))
            self.progress.advance(bar)
        count = runtime.counters()["submitted"] - submitted
        self.add(name, f"{frames} frames", seconds, serial_seconds, busy, count, correct)

    def factor(self) -> None:
        n = self.plan.lu_n
        self.repeat(
            "LU by blocks",
            f"{n} x {n}",
            self.plan.lu_repeats,
            lambda: apps.lu(self.runtime, n=n, blocks=True, dependencies=True),
        )

    def move_bodies(self) -> None:
        bodies, steps = self.plan.bodies, self.plan.steps
        self.repeat(
            "Barnes-Hut",
            f"{bodies} bodies, {steps} steps",
            1,
            lambda: apps.barnes_hut(self.runtime, bodies=bodies, steps=steps),
        )

    def compare_trees(self) -> None:
        sites, trees = self.plan.sites, self.plan.trees
        self.repeat(
            "Likelihood of a tree",
            f"107 species, {sites} sites, {trees} trees",
            1,
            lambda: apps.likelihood(self.runtime, sites=sites, steps=trees, tasks=4),
        )

    def work_on_arrays(self) -> None:
        for name, app in (
            ("Fourier transform", "fft"),
            ("SAXPY", "saxpy"),
            ("SGEMV", "sgemv"),
            ("CONV2D", "conv2d"),
        ):
            n, steps = self.plan.arrays[app]
            amount = f"n = {n}, {steps} times"
            self.repeat(name, amount, 1, partial(run_arrays, self.runtime, app, n=n, steps=steps))

    def repeat(self, name: str, amount: str, times: int, once: Callable[[], apps.Report]) -> None:
        """Runs an application that checks itself; reports the sum."""
        bar = self.progress.add_task(name, total=times)
        self.begun = perf_counter()
        busy = busy_ns(self.runtime)
        reports = []
        for _ in range(times):
            reports.append(once())
            self.progress.advance(bar)
        self.add(
            name,
            amount,
            sum(r.seconds for r in reports),
            sum(r.serial_seconds for r in reports),
            busy,
            sum(r.tasks for r in reports),
            all(r.correct for r in reports),
        )

    def add(
        self,
        name: str,
        amount: str,
        seconds: float,
        serial_seconds: float,
        busy_before_ns: list[int],
        tasks: int,
        correct: bool,
    ) -> None:
        self.phases.append((name, self.begun, perf_counter()))
        *idle, host = idle_shares(self.runtime, busy_before_ns, seconds)
        speed_up = serial_seconds / seconds if seconds > 0 else 0.0
        row = Row(name, amount, seconds, serial_seconds, speed_up, idle, host, tasks, correct)
        self.rows.append(row)


def print_rows(rows: list[Row]) -> None:
    table = Table("run", "work", "result", "serial s", "Leveret s", "speed-up", "tasks", "idle")
    for row in rows:
        idle = " ".join(map(share_text, row.idle)) + f", host {share_text(row.host_idle)}"
        table.add_row(
            row.name,
            row.amount,
            "right" if row.correct else "WRONG",
            f"{row.serial_seconds:.3f}",
            f"{row.seconds:.3f}",
            f"{row.speed_up:.2f}",
            str(row.tasks),
            idle,
        )
    tables().print(table)
    # Blocks fit a cache, columns do not: more than the number of cores is no mistake.
    tables().print("LU's serial reference goes by columns; by blocks one core alone is faster.")


def write_files(demo: Demo, out: Path) -> dict[str, str]:
    """Writes the pictures, the trace and its page and picture; returns what is where."""
    from ..report.plots import save_mandelbrot, save_speed_ups  # matplotlib takes a second to load
    from ..report.timeline import Phase, timeline_html
    from ..report.timeline_svg import timeline_svg
    from ..report.traces import read_trace

    files = {
        "picture": out / "mandelbrot.png",
        "plot": out / "speed_ups.png",
        "timeline": out / "timeline.html",
        "timeline picture": out / "timeline.svg",
        "trace": out / "trace.json",
    }
    save_mandelbrot(demo.picture, ITERATIONS, files["picture"])
    labels, speed_ups = [row.name for row in demo.rows], [row.speed_up for row in demo.rows]
    save_speed_ups(labels, speed_ups, demo.runtime.workers + 1, files["plot"])
    demo.runtime.write_trace(files["trace"])
    trace = read_trace(files["trace"])

    def at_us(moment: float) -> float:
        """A moment of this clock as one of the trace."""
        since = (moment - demo.opened) * 1e6 - trace.start_us
        return min(max(since, 0.0), trace.length_us)

    phases = [Phase(name, at_us(begin), at_us(end)) for name, begin, end in demo.phases]
    title = "leveret demo"
    files["timeline"].write_text(timeline_html(trace, title, phases=phases), "utf-8")
    files["timeline picture"].write_text(timeline_svg(trace, title, phases), "utf-8")
    return {what: str(path) for what, path in files.items()}


@reporting
def demo(
    out: Path = typer.Option(Path("leveret-demo"), help="Folder for the pictures and the trace."),
    quick: bool = typer.Option(False, "--quick", help="Small sizes: some seconds in all."),
    kill: bool = typer.Option(False, "--kill", help="Draw while worker processes are killed."),
    workers: Optional[int] = typer.Option(
        None, help="Without: one less than the cores; all of them with --kill."
    ),
    timeout: Optional[float] = typer.Option(None, help="Give up after that many seconds."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run the papers' applications, checked, with pictures."""
    count = check_workers(workers)
    need_plot()
    check_out(out)
    out.mkdir(parents=True, exist_ok=True)
    if kill:
        with time_limit(timeout), interruptible():
            demo_kill(out, quick, count, as_json)
        return
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    runtime = Runtime(workers=count, trace_events=TRACE_EVENTS, local_store_bytes=LOCAL_STORE_BYTES)
    with time_limit(timeout), runtime:
        with Progress(*columns, console=notes()) as progress:
            made = Demo(runtime, QUICK if quick else FULL, progress)
            made.run()
        try:
            if not as_json:
                print_rows(made.rows)
        finally:  # whatever becomes of the table, as the table comes whatever becomes of the files
            with writing(out):
                files = write_files(made, out)
    correct = all(row.correct for row in made.rows)
    if as_json:
        print_json({"correct": correct, "runs": [asdict(r) for r in made.rows], "files": files})
    else:
        for what, path in files.items():
            notes().print(f"{what}: {path}")
    if not correct:
        stop(FAILED, "a result differs from the serial reference")
