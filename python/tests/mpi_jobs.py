"""Jobs of MPI for the tests: how they are started, and what is left of them.

Needs mpi4py, and mpirun.openmpi or mpirun.mpich, as Debian names them.
"""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_MAX = 100  # of one job; on a free machine each takes less than 3
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"],
    "mpich": ["mpirun.mpich"],
}


def missing(engine: str) -> str | None:
    """What is not here, if anything."""
    if importlib.util.find_spec("mpi4py") is None:
        return "there is no mpi4py"
    launcher = LAUNCHERS[engine][0]
    return None if shutil.which(launcher) else f"there is no {launcher}"


@dataclass
class Job:
    """Starts programs as ranks; all processes of a job have its mark in their environment."""

    engine: str
    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def environment(self) -> dict[str, str]:
        """mpi4py's wheel looks for MPICH by a name that Debian's has not."""
        about = {"LEVERET_TEST_JOB": self.mark, "MPI4PY_MPIABI": self.engine}
        if self.engine == "mpich":
            for found in Path("/usr/lib").glob("*/libmpich.so.12"):
                if not (self.folder / "libmpi.so.12").exists():
                    (self.folder / "libmpi.so.12").symlink_to(found)
            about["LD_LIBRARY_PATH"] = str(self.folder)
        return {**os.environ, **about}

    def run(self, *words: str, ranks: int = 4) -> tuple[int, str]:
        """(exit status, output) of a Python program; 124 when it took too long."""
        command = [*LAUNCHERS[self.engine], "-n", str(ranks), sys.executable, *words]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)  # it ends its ranks
                output, _ = process.communicate(timeout=SECONDS_MAX)
                return 124, output
        return process.returncode, output

    def left(self) -> list[str]:
        """Command lines of the processes that are there after a while; none should be."""
        until = time.monotonic() + 30
        while (found := self._processes()) and time.monotonic() < until:
            select.select([], [], [], 0.02)
        return found

    def _processes(self) -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text())
            except OSError:  # it has ended
                continue
        return found
