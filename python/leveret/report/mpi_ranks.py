"""A rank of the bench "mpi": `mpirun -n 4 python -m leveret.report.mpi_ranks abort 1000`.

Rank 0 prints one line of JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from .. import Poison, Runtime, Ticket, apps, procedure
from ..mpi import pool_name

WORKERS = 2


def _is_named(ticket: Ticket) -> bool:
    try:
        ticket.wait()
    except Poison as poison:
        return "SIGABRT" in str(poison)
    return False


def abort(tasks: int) -> dict[str, int]:
    """Tasks that abort, a part of each rank's own; what all found together."""
    comm = MPI.COMM_WORLD
    named = 0
    abort_it = procedure(ctypes.CDLL(None).abort, "", name="abort")
    with Runtime("processes", workers=WORKERS, pool=pool_name(comm), max_attempts=1) as runtime:
        for _ in range(comm.rank, tasks, comm.size):
            named += _is_named(runtime.submit(abort_it))
    return {"ranks": comm.allreduce(1), "named": comm.allreduce(named)}


def likelihood(rounds: int, trees: int) -> list[list[tuple[float, float]]]:
    """Seconds for so many trees on each rank, by round: with shared workers, with private ones.

    First in phases, then by dependencies. The time of a round is that of its slowest rank.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:WORKERS])  # workers inherit it
    shared = Runtime("processes", workers=WORKERS, pool=pool_name(MPI.COMM_WORLD))
    private = Runtime("processes", workers=WORKERS)
    with shared, private:
        return [_in_turns(shared, private, rounds, trees, graph) for graph in (False, True)]


def _in_turns(
    shared: Runtime, private: Runtime, rounds: int, trees: int, dependencies: bool
) -> list[tuple[float, float]]:
    comm = MPI.COMM_WORLD
    times: list[tuple[float, float]] = []
    for i in range(-1, rounds):  # the first one warms up
        pair: Any = []
        for runtime in (shared, private) if i % 2 else (private, shared):
            comm.Barrier()
            report = apps.likelihood(
                runtime, steps=trees, dice=False, dependencies=dependencies, check=False
            )
            pair.append(comm.allreduce(report.seconds, op=MPI.MAX))
        if i >= 0:
            times.append((pair[0], pair[1]) if i % 2 else (pair[1], pair[0]))
    return times


def main(words: list[str]) -> None:
    what, *numbers = words
    jobs: dict[str, Callable[..., object]] = {"abort": abort, "likelihood": likelihood}
    found = jobs[what](*map(int, numbers))
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
