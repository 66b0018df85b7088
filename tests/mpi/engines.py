"""The MPIs that are here: how each compiles, how it starts ranks, and what it leaves behind.

Those of Debian: openmpi-bin with libopenmpi-dev, mpich with libmpich-dev.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SECONDS_MAX = 100  # of one job; on a free machine each takes less than 3


@dataclass(frozen=True)
class Engine:
    """One MPI. options: of its launcher, for more ranks than cores and for tests as root."""

    name: str
    compiler: str
    launcher: str
    options: tuple[str, ...] = ()

    def missing(self):
        """The program that is not here, or an empty string."""
        names = (self.compiler, self.launcher)
        return next((name for name in names if shutil.which(name) is None), "")

    def environment(self, folder):
        """What mpi4py's wheel needs to find this MPI: Debian's MPICH has a name of its own."""
        if self.name != "MPICH":
            return {"MPI4PY_MPIABI": "openmpi"}
        for found in Path("/usr/lib").glob("*/libmpich.so.12"):
            link = Path(folder) / "libmpi.so.12"
            link.unlink(missing_ok=True)
            link.symlink_to(found)
        return {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(folder)}

    def job(self, words, ranks=4, folder=None, env=None):
        """(exit status, output) of a job; 124 when it took too long, and then all of it ends."""
        command = [self.launcher, *self.options, "-n", str(ranks), *map(str, words)]
        with subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)  # it ends its ranks
                try:
                    return 124, process.communicate(timeout=SECONDS_MAX)[0]
                except subprocess.TimeoutExpired:
                    process.kill()
                    return 124, process.communicate()[0]
        return process.returncode, output


OPEN_MPI = Engine(
    "Open MPI", "mpicxx.openmpi", "mpirun.openmpi", ("--oversubscribe", "--allow-run-as-root")
)
MPICH = Engine("MPICH", "mpicxx.mpich", "mpirun.mpich")


def compile_words(engine, source, program, include, library):
    """What compiles a program, without the old C++ interface of MPI, which is full of warnings."""
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX"]
    words = [engine.compiler, *flags, "-I", include, source, "-o", program, library, "-pthread"]
    return [str(word) for word in words]


def processes_of(program):
    """Processes that run a program, workers and their keeper too; one that has ended has none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                target = str((entry / "exe").readlink()).removesuffix(" (deleted)")
            except OSError:
                continue
            if target == str(program):
                found.append(int(entry.name))
    return found


def named_things(words):
    """Sockets and files of shared memory that have one of the words in their name."""
    sockets = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [*sockets, *map(str, Path("/dev/shm").iterdir())]
    return [line for line in lines if any(word in line for word in words)]


def left_behind(program, names=(), seconds=30):
    """What is still there of a job after a while: what a killed rank leaves ends by itself."""
    until = time.monotonic() + seconds
    while True:
        left = processes_of(program) or named_things(names)
        if not left or time.monotonic() > until:
            return left
        select.select([], [], [], 0.02)
