"""leveret bench: runs leveret-bench, or a bench of Python; shows each figure beside its goal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any, Optional

import typer

from .common import (
    ENVIRONMENT,
    FAILED,
    TIMED_OUT,
    USAGE,
    check_folder,
    check_timeout,
    notes,
    print_json,
    reporting,
    stop,
    tables,
    time_limit,
    writing,
)
from .missing import need_plot

_POOL = "beside the standard library's process pool"
# The benches that are Python: module of leveret.report and function that measure, and what.
_OWN = {
    "python": ("python_bench.measure", f"null tasks from Python, {_POOL}"),
    "python-native": ("executor_bench.measure_native", f"null tasks on processes, {_POOL}"),
    "python-function": ("executor_bench.measure_function", f"null functions, {_POOL}"),
    "python-array": ("executor_bench.measure_array", f"1 MiB to a function and back, {_POOL}"),
    "crash-test": (
        "executor_bench.measure_crashes",
        "20 calls, one of which crashes: how many done",
    ),
    "bad-inputs": ("bad_inputs.measure", "200 inputs, 7 of them bad: results, culprits, seconds"),
    "ctrl-c": (
        "end_bench.measure_ctrl_c",
        f"seconds from Ctrl-C to the end of a program, {_POOL}",
    ),
    "time-out": ("end_bench.measure_time_out", "milliseconds from a call's limit to its end"),
    "mpi": ("mpi_bench.measure", "MPI ranks that share the workers of a node; calls that abort"),
    "exercise": ("exercise_bench.measure", "programs at random: failures; planted faults found"),
    "start": ("start_bench.measure", f"import, help, first result of an executor, {_POOL}"),
    "repro": ("repro_bench.measure", "the papers' results: share in band, seconds, each row"),
    "cluster": ("cluster_bench.measure", "slices and calls on Dask, whose workers are killed"),
}
# The benches whose figures can be drawn: those of report.plots, which takes a second to load.
DRAWN = ("get-compute-put", "host-wait")
_GOAL = re.compile(r"\s*(<=|>=|<|>|=)\s*([-+0-9.eE]+)\s*")


_BUILT = ("build/release/bench/leveret-bench", "build/bench/leveret-bench")
_BUILD = "cmake --preset release && cmake --build --preset release --target leveret_bench"


def find_bench() -> Path:
    """leveret-bench on the PATH, or built in the checkout that this package lies in.

    It is no part of the package. FileNotFoundError says how to build it where there is none.
    """
    found = shutil.which("leveret-bench")
    if found is not None:
        return Path(found)
    for folder in Path(__file__).resolve().parents:
        if (folder / "bench" / "CMakeLists.txt").is_file():
            for each in _BUILT:
                if os.access(folder / each, os.X_OK):
                    return folder / each
    raise FileNotFoundError(
        f"leveret-bench is no part of the package; build it in a checkout of Leveret ({_BUILD}) "
        "and put build/release/bench on the PATH"
    )


def measure(name: str, quick: bool) -> dict[str, Any]:
    """The report of a bench that is Python."""
    module, _, function = _OWN[name][0].partition(".")
    loaded = import_module(f"..report.{module}", __package__)
    report: dict[str, Any] = getattr(loaded, function)(quick)
    return report


def is_met(value: Optional[float], goal: str) -> Optional[bool]:
    """Whether a figure meets its goal, such as "<= 1.25"; None when there is nothing to tell."""
    match = _GOAL.fullmatch(goal)
    if value is None or match is None:
        return None
    bound = float(match[2])
    return {
        "<=": value <= bound,
        ">=": value >= bound,
        "<": value < bound,
        ">": value > bound,
        "=": value == bound,
    }[match[1]]


def _figure_text(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.4g}"


def print_figures(report: dict[str, Any], peers: bool) -> None:
    from rich.table import Table

    machine = report.get("machine", {})
    tables().print(
        f"{report.get('bench')} on {machine.get('cpu')}, {machine.get('cores')} cores, "
        f"commit {report.get('commit')}"
    )
    columns = ["figure", "median", "unit", "spread", "goal", ""]
    table = Table(*columns, *(["measured against"] if peers else []))
    for key, figure in report["figures"].items():
        spread = figure.get("spread")
        goal = figure.get("goal") or ""
        met = is_met(figure["value"], goal)
        row = [
            key,
            _figure_text(figure["value"]),
            figure.get("unit") or "",
            " .. ".join(map(_figure_text, spread)) if spread else "",
            goal,
            "" if met is None else ("met" if met else "MISSED"),
        ]
        table.add_row(*row, *([figure.get("rival") or ""] if peers else []))
    tables().print(table)
    for key, parts in report.get("parts", {}).items():
        within = Table(f"of {key}", report["figures"][key].get("unit") or "")
        for part, value in parts.items():
            within.add_row(part, _figure_text(value))
        tables().print(within)


def run_bench(arguments: list[str], timeout: Optional[float] = None) -> str:
    """Runs leveret-bench and returns what it prints; its failures end the command."""
    command = [str(find_bench()), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        stop(TIMED_OUT, f"leveret-bench was not done after {timeout:g} s")
    if done.returncode == USAGE:
        stop(USAGE, f"there is no bench '{arguments[0]}'; `leveret bench` lists them")
    if done.stderr:
        notes().print(done.stderr.rstrip())
    if done.returncode < 0:
        stop(ENVIRONMENT, f"leveret-bench was ended by signal {-done.returncode}")
    if done.returncode != 0:
        stop(FAILED, f"leveret-bench {' '.join(arguments)} did not work")
    return done.stdout


def _list(as_json: bool) -> None:
    missing: Optional[FileNotFoundError] = None
    benches: dict[str, str] = {}
    try:
        lines = run_bench(["--list"]).splitlines()
        benches = dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) > 1)
    except FileNotFoundError as error:
        missing = error
    benches.update({name: what for name, (_, what) in _OWN.items()})
    if missing is not None:
        notes().print(f"leveret: {missing}")
    if as_json:
        print_json({"benches": benches})
        return
    from rich.table import Table

    table = Table("bench", "what it measures")
    for name, what in benches.items():
        table.add_row(name, what)
    tables().print(table)


@reporting
def bench(
    name: Optional[str] = typer.Argument(None, help="Which one; without a name they are listed."),
    peers: bool = typer.Option(False, "--peers", help="Show what each figure is measured against."),
    quick: bool = typer.Option(False, "--quick", help="Does it work? Not to be quoted."),
    timeout: Optional[float] = typer.Option(None, help="Give up after that many seconds."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
    plot: Optional[Path] = typer.Option(None, "--plot", help=f"Draw {' or '.join(DRAWN)}."),
) -> None:
    """Run a benchmark; shows the goal beside each figure."""
    check_timeout(timeout)
    if plot is not None and name not in DRAWN:
        stop(USAGE, f"--plot is for the benches {' and '.join(DRAWN)}")
    if plot is not None:
        need_plot()
    check_folder("--plot", plot)
    if name is None:
        _list(as_json)
        return
    if name.startswith("-"):
        stop(USAGE, f"there is no bench '{name}'; `leveret bench` lists them")
    if name in _OWN:
        with time_limit(timeout):
            report = measure(name, quick)
        print_json(report) if as_json else print_figures(report, peers)
        return
    printed = run_bench([name, "--json", *(["--quick"] if quick else [])], timeout)
    try:
        report = json.loads(printed)
        if not isinstance(report["figures"], dict):
            raise TypeError("figures must be an object")
        try:
            print_json(report) if as_json else print_figures(report, peers)
        finally:  # also where nobody reads the figures to their end
            if plot is not None:
                from ..report.plots import save_bench

                with writing(plot):
                    save_bench(report, plot)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        stop(ENVIRONMENT, f"leveret-bench printed what is no report: {error!r}")
