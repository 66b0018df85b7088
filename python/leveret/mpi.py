"""For programs under MPI: a name for the pool of workers that the ranks of a node share.

    from mpi4py import MPI
    import leveret

    pool = leveret.mpi.pool_name(MPI.COMM_WORLD)
    runtime = leveret.Runtime("processes", workers=2, pool=pool)

Needs nothing but the mpi4py of the program, 3.1 or later.
"""

from __future__ import annotations

import os
import sys
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# One of these is there in a process that Open MPI, MPICH and its relatives, or Slurm has started as
# a rank.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def pool_name(comm: Comm) -> str:
    """A name for Runtime(pool=...): equal for the ranks of `comm` that can share workers.

    These are the ranks on one node and in one container. No other call, of whatever job or user,
    returns the same name. Collective: all ranks of `comm` call it, in the same order as other
    collective calls. Raises TypeError for what is no communicator of mpi4py, ValueError for
    COMM_NULL and intercommunicators, and what mpi4py raises. Thread safe as far as MPI is. Cost: a
    split of the communicator and a broadcast.
    """
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        kind = type(comm).__name__
        raise TypeError(f"comm must be a communicator of mpi4py, as MPI.COMM_WORLD, not {kind}")
    if comm == mpi.COMM_NULL:
        raise ValueError("comm is MPI.COMM_NULL; pass MPI.COMM_WORLD")
    if comm.Is_inter():
        raise ValueError("comm must be an intracommunicator; pass comm.Merge()")
    node = comm.Split_type(mpi.COMM_TYPE_SHARED)
    try:
        number: str = node.bcast(os.urandom(16).hex())
    finally:
        node.Free()
    return f"mpi-{number}-{_namespaces():08x}"


def _namespaces() -> int:
    """A pool's name means something within these namespaces of Linux only."""
    hashed = 0
    for name in ("net", "pid", "user"):
        try:
            link = os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115
        except OSError:
            continue
        hashed = zlib.crc32(link.encode(), hashed)
    return hashed


def worker_environment() -> dict[str, str]:
    """What keeps a worker process from being taken for the rank that started it.

    With a rank's environment, mpi4py would initialise MPI when it is imported there, as often as by
    a function's module; Open MPI ends such a process, and the job does not end any more.
    """
    if not any(name in os.environ for name in _RANK_VARIABLES):
        return {}
    return {} if "MPI4PY_RC_INITIALIZE" in os.environ else {"MPI4PY_RC_INITIALIZE": "0"}
