"""Fixtures: a small C library, and runtimes that must end with nothing left under way."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import pytest
from cluster_functions import pools_here

import leveret
from leveret import ProcessExecutor

# Nothing is imported here that takes long and that not all tests use: the functions of tests are
# called in worker processes, each of which imports this.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DEEP = os.environ.get("LEVERET_DEEP") == "1"  # as for the other tests: longer, not other


def pytest_configure() -> None:
    from hypothesis import HealthCheck, settings

    # On a full machine any example may take long, and the making of one, too.
    calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("usual", calm)
    settings.register_profile("deep", calm, max_examples=2000)
    settings.load_profile("deep" if DEEP else "usual")
    workers_have_less_of_pytest()


def workers_have_less_of_pytest() -> None:
    """Workers of executors that are opened here find a small `pytest` in place of the real one.

    What they import of tests needs it for nothing, and takes twice as long with the real one. The
    processes of a shared pool search for modules elsewhere, and have that.
    """
    from leveret.executor import python_runtime
    from leveret.launch import worker_command

    def with_little(preload: Iterable[str], *rest: Any) -> list[str]:
        has_path = bool(rest[-1])
        return worker_command((*preload, "pytest_in_workers") if has_path else preload, *rest)

    pytest.MonkeyPatch().setattr(python_runtime, "worker_command", with_little)


# A test run that a shell started in the background ignores it, and so would every program that the
# tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

KERNELS = Path(__file__).with_name("kernels.c")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kernels.c as a shared library."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler (cc, gcc or clang) to make procedures with")
    path = tmp_path_factory.mktemp("kernels") / "kernels.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(path), str(KERNELS)]
    subprocess.run(command, check=True)
    return path


def works(machine: str) -> bool:
    return any(m.name == machine and m.unavailable is None for m in leveret.machines())


needs_processes = pytest.mark.skipif(not works("processes"), reason="processes do not work here")


@pytest.fixture
def pool() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module", autouse=True)
def leaves_no_pool() -> Iterator[None]:
    """No test finds worker processes that those of another module have left, or sees them end.

    joblib's calls keep some for the next ones, for five minutes.
    """
    yield
    kept = sys.modules.get("leveret.executor.joblib_pools")
    if kept is not None:
        executors = [each.executor for each in kept.pools.all.values()]
        with kept.pools.lock:
            kept.pools.close_if(lambda _: True)
        for each in executors:
            each.shutdown()
    # Executors that were dropped end by themselves, or when they are found.
    wait_until(lambda: not pools_here() or (gc.collect() < 0), 60)


@pytest.fixture(autouse=True)
def preloads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a test find NumPy loaded where its module uses it, as in a program of its own.

    It takes as long to load as all else that workers need, and other modules of tests have loaded
    it here.
    """
    from leveret.executor import environment

    chosen = environment.modules
    if not hasattr(request.module, "np"):
        monkeypatch.setattr(
            environment,
            "modules",
            lambda given, is_shared: chosen(
                () if given is None and not is_shared else given, is_shared
            ),
        )


def rest(seconds: float) -> None:
    """A call that takes its time."""
    select.select([], [], [], seconds)


def hold(begun: Path, until: Path) -> None:
    """A call that says that it has begun, and lasts until a file is there."""
    begun.touch()
    while not until.exists():
        rest(0.001)


LIMIT = 300.0  # seconds after which a test hangs, and is not merely on a machine full of others


def wait_until(happens: Callable[[], object], seconds: float = LIMIT) -> None:
    """Waits for a state."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        rest(0.01)


def pid_of(_: object = None) -> int:
    """A call that says where it runs."""
    return os.getpid()


def run_program(folder: Path, text: str, *flags: str) -> str:
    """Runs a program of its own to a good end, with its `__main__` in a file; what it printed."""
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, *flags, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def end_by_interrupt(text: str, *arguments: str) -> str:
    """Ends a program by one Ctrl-C, when it has printed "begun"; what it says of it."""
    command = [sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None and p.stdout.readline() == "begun\n"
        p.send_signal(signal.SIGINT)
        try:
            said = p.communicate(timeout=LIMIT)[1]
        finally:
            p.kill()
    assert p.returncode == -signal.SIGINT
    return said


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


# How often Dask looks at itself. Where it is usual it takes a tenth of a core, waiting or not.
SELDOM = {
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.profile.enabled": False,
}


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A client of two Dask workers over TCP, for tests that leave both as they were.

    They wait most of the time. Clusters that tests open for themselves look as often as users' do.
    """
    pytest.importorskip("distributed")  # brings its settings along, before they are changed
    import dask

    with contextlib.ExitStack() as stack:
        with dask.config.set(SELDOM):
            _, client = stack.enter_context(local_cluster(2))
        yield client


@contextlib.contextmanager
def local_cluster(workers: int, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A LocalCluster of its own, for tests that spoil it, and a client of it."""
    distributed = pytest.importorskip("distributed")
    import dask

    # On a machine full of others it may take longer until another process takes a dead one's place.
    dask.config.set({"distributed.deploy.lost-worker-timeout": f"{LIMIT}s"})
    given = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, **options}
    with (
        distributed.LocalCluster(n_workers=workers, **given) as local,
        distributed.Client(local) as client,
    ):
        yield local, client


@pytest.fixture(params=["threads", "sim", "processes"])
def machine(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if not works(name):
        pytest.skip(f"the machine {name} does not work here")
    return name


def check_drained(runtime: leveret.Runtime) -> None:
    """Every task has one outcome, however a test ends."""
    if runtime.closed:
        return
    with contextlib.suppress(leveret.TaskFailed):  # a test that drops a failing ticket checks it
        runtime.wait_for_completion(30)
    counters = runtime.counters()
    assert counters["submitted"] == counters["completed"]
    runtime.close(30)


@pytest.fixture
def runtime(machine: str) -> Iterator[leveret.Runtime]:
    opened = leveret.Runtime(machine, workers=2)
    yield opened
    check_drained(opened)


@pytest.fixture
def threads() -> Iterator[leveret.Runtime]:
    """For tests that need time, signals or threads of the operating system.

    The host never runs a task: one that waits for the test would keep it from going on.
    """
    opened = leveret.Runtime("threads", workers=2, wait="park")
    yield opened
    check_drained(opened)


class Gate:
    """A task that runs until open() is called, on a worker of its own."""

    def __init__(self, library: Path) -> None:
        import numpy as np

        self.procedure = leveret.load(library, "wait_for_flag", "in i4 -> int")
        self.flag: npt.NDArray[np.int32] = np.zeros(1, np.int32)

    def submit(self, runtime: leveret.Runtime) -> leveret.Ticket:
        return runtime.submit(self.procedure, self.flag)

    def open(self) -> None:
        self.flag[0] = 1


@pytest.fixture
def gate(library: Path) -> Iterator[Gate]:
    made = Gate(library)
    yield made
    made.open()
