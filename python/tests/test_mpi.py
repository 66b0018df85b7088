"""Python ranks under Open MPI and MPICH: shared pools, calls that abort, killed ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import LIMIT, needs_processes
from mpi_jobs import LAUNCHERS, Job, missing

import leveret
from leveret.mpi import worker_environment
from leveret.report.mpi_bench import launcher

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"

HEAD = """
import math, os, select, signal
from mpi4py import MPI
import leveret
comm = MPI.COMM_WORLD
def say(*words):  # one line, of one write: lines of ranks do not mix
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


@pytest.fixture(params=list(LAUNCHERS))
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    why = missing(request.param)
    if why is not None:
        pytest.skip(why)
    return Job(request.param, tmp_path)


def run(job: Job, code: str, *words: str, ranks: int = 4) -> list[str]:
    """The lines that a program of ranks prints."""
    program = job.folder / "program.py"
    program.write_text(HEAD + textwrap.dedent(code))
    status, output = job.run(*words, str(program), ranks=ranks)
    assert status == 0, output
    assert job.left() == []
    return output.splitlines()


@needs_processes
def test_a_name_is_for_one_node_and_one_call(job: Job) -> None:
    lines = run(
        job,
        """
        import numpy as np
        names = [leveret.mpi.pool_name(comm), leveret.mpi.pool_name(comm.Split(comm.rank % 2))]
        say("names", *names)
        for bad in (MPI.COMM_NULL, 3, None, MPI.COMM_WORLD.group):
            try:
                leveret.mpi.pool_name(bad)
            except (TypeError, ValueError) as error:
                say("refused", error)
        with leveret.Runtime("processes", workers=2, pool=names[0]) as runtime:
            total = runtime.submit(leveret.builtin("sum"), np.arange(10.0) + comm.rank).result()
        say("sum", total - 10 * comm.rank, comm.allreduce(1))
        """,
    )
    names = [line.split()[1:] for line in lines if line.startswith("names")]
    assert len({name for name, _ in names}) == 1
    assert len({half for _, half in names}) == 2
    assert not {name for name, _ in names} & {half for _, half in names}
    assert len([line for line in lines if line.startswith("refused comm ")]) == 16, lines
    assert lines.count("sum 45.0 4") == 4, lines


@needs_processes
@pytest.mark.parametrize("where", ["the main module", "a module that imports mpi4py"])
def test_calls_that_abort_cost_no_rank(job: Job, where: str) -> None:
    """A worker is no rank: importing mpi4py there does not initialise MPI again."""
    code = """
    def f(i):
        if i % 5 == 2:
            os.abort()
        return -1.0 * i, MPI.Is_initialized()
    """
    (job.folder / "functions.py").write_text(HEAD + textwrap.dedent(code))
    here = textwrap.dedent(code) if where == "the main module" else "from functions import f\n"
    lines = run(
        job,
        here
        + textwrap.dedent("""
        with leveret.ProcessExecutor(1, max_attempts=1) as executor:
            found = list(executor.map(f, range(comm.rank, 40, comm.size), on_poison="return"))
        poison = [each for each in found if isinstance(each, leveret.Poison)]
        values = [-math.inf if each in poison else each[0] for each in found]
        assert not any(each[1] for each in found if each not in poison)
        assert all("SIGABRT" in str(each) for each in poison)
        say("all", comm.allreduce(len(poison)), comm.allreduce(max(values), MPI.MAX))
        """),
    )
    assert lines.count("all 8 -0.0") == 4, lines


@needs_processes
def test_a_killed_rank_is_reported_and_leaves_nothing(job: Job) -> None:
    program = job.folder / "program.py"
    code = """
    pool = leveret.mpi.pool_name(comm)
    runtime = leveret.Runtime("processes", workers=2, pool=pool)
    executor = leveret.ProcessExecutor(1)
    running = executor.submit(signal.pause)
    comm.Barrier()
    while not running.running():
        select.select([], [], [], 0.01)
    if comm.rank == 1:
        os.kill(os.getpid(), 9)
    comm.Barrier()
    """
    program.write_text(HEAD + textwrap.dedent(code))
    status, output = job.run(str(program))
    assert status not in (0, 124), output
    assert "signal 9" in output, output
    assert job.left() == []


@needs_processes
def test_functions_of_the_main_module_by_mpi4py_futures(job: Job) -> None:
    """A rank of an MPIPoolExecutor hands a function of the main module on to a worker."""
    lines = run(
        job,
        """
        from mpi4py.futures import MPIPoolExecutor

        def inner(i):
            if i == 3:
                os.abort()
            return i * i

        def outer(i):
            with leveret.ProcessExecutor(1, max_attempts=1) as executor:
                try:
                    return executor.submit(inner, i).result()
                except leveret.Poison as poison:
                    return str(poison)

        if __name__ == "__main__":
            with MPIPoolExecutor() as ranks:
                say(*ranks.map(outer, range(6)))
        """,
        "-m",
        "mpi4py.futures",
        ranks=3,
    )
    assert len(lines) == 1, lines
    assert lines[0].startswith("0 1 4 inner(3) ended its worker process"), lines
    assert lines[0].endswith("16 25"), lines


@needs_processes
@pytest.mark.skipif(not EXAMPLES.exists(), reason="only the package is here")
def test_the_example(job: Job) -> None:
    status, output = job.run(str(EXAMPLES / "likelihood_under_mpi.py"))
    assert status == 0, output
    assert "4 ranks, 100 trees, 10 crashed, the best: -" in output
    assert job.left() == []


@needs_processes
def test_the_bench(tmp_path: Path) -> None:
    if missing("openmpi") is not None or shutil.which("mpirun") is None:
        pytest.skip("there is no Open MPI to run the bench with")
    job = Job("openmpi", tmp_path)
    command = [sys.executable, "-m", "leveret", "bench", "mpi", "--quick", "--json"]
    done = subprocess.run(
        command, env=job.environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert (figures["ranks_lost"]["value"], figures["named"]["value"]) == (0, 40)
    assert all(figures[f"shared_over_private_{n}"]["value"] > 0 for n in (1, 2, 3, 4))
    assert job.left() == []


def test_the_bench_without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named: mpi4py, or else mpirun."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(leveret.Unavailable, match=r"install (mpi4py|openmpi-bin or mpich)"):
        launcher()


@pytest.mark.parametrize("comm", [None, 3, "MPI.COMM_WORLD"])
def test_what_is_no_communicator(comm: object) -> None:
    with pytest.raises(TypeError, match="comm must be a communicator of mpi4py"):
        leveret.mpi.pool_name(comm)


def test_the_environment_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PMI"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MPI4PY_RC_INITIALIZE", raising=False)
    assert worker_environment() == {}
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "0")
            assert worker_environment() == {"MPI4PY_RC_INITIALIZE": "0"}
            patch.setenv("MPI4PY_RC_INITIALIZE", "1")
            assert worker_environment() == {}
