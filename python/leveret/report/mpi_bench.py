"""The bench "mpi": ranks that share the workers of their node.

1. 4 ranks hand 1,000 tasks that abort to 2 workers that they share: ranks_lost, named.
2. The likelihood of trees of 107 species, a task for each inner node, by 1 to 4 ranks on two cores:
   time with 2 workers that all share, over time with a private pool of 2 workers for each rank. In
   turns, in one job: waiting for each level of the tree, then (graph_) by dependencies.

Needs mpi4py and an mpirun. The ranks run mpi_ranks.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
from typing import Any

from ..errors import Status, Unavailable
from .figures import figure, report

RANKS = 4
# In phases, as programs do that wait for what they offload; and by dependencies.
SCHEDULES = ("", "graph_")
PRIVATE = "a private pool of 2 workers for each rank"


def launcher() -> tuple[list[str], str]:
    """The words that start ranks, and mpi4py's name of that MPI; Unavailable names what lacks."""
    if importlib.util.find_spec("mpi4py") is None:
        raise Unavailable("bench mpi needs mpi4py: pip install mpi4py", Status.UNAVAILABLE)
    found = shutil.which("mpirun")
    if found is None:
        text = "bench mpi needs mpirun: install openmpi-bin or mpich"
        raise Unavailable(text, Status.UNAVAILABLE)
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    if "Open MPI" not in said.stdout + said.stderr:
        return [found], "mpich"
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    # Workers keep to the cores of the rank that started the pool. There are more ranks than cores:
    # one that waits for others offers its core.
    free = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    words = [found, *free, *as_root]
    return words, "openmpi"


def run_ranks(ranks: int, *arguments: object) -> Any:
    """What rank 0 of a job prints; None when the job was lost."""
    words, abi = launcher()
    program = [sys.executable, "-m", "leveret.report.mpi_ranks", *map(str, arguments)]
    done = subprocess.run(
        [*words, "-n", str(ranks), *program],
        env={"MPI4PY_MPIABI": abi, **os.environ},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines and done.returncode == 0 else None


def _times(ranks: int, rounds: int, trees: int) -> list[list[tuple[float, float]]]:
    """By schedule: seconds of each round with workers that are shared, and with private ones."""
    times: list[list[tuple[float, float]]] | None = run_ranks(ranks, "likelihood", rounds, trees)
    if times is None:
        raise Unavailable(f"a job of {ranks} ranks did not end as it should", Status.UNAVAILABLE)
    return times


def _likelihoods(
    of_ranks: list[list[tuple[float, float]]], trees: int, prefix: str, goal: str
) -> dict[str, dict[str, Any]]:
    """The figures of one schedule: each number of ranks, and their geometric mean."""
    figures = {}
    everything: list[list[float]] = []
    for ranks, times in enumerate(of_ranks, start=1):
        ratios = [shared / private for shared, private in times]
        figures[f"{prefix}shared_over_private_{ranks}"] = figure(ratios, "", "", PRIVATE)
        each_us = [shared * 1e6 / trees for shared, _ in times]
        figures[f"{prefix}tree_us_{ranks}"] = figure(each_us, "us")
        everything.append(ratios)
    means = [statistics.geometric_mean(ratios) for ratios in zip(*everything)]
    figures[f"{prefix}shared_over_private"] = figure(means, "", goal, PRIVATE)
    return figures


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    tasks = 40 if quick else 1000
    rounds, trees = (1, 2) if quick else (7, 25)
    found = run_ranks(RANKS, "abort", tasks)
    lost = RANKS if found is None else RANKS - found["ranks"]
    named = 0 if found is None else found["named"]
    figures = {
        "ranks_lost": figure([lost], "", "= 0"),
        "named": figure([named], "", f"= {tasks}"),
    }
    of_ranks = [_times(ranks, rounds, trees) for ranks in range(1, RANKS + 1)]
    for schedule, prefix in enumerate(SCHEDULES):
        goal = "" if schedule else "< 1"
        times = [each[schedule] for each in of_ranks]
        figures.update(_likelihoods(times, trees, prefix, goal))
    return report("mpi", figures)
