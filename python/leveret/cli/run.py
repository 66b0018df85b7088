"""leveret run: one application, checked, timed and if asked traced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional

import typer
from rich.table import Table

from .. import apps
from ..array_apps import run_arrays
from ..runtime import Runtime
from .common import (
    FAILED,
    USAGE,
    check_apart,
    check_folder,
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
from .missing import need_plot

ARRAYS = ("fft", "saxpy", "sgemv", "conv2d")
APPS = ("mandelbrot", "lu", "barnes-hut", "likelihood", "aes", "list-ranking", *ARRAYS)
_SIM_MACHINE = "What `sim` simulates: cell-ps3, cell-qs20, cell-qs21, or a machine file."
TRACE_EVENTS = 1 << 16  # per worker: a run of some seconds with tasks of 100 us


@dataclass(frozen=True)
class Sizes:
    """What the options say about the work; None where they do not."""

    n: Optional[int]
    tasks: Optional[int]
    frames: Optional[int]
    dice: bool
    species: Optional[int] = None


def _picture_of(sizes: Sizes) -> dict[str, Any]:
    width = sizes.n or 640
    height = max(1, width * 3 // 4)
    return {"width": width, "height": height, "tasks": sizes.tasks, "dice": sizes.dice}


def _run_mandelbrot(runtime: Runtime, sizes: Sizes) -> apps.Report:
    return apps.mandelbrot(runtime, frames=sizes.frames or 1, **_picture_of(sizes))


def save_picture(runtime: Runtime, sizes: Sizes, out: Path) -> None:
    """Draws the picture once more, and writes it."""
    from ..report.plots import save_mandelbrot  # matplotlib takes a second to load

    save_mandelbrot(apps.mandelbrot_picture(runtime, **_picture_of(sizes)), 1000, out)


def _run_lu(runtime: Runtime, sizes: Sizes) -> apps.Report:
    n = sizes.n or 1024
    columns = -(-n // sizes.tasks) if sizes.tasks else 1
    if sizes.tasks == 1:
        columns = 0  # one task for all columns, which the dicer cuts
    return apps.lu(runtime, n=n, columns_per_task=columns, dice=sizes.dice)


def _run_barnes_hut(runtime: Runtime, sizes: Sizes) -> apps.Report:
    bodies = sizes.n or 10_000
    set_bodies = max(1, -(-bodies // sizes.tasks)) if sizes.tasks else 512
    return apps.barnes_hut(
        runtime, bodies=bodies, steps=sizes.frames or 1, set_bodies=set_bodies, dice=sizes.dice
    )


# Applications whose options are those of the command, under other names; with the function.
_PLAIN: dict[str, tuple[Callable[..., apps.Report], dict[str, str]]] = {
    "likelihood": (
        apps.likelihood,
        {"species": "species", "sites": "n", "tasks": "tasks", "steps": "frames"},
    ),
    "aes": (apps.aes, {"n": "n", "tasks": "tasks"}),
    "list-ranking": (apps.list_ranking, {"nodes": "n", "tasks": "tasks"}),
    **{
        app: (partial(run_arrays, app=app), {"n": "n", "tasks": "tasks", "steps": "frames"})
        for app in ARRAYS
    },
}


def _run_plain(runtime: Runtime, app: str, sizes: Sizes) -> apps.Report:
    run, names = _PLAIN[app]
    given = {name: getattr(sizes, option) for name, option in names.items()}
    given = {name: value for name, value in given.items() if value is not None}
    return run(runtime, **given, dice=sizes.dice)


SIZE_MAX = 2**53  # of sizes: what a JSON number and a double can say


def run_app(runtime: Runtime, app: str, sizes: Sizes) -> apps.Report:
    """Runs an application by name. ValueError for options it does not have."""
    for name, value in (
        ("--n", sizes.n),
        ("--tasks", sizes.tasks),
        ("--frames", sizes.frames),
        ("--species", sizes.species),
    ):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, not {value}")
        if value is not None and value > SIZE_MAX:
            raise ValueError(f"{name} must be at most {SIZE_MAX}, not {value}")
    if sizes.frames is not None and app in ("lu", "aes", "list-ranking"):
        raise ValueError(f"--frames: {app} has no frames; repeat the command")
    own = {"mandelbrot": _run_mandelbrot, "lu": _run_lu, "barnes-hut": _run_barnes_hut}
    return own[app](runtime, sizes) if app in own else _run_plain(runtime, app, sizes)


def idle_shares(runtime: Runtime, busy_before_ns: list[int], seconds: float) -> list[float]:
    """Idle share of each worker since `busy_before_ns`, over the seconds a run took."""
    busy = busy_ns(runtime)
    if seconds <= 0:
        return [0.0 for _ in busy]
    spent = [now - before for now, before in zip(busy, busy_before_ns)]
    return [min(1.0, max(0.0, 1 - ns * 1e-9 / seconds)) for ns in spent]


def busy_ns(runtime: Runtime) -> list[int]:
    """Time inside procedures, per worker; the last entry is the helping host."""
    return [worker["busy_ns"] for worker in runtime.worker_counters()]


@dataclass(frozen=True)
class Done:
    """A run that is over. idle: of each worker and the host, when it was traced."""

    report: apps.Report
    machine: str
    workers: int
    idle: Optional[list[float]]
    trace: Optional[Path]
    out: Optional[Path]

    def facts(self) -> dict[str, object]:
        return {
            **asdict(self.report),
            "speed_up": self.report.speed_up,
            "machine": self.machine,
            "workers": self.workers,
            "idle_shares": self.idle,
            "trace": str(self.trace) if self.trace else None,
            "out": str(self.out) if self.out else None,
        }


def run_checked(
    app: str,
    machine: str,
    options: dict[str, Any],
    sizes: Sizes,
    trace: Optional[Path],
    out: Optional[Path],
) -> Done:
    """Opens a runtime, runs the application, writes the trace."""
    with Runtime(machine, **options) as runtime:
        before = busy_ns(runtime)
        report = run_app(runtime, app, sizes)
        idle = None
        if trace is not None:
            idle = idle_shares(runtime, before, report.seconds)
            runtime.write_trace(trace)
        if out is not None:  # after that: what it takes belongs neither to the trace nor to `idle`
            with writing(out):
                save_picture(runtime, sizes, out)
        return Done(report, runtime.machine, runtime.workers, idle, trace, out)


def print_report(report: apps.Report, idle: Optional[list[float]]) -> None:
    table = Table("what", "value")
    table.add_row("application", report.app)
    table.add_row("result", "right" if report.correct else "WRONG")
    table.add_row("time", f"{report.seconds:.4f} s")
    table.add_row("serial time", f"{report.serial_seconds:.4f} s")
    table.add_row("speed-up", f"{report.speed_up:.2f}")
    table.add_row("tasks", str(report.tasks))
    table.add_row("error", f"{report.error:.3g}")
    if idle is not None:
        *workers, host = idle
        shares = " ".join(map(share_text, workers))
        table.add_row("idle share of workers", f"{shares}, host {share_text(host)}")
    tables().print(table)


SHORT_US = 5.0  # a task of no more is slowed down by what any task costs


def print_advice(report: apps.Report) -> None:
    """One line, when the serial program would have been quicker."""
    if report.tasks == 0 or not 0 < report.speed_up < 1:
        return
    each_us = report.serial_seconds * 1e6 / report.tasks
    tasks = f"slower than the serial program: {report.tasks} tasks of {each_us:.2g} us each; "
    if each_us <= SHORT_US:
        advice = (
            "tasks should have some microseconds of work: "
            "a larger --n or a smaller --tasks gives them more"
        )
    else:
        advice = (
            "is the computer busy with other programs, or do the tasks wait for memory, "
            "all of them at once?"
        )
    notes().print(tasks + advice)


@reporting
def run(
    app: str = typer.Argument(help=f"One of {', '.join(APPS)}."),
    machine: str = typer.Option("threads", help="See `leveret info`."),
    sim_machine: Optional[str] = typer.Option(None, help=_SIM_MACHINE),
    workers: Optional[int] = typer.Option(None, help="Without: one less than the cores."),
    tasks: Optional[int] = typer.Option(None, help="Tasks a step is handed over as."),
    dice: bool = typer.Option(True, help="Let Leveret cut tasks further."),
    staging: str = typer.Option("auto", help="auto, in_place or copy."),
    depth: int = typer.Option(0, help="Tasks looked ahead; 0: Leveret chooses."),
    contexts: int = typer.Option(0, help="Tasks a worker has under way; 0: Leveret chooses."),
    pool: Optional[str] = typer.Option(None, help="Share the workers of this pool (processes)."),
    n: Optional[int] = typer.Option(None, help="Columns, bodies, sites, bytes, elements."),
    frames: Optional[int] = typer.Option(None, help="Frames, steps of time, trees, or times."),
    species: Optional[int] = typer.Option(None, help="Species (likelihood); 107."),
    local_store: int = typer.Option(256 << 10, help="Bytes of each worker's local store."),
    trace: Optional[Path] = typer.Option(None, help="Write a Chrome/Perfetto trace."),
    out: Optional[Path] = typer.Option(None, help="Write the picture as PNG (mandelbrot)."),
    timeout: Optional[float] = typer.Option(None, help="Give up after that many seconds."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run an application of the papers, checked.

    Its result is compared with that of its serial reference.
    """
    if app not in APPS:
        stop(USAGE, f"there is no application '{app}'; there are: {', '.join(APPS)}")
    if pool is not None and machine != "processes":
        raise ValueError(f"--pool shares worker processes: add --machine processes, not {machine}")
    if sim_machine is not None and machine != "sim":
        raise ValueError(f"--sim-machine is simulated: add --machine sim, not {machine}")
    if out is not None and app != "mandelbrot":
        raise ValueError(f"--out is the picture of mandelbrot; {app} has none")
    if species is not None and app != "likelihood":
        raise ValueError(f"--species is for likelihood; {app} has none")
    if out is not None:
        need_plot()
    options = {
        "workers": check_workers(workers),
        "staging": staging,
        "depth": depth,
        "contexts": contexts,
        "pool": pool,
        "sim_machine": sim_machine,
        "local_store_bytes": local_store,
        "trace_events": TRACE_EVENTS if trace is not None else 0,
        "tickets": 1 << 16 if app == "lu" else 4096,
    }
    check_folder("--trace", trace)
    check_folder("--out", out)
    check_apart(trace, out)
    with time_limit(timeout), interruptible():
        sizes = Sizes(n, tasks, frames, dice, species)
        done = run_checked(app, machine, options, sizes, trace, out)
    if as_json:
        print_json(done.facts())
    else:
        print_report(done.report, done.idle)
        if done.machine != "sim":  # its seconds are not those of the serial program
            print_advice(done.report)
    if not done.report.correct:
        stop(FAILED, f"{app}: the result differs from the serial reference")
