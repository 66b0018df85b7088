"""The bench cluster: what Leveret costs on Dask, and what is lost when Dask's workers die.

lost, wrong, twice_visible  elements of 1,000 slices, on 3 workers that come and go by adapt(0, 3),
                            50 of which are killed (SIGKILL): not done, done wrong, done twice
slice_overhead              a slice of a null task's size over an empty task of Dask's own map()
map_over_dask               calls of 10 us through Cluster.map(), over Client.map() of a function
                            that takes a list, which somebody has cut by hand; on the same workers,
                            with a thread for each core
map_over_dask_processes     the same, on as many workers of one thread as there are cores
map_over_batches            as map_over_dask, over Client.map(batch_size=1000); a call is a task of
                            Dask's there. It runs fewer calls, as each costs it a millisecond

Workers are killed when so many slices have landed, one at a time; what lands next waits for it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import Any, Callable

from .. import Cluster, available_cores, builtin, sliced
from ..cluster.libraries import name_of
from .figures import figure, report

WORKERS = 3
CALL_US = 10
AHEAD = 8  # slices under way for each worker of a storm
WORKER_SECONDS = 120.0  # that a worker may take to start


def _local(workers: int, threads: int) -> Any:
    """A LocalCluster over TCP on loopback, and its client."""
    from dask import config
    from distributed import Client, LocalCluster

    stack = contextlib.ExitStack()
    # A cluster gives up, for good, a worker that is gone for longer: for 15 s, where it is usual.
    patient = {"distributed.deploy.lost-worker-timeout": f"{WORKER_SECONDS}s"}
    stack.enter_context(config.set(patient))
    local = stack.enter_context(
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            dashboard_address=":0",
            silence_logs=50,
        )
    )
    client = stack.enter_context(Client(local))
    return stack, local, client


def worker_pids(local: Any) -> list[int]:
    """The processes of a LocalCluster's workers that have started, by their nannies.

    One that dies before its nanny knows that it has started is not replaced.
    """
    processes = [each.process for each in list(local.workers.values())]
    running = [each for each in processes if each is not None and each.status.name == "running"]
    pids = [each.pid for each in running]  # a nanny takes it back when the process is gone
    return [pid for pid in pids if pid is not None]


class Killer:
    """Kills a worker each time that so many slices more have landed."""

    def __init__(self, local: Any, kills: int, slices: int, seed: int) -> None:
        self.local = local
        self.random = random.Random(seed)
        self.due = [slices * (i + 1) // (kills + 1) for i in range(kills)]
        self.killed: list[int] = []

    def watch(self, job: Any) -> None:
        """Looks on at each slice that lands, on the driver's thread."""
        land = job.land

        def look(*landing: Any) -> None:
            land(*landing)
            while len(self.killed) < len(self.due) and job.pieces >= self.due[len(self.killed)]:
                self.kill()

        job.land = look

    def kill(self) -> None:
        """Kills a worker, when there is one."""
        end = time.monotonic() + WORKER_SECONDS
        while not (pids := [pid for pid in worker_pids(self.local) if pid not in self.killed]):
            if time.monotonic() > end:
                raise RuntimeError("no worker was started in place of those that were killed")
            time.sleep(0.002)
        pid = self.random.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)


def kill_storm(slices: int, kills: int, seed: int) -> dict[str, int]:
    """Elements that were lost, wrong and visible twice, and how many workers were killed."""
    import numpy as np

    grain = 16
    x = np.arange(1.0, slices * grain + 1)
    y = np.zeros_like(x)
    stack, local, client = _local(0, 1)
    with stack:
        local.adapt(minimum=0, maximum=WORKERS, interval="100ms", target_duration="1ms")
        with Cluster(client, slice_seconds=1e-6, processes=1, wait_for_nodes=120) as cluster:
            axpy = builtin("axpy")
            pace = cluster._pace(name_of(axpy))
            pace.seconds, pace.ahead_max = 1.0, AHEAD  # small slices at once, and not all of them
            ticket = cluster.submit(axpy, 1.0, sliced(x), sliced(y), grain=grain)
            killer = Killer(local, kills, slices, seed)
            killer.watch(ticket._job)
            ticket.wait()
            progress = ticket.progress()
    lost, twice = int((y == 0).sum()), int((y == 2 * x).sum())
    wrong = int((y != x).sum()) - lost - twice
    found = {"lost": lost, "wrong": wrong, "twice_visible": twice}
    landed = {"slices": progress.pieces, "resent": progress.lost}
    return {**found, **landed, "killed": len(killer.killed)}


def _empty(_: int) -> None:
    """Dask's own empty task."""


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def slice_overhead(rounds: int, slices: int) -> list[float]:
    """A slice over an empty task of Dask's, round by round."""
    import numpy as np

    x, y = np.zeros(slices), np.zeros(slices)
    stack, _, client = _local(WORKERS, 1)
    with stack, Cluster(client, slice_seconds=1e-9, processes=1) as cluster:
        axpy = builtin("axpy")

        def run() -> None:
            cluster.submit(axpy, 1.0, sliced(x), sliced(y), grain=1).wait()

        def rival() -> None:
            client.gather(client.map(_empty, range(slices), pure=False))

        run()
        rival()
        return [_seconds(run) / _seconds(rival) for _ in range(rounds)]


def busy(_: int) -> int:
    """A call of about 10 us."""
    total = 0
    for i in range(_loops[0]):
        total += i
    return total


_loops = [200]


def _calibrated() -> int:
    """How many turns of the loop take 10 us here."""
    best = min(_seconds(lambda: [busy(0) for _ in range(200)]) for _ in range(20)) / 200
    return max(1, int(_loops[0] * CALL_US * 1e-6 / best))


def _call(loops: int, _: int) -> int:
    total = 0
    for i in range(loops):
        total += i
    return total


def _calls(loops: int, items: list[int]) -> list[int]:
    return [_call(loops, item) for item in items]


def map_ratios(calls: int, batched: int) -> dict[str, float]:
    """Seconds for each call through Cluster.map(), over three ways of Dask's own."""
    from functools import partial

    cores = available_cores()
    function = partial(_call, loops := _calibrated())
    batch = max(1, int(0.1 / (CALL_US * 1e-6)))
    parts = [list(range(i, min(i + batch, calls))) for i in range(0, calls, batch)]
    rivals: dict[str, float] = {}

    def by_hand(client: Any) -> float:
        def run() -> None:
            found = client.gather(client.map(partial(_calls, loops), parts, pure=False))
            assert sum(map(len, found)) == calls

        return _seconds(run) / calls

    stack, _, client = _local(1, cores)
    with stack:
        client.gather(client.map(_empty, range(100), pure=False))
        with Cluster(client) as cluster:
            list(cluster.map(function, range(1000)))
            own = _seconds(lambda: list(cluster.map(function, range(calls)))) / calls
        rivals["map_over_dask"] = by_hand(client)

        def own_map() -> None:
            client.gather(client.map(function, range(batched), pure=False, batch_size=1000))

        rivals["map_over_batches"] = _seconds(own_map) / batched
    stack, _, client = _local(cores, 1)
    with stack:
        client.gather(client.map(_empty, range(100), pure=False))
        rivals["map_over_dask_processes"] = by_hand(client)
    return {key: own / value for key, value in rivals.items()}


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    storms, slices, kills = (1, 60, 2) if quick else (10, 1000, 50)
    found = [kill_storm(slices, kills, seed) for seed in range(1, storms + 1)]
    figures: dict[str, Any] = {}
    for key in ("lost", "wrong", "twice_visible"):
        figures[key] = figure([max(each[key] for each in found)], "elements", "= 0")
    figures["killed"] = figure([float(each["killed"]) for each in found], "workers")
    figures["slices"] = figure([float(each["slices"]) for each in found], "slices")
    figures["resent"] = figure([float(each["resent"]) for each in found], "slices")
    overhead = slice_overhead(1 if quick else 5, 50 if quick else 1000)
    figures["slice_overhead"] = figure(overhead, "", "<= 1.3", "an empty task of Dask's own map()")
    rounds = [map_ratios(*((2000, 100) if quick else (1_000_000, 5000)))]
    rivals = {
        "map_over_dask": "Client.map() of lists cut by hand, a worker with a thread for each core",
        "map_over_dask_processes": "the same, a worker of one thread for each core",
        "map_over_batches": "distributed.Client.map(batch_size=1000)",
    }
    for key, rival in rivals.items():
        goal = "<= 0.5" if key == "map_over_dask" else ""
        figures[key] = figure([each[key] for each in rounds], "", goal, rival)
    return report("cluster", figures)
