"""Cluster.map(), and leveret.dask.register(): Python calls in processes that may crash."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster_functions import (
    Placed,
    crash_at_7,
    fail_and_log,
    fail_at_3,
    generator_at_2,
    kind_of,
    odd_at_2,
    rest,
    sum_below,
)
from conftest import LIMIT, needs_processes, run_program

import leveret
from leveret import Cluster, ProcessExecutor
from leveret.cluster.batches import Calls

pytestmark = needs_processes


@pytest.fixture(params=["dask", "threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "dask":
        with Cluster(request.getfixturevalue("dask_client"), processes=1) as opened:
            yield opened
        return
    # As many processes as threads: with fewer, the second batch may come before the first.
    with ThreadPoolExecutor(2) as threads, Cluster(threads, processes=2) as opened:
        yield opened


def test_results_in_order(cluster: Cluster) -> None:
    offset = 5
    assert list(cluster.map(lambda x: x + offset, range(5000))) == list(range(5, 5005))
    assert list(cluster.map(pow, [2, 3, 4], (3, 2, 1))) == [8, 9, 4]
    assert list(cluster.map(abs, [])) == []
    assert list(cluster.map(abs, range(100), chunksize=7)) == list(range(100))


def test_poison_in_its_place(cluster: Cluster) -> None:
    found = list(cluster.map(crash_at_7, range(30), on_poison="return"))
    bad = found.pop(7)
    assert found == [x * x for x in range(30) if x != 7]
    assert isinstance(bad, leveret.Poison) and bad.node is not None
    assert "crash_at_7(7)" in str(bad) and bad.node in str(bad)


def test_poison_is_raised_after_what_came_before(cluster: Cluster) -> None:
    results = cluster.map(crash_at_7, range(30))
    assert list(itertools.islice(results, 7)) == [x * x for x in range(7)]
    with pytest.raises(leveret.Poison, match=r"crash_at_7\(7\)"):
        next(results)


def test_exceptions_keep_class_and_traceback(cluster: Cluster) -> None:
    found = list(cluster.map(fail_at_3, range(5), return_exceptions=True))
    assert found[:3] == [0, 1, 2] and found[4] == 4
    assert isinstance(found[3], KeyError) and "fail_at_3" in str(found[3].__cause__)
    with pytest.raises(KeyError):
        list(cluster.map(fail_at_3, range(5), on_poison="return"))


def test_a_result_that_the_driver_cannot_read_fails_alone(cluster: Cluster) -> None:
    me = os.getpid()
    found = list(cluster.map(odd_at_2, range(5), [me] * 5, return_exceptions=True))
    bad = found.pop(2)
    assert found == [0, 1, 3, 4] and isinstance(bad, leveret.TaskFailed)
    assert f"odd_at_2(2, {me}): its result cannot be unpickled" in str(bad)
    results = cluster.map(odd_at_2, range(5), [me] * 5)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(leveret.TaskFailed, match="not in this process"):
        next(results)


def test_a_result_that_cannot_be_sent_again_fails_alone(cluster: Cluster) -> None:
    found = list(cluster.map(generator_at_2, range(4), return_exceptions=True))
    assert found[:2] == [0, 1] and found[3] == 3
    assert isinstance(found[2], TypeError) and "generator" in str(found[2])


def test_items_that_cannot_be_sent_or_read_fail_alone(cluster: Cluster) -> None:
    items = [1, threading.Lock(), "a", Placed(os.getpid(), True), 2.0]
    found = list(cluster.map(kind_of, items, return_exceptions=True))
    assert found[::2] == ["int", "str", "float"]
    assert isinstance(found[1], TypeError) and "lock" in str(found[1])
    assert isinstance(found[3], Exception) and "not in this process" in str(found[3])
    with pytest.raises(TypeError, match="lock"):
        list(cluster.map(kind_of, items))


def test_classes_of_the_driver_stay_what_they_are(cluster: Cluster) -> None:
    """Also where its nodes are threads: they find the very classes by their numbers."""

    class Local:
        count = 0

        def add(self, x: int) -> int:
            type(self).count += x
            return type(self).count

    add = Local.add
    Local.count = 5
    assert list(cluster.map(Local().add, [1])) == [6]
    assert Local.add is add and Local.add.__globals__ is globals() and Local.count == 5


@pytest.mark.parametrize("engine", ["dask", "threads"])
def test_an_initializer_that_raises_fails_the_calls(
    request: pytest.FixtureRequest, engine: str, tmp_path: Path
) -> None:
    """Soon, and with its traceback: few new processes are made."""
    log = tmp_path / "log"
    client = request.getfixturevalue("dask_client") if engine == "dask" else ThreadPoolExecutor(1)
    with (
        Cluster(client, processes=1, initializer=fail_and_log, initargs=(str(log),)) as cluster,
        pytest.raises(leveret.Unavailable, match=r"(?s)initializer raised.*no such licence"),
    ):
        list(cluster.map(abs, [-1], timeout=LIMIT))
    assert 1 <= len(log.read_text()) <= 100  # three turns of each node


# Its nodes are processes that have run the main module, too, or been forked from it.
RESULTS_OF_MAIN = """
import dataclasses, enum, multiprocessing, sys
from concurrent import futures
import leveret

@dataclasses.dataclass
class Point:
    x: int
    def twice(self):
        return 2 * self.x

class Color(enum.Enum):
    RED = 1

def make(what):
    class Local:
        name = "local"

    made = {"point": Point(4), "class": Point, "color": Color.RED, "local": Local()}
    return {**made, "function": lambda: what}[what]

def check(cluster):
    names = ["point", "class", "color", "local", "function"]
    point, kind, color, local, function = cluster.map(make, names)
    assert type(point) is Point and point.twice() == 8
    assert kind is Point and color is Color.RED
    assert local.name == "local" and function() == "function"

if __name__ == "__main__":
    twice = Point.twice
    ENGINE
"""
ENGINES = {
    "dask": """
    import distributed
    with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        with leveret.Cluster(client) as cluster:
            check(cluster)
    assert Point.twice is twice  # nothing has written it over
""",
    "fork": """
    context = multiprocessing.get_context("fork")
    with futures.ProcessPoolExecutor(1, context) as pool, leveret.Cluster(pool) as cluster:
        check(cluster)
""",
    "spawn": """
    context = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(1, context) as pool, leveret.Cluster(pool) as cluster:
        check(cluster)
    assert Point.twice is twice
""",
    "threads": """
    with futures.ThreadPoolExecutor(1) as pool, leveret.Cluster(pool) as cluster:
        check(cluster)
""",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_results_of_what_the_main_module_defines(tmp_path: Path, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    run_program(tmp_path, RESULTS_OF_MAIN.replace("ENGINE", ENGINES[engine].strip()))


def test_endless_iterables(cluster: Cluster) -> None:
    results = cluster.map(abs, itertools.count(), buffersize=100)
    assert list(itertools.islice(results, 1000)) == list(range(1000))
    results.close()  # type: ignore[attr-defined]


def test_what_an_iterable_raises(cluster: Cluster) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(cluster.map(abs, items()))


def test_leaving_early_ends_what_runs(cluster: Cluster) -> None:
    for value in cluster.map(rest, [0.0] + [600.0] * 8, chunksize=1):
        assert value is None
        break
    assert list(cluster.map(abs, [-1])) == [1]  # long before the others are done


def test_time_out(cluster: Cluster) -> None:
    with pytest.raises(futures.TimeoutError):  # another class before Python 3.11
        list(cluster.map(rest, [600.0], timeout=0.3))
    assert list(cluster.map(abs, [-1])) == [1]


def test_calls_that_are_made_while_they_are_ended(pool: ProcessExecutor) -> None:
    """The thread that ends them cannot see the one that was just taken."""
    calls = Calls(pool, rest, [(600.0,)], {})
    items = calls.mapping.items
    genuine = items.look

    def look(count: int) -> Any:
        found = genuine(count)
        calls.cancel()
        return found

    items.look = look  # type: ignore[method-assign]
    with pytest.raises(CancelledError):
        calls.outcomes("here")
    assert pool.submit(abs, -1).result(LIMIT) == 1


def test_maps_of_several_threads(pool: ProcessExecutor) -> None:
    """An executor of a node has batches of several threads at a time."""
    found: list[bool] = []

    def run() -> None:
        found.extend(list(pool.map(sum_below, range(300))) == wanted for _ in range(40))

    wanted = [sum_below(i) for i in range(300)]
    threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LIMIT)
        assert not each.is_alive()
    assert found == [True] * 160


def test_any_executor_of_processes(library: Path) -> None:
    """Nodes that are other processes are sent what they lack, and are gone with their executor."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import numpy as np

    spawn = multiprocessing.get_context("spawn")
    processes = ProcessPoolExecutor(1, mp_context=spawn)
    with processes, Cluster(processes, processes=1) as cluster:
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        y = np.zeros(100)
        cluster.submit(add, leveret.sliced(y)).wait(LIMIT)
        assert (y == 1).all() and cluster.progress().failed == 0
        assert list(cluster.map(abs, range(10))) == list(range(10))


MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpi_launchers() -> list[str]:
    """What may start MPI programs here; which one fits mpi4py only a trial tells."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = [shutil.which("mpirun"), str(beside) if beside.exists() else None]
    return [each for each in found if each is not None]


def test_mpi4py_futures(library: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, leveret\n"
        "from mpi4py import MPI\n"
        "from mpi4py.futures import MPICommExecutor\n"
        "if len(sys.argv) > 1:\n"
        "    sys.exit(MPI.COMM_WORLD.size != 2)\n"
        "with MPICommExecutor(root=0) as executor:\n"
        "    if executor is not None:\n"
        "        with leveret.Cluster(executor, processes=1) as cluster:\n"
        f"            add = cluster.load({str(library)!r}, 'add_one', 'inout f8, count(0)')\n"
        "            y = np.zeros(100)\n"
        "            cluster.submit(add, leveret.sliced(y)).wait(300)\n"
        "            assert (y == 1).all()\n"
        "            print('done', list(cluster.map(abs, [-1, 2])), flush=True)\n"
    )

    def run(launcher: str, *args: str) -> subprocess.CompletedProcess[str]:
        command = [launcher, "-n", "2", sys.executable, str(program), *args]
        env = {**os.environ, **MPI}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, env=env
        )

    launcher = next((each for each in mpi_launchers() if run(each, "try").returncode == 0), None)
    if launcher is None:
        pytest.skip("no mpirun here starts two ranks of mpi4py")
    done = run(launcher)
    assert "done [1, 2]" in done.stdout, done.stderr
