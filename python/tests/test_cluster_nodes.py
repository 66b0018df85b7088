"""leveret.Cluster: nodes that die, join, leave, are slow, or were never there."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_functions import node_pid
from conftest import DEEP, LIMIT, local_cluster, needs_processes, wait_until

import leveret
from leveret import Cluster, sliced
from leveret.cluster import node

pytestmark = needs_processes


def end_workers(client: Any, number: int = signal.SIGKILL, most: int = 99) -> list[str]:
    """Sends a signal to Dask's workers; their addresses."""
    found = client.run(node_pid)
    for pid in list(found.values())[:most]:
        os.kill(pid, number)
    return list(found)[:most]


def path_argument(path: Path) -> Any:
    return np.frombuffer(str(path).encode() + b"\0", np.uint8)


def load_wait(cluster: Cluster, library: Path) -> leveret.Procedure:
    return cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")


def test_workers_killed_at_random() -> None:
    pytest.importorskip("distributed")
    from leveret.report.cluster_bench import kill_storm

    killed, storms, end = 0, 0, time.monotonic() + LIMIT
    while storms < (10 if DEEP else 1) or not killed:  # a storm may find all work done
        found = kill_storm(*((1000, 50) if DEEP else (30, 3)), seed=storms)
        assert (found["lost"], found["wrong"], found["twice_visible"]) == (0, 0, 0), storms
        killed += found["killed"]
        storms += 1
        assert killed or time.monotonic() < end


def test_every_worker_killed_in_a_slice(library: Path, tmp_path: Path) -> None:
    """All run a slice when they die; the slices run on those that are started in their place.

    The processes of Leveret end with their Dask worker.
    """
    y = np.zeros(8)
    with (
        local_cluster(2) as (_, client),
        Cluster(client, processes=1, wait_for_nodes=LIMIT) as cluster,
    ):
        ticket = cluster.submit(
            load_wait(cluster, library), path_argument(tmp_path / "go"), sliced(y), max_attempts=1
        )
        wait_until(lambda: sum(client.processing().values(), ()) != ())
        wait_until(lambda: all(v["running"] for v in running(client)))
        pids = list(client.run(node_pid).values())
        wait_until(lambda: all(map(pools_of, pids)))
        pools = [pool for pid in pids for pool in pools_of(pid)]
        assert len(pools) == 2  # that `leveret top` shows, too
        end_workers(client)
        processes = [Path(f"/proc/{each['pid']}") for pool in pools for each in pool["workers"]]
        wait_until(lambda: not any(each.exists() for each in processes))
        (tmp_path / "go").touch()
        ticket.wait(LIMIT)
    assert (y == 1).all()


def running(client: Any) -> list[dict[str, Any]]:
    """What the nodes tell Dask's scheduler with each heartbeat."""
    info = client.scheduler_info()["workers"]
    return [each.get("metrics", {}).get("leveret", {"running": 0}) for each in info.values()]


def test_a_worker_killed_with_its_result_unfetched(library: Path, tmp_path: Path) -> None:
    """Results that lie on a node go with it, and are made again before they land."""
    (tmp_path / "go").touch()
    x = np.arange(1.0, 101)
    with (
        local_cluster(2) as (_, client),
        Cluster(client, processes=1, wait_for_nodes=LIMIT) as cluster,
    ):
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        engine = cluster._driver.engine
        gathered: list[Any] = []
        genuine = engine._gathered  # type: ignore[attr-defined]

        async def late(done: Any, *seconds: float) -> Any:
            if not gathered:
                gathered.append(done)
                for pid in (await client.run(node_pid)).values():
                    os.kill(pid, signal.SIGKILL)
            return await genuine(done, *seconds)

        engine._gathered = late  # type: ignore[attr-defined]
        cluster.submit(add, sliced(x)).wait(LIMIT)
        assert gathered
    assert (x == np.arange(2.0, 102)).all()


def test_one_joins_and_one_leaves(library: Path, tmp_path: Path) -> None:
    """The one that joins is sent the library; the one that leaves hands over what it has."""
    y = np.zeros(64)
    with (
        local_cluster(1) as (local, client),
        Cluster(client, processes=1, slice_seconds=1e-6, wait_for_nodes=LIMIT) as cluster,
    ):
        wait = load_wait(cluster, library)
        ticket = cluster.submit(wait, path_argument(tmp_path / "go"), sliced(y), grain=2)
        first = cluster.nodes()
        local.scale(2)
        wait_until(lambda: len(cluster.nodes()) == 2)
        joined = set(cluster.nodes()) - set(first)
        (tmp_path / "go").touch()
        ticket.wait(LIMIT)
        assert (y == 1).all()
        (tmp_path / "go").unlink()
        ticket = cluster.submit(wait, path_argument(tmp_path / "go"), sliced(y), grain=2)
        wait_until(lambda: len(running(client)) == 2 and all(v["running"] for v in running(client)))
        leaving = threading.Thread(target=client.retire_workers, args=(first,))
        leaving.start()  # it may wait for what runs there
        (tmp_path / "go").touch()
        ticket.wait(LIMIT)
        leaving.join(LIMIT)
        assert (y == 2).all() and joined & set(ticket.progress().nodes)


def test_without_nannies_the_others_go_on(library: Path) -> None:
    y = np.zeros(1000)
    with local_cluster(2, processes=False) as (_, client), Cluster(client) as cluster:
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        assert len(cluster.nodes()) == 2
        cluster.submit(add, sliced(y), grain=10).wait(LIMIT)
        client.retire_workers(cluster.nodes()[:1])
        cluster.submit(add, sliced(y), grain=10).wait(LIMIT)
    assert (y == 2).all()


def test_no_worker_has_come(library: Path) -> None:
    with local_cluster(0) as (local, client), Cluster(client, wait_for_nodes=0.5) as cluster:
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        y = np.zeros(4)
        with pytest.raises(leveret.Unavailable, match=r"no worker has come to tcp.*dask worker"):
            cluster.submit(add, sliced(y)).wait(LIMIT)
        with pytest.raises(leveret.Unavailable, match="no worker has come"):
            cluster.scatter(y)
        local.scale(1)
        client.wait_for_workers(1)
        cluster.submit(add, sliced(y)).wait(LIMIT)
    assert (y == 1).all()


def test_chunks_that_went_with_their_node_and_a_restart(library: Path, tmp_path: Path) -> None:
    with (
        local_cluster(1) as (_, client),
        Cluster(client, processes=1, wait_for_nodes=LIMIT) as cluster,
    ):
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        data = cluster.scatter(np.zeros(10), 2)
        end_workers(client)
        with pytest.raises(leveret.Unavailable, match="scatter it again"):
            cluster.submit(add, sliced(data)).wait(LIMIT)
        with pytest.raises(leveret.Unavailable, match="scatter it again"):
            data.gather()
        wait = load_wait(cluster, library)
        y = np.zeros(4)
        ticket = cluster.submit(wait, path_argument(tmp_path / "go"), sliced(y))
        wait_until(lambda: any(each["running"] for each in running(client)))
        client.restart(wait_for_workers=False)
        with pytest.raises(leveret.Unavailable, match="submit again"):
            ticket.wait(LIMIT)
        (tmp_path / "go").touch()
        cluster.submit(wait, path_argument(tmp_path / "go"), sliced(y)).wait(LIMIT)
    assert (y == 1).all()


def test_scatter_after_a_node_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has told the driver yet: it asks for the nodes once, and never again."""
    pytest.importorskip("distributed")
    from leveret.cluster import dask_engine

    monkeypatch.setattr(dask_engine, "POLL_SECONDS", 1e6)
    x = np.arange(1000.0)
    with local_cluster(2) as (_, client), Cluster(client, wait_for_nodes=LIMIT) as cluster:
        wait_until(lambda: len(cluster.nodes()) == 2)
        gone = end_workers(client, most=1)[0]
        cluster.scatter(x)  # the scheduler may not know it, too
        wait_until(lambda: gone not in client.nthreads())
        assert gone in cluster.nodes()
        assert (cluster.scatter(x).gather() == x).all()
        all_gone = end_workers(client)
        wait_until(lambda: not set(all_gone) & set(client.nthreads()))
        assert (cluster.scatter(x).gather() == x).all()  # on those that come


def test_the_scheduler_dies_and_is_started_anew(library: Path, tmp_path: Path) -> None:
    """Its death is told at once; what is asked for when there is one again, is done."""
    distributed = pytest.importorskip("distributed")
    import subprocess
    import sys

    port_file = tmp_path / "scheduler.json"

    def start(module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *words]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tmp_path)

    started = [start("dask_scheduler", "--port", "0", "--scheduler-file", str(port_file))]
    scheduler = started[0]
    try:
        wait_until(port_file.exists)
        client = distributed.Client(scheduler_file=str(port_file))
        cluster = Cluster(client, processes=1)
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        ticket = cluster.submit(add, sliced(np.zeros(4)))  # waits: there is no worker
        wait_until(lambda: ticket.progress().under_way)
        results = cluster.map(abs, range(-100_000, 0))
        scheduler.kill()
        for refused in (
            lambda: ticket.wait(LIMIT),
            lambda: list(results),
            lambda: cluster.submit(add, sliced(np.zeros(4))).wait(LIMIT),
            lambda: cluster.scatter(np.zeros(4)),
            lambda: Cluster(client),
        ):
            with pytest.raises(leveret.Unavailable, match=r"the connection to .* was lost"):
                refused()
        address = client.scheduler.address
        started.append(start("dask_scheduler", "--port", address.rpartition(":")[2]))
        started.append(start("dask_worker", address, "--nthreads", "1", "--no-nanny"))
        wait_until(lambda: client.status == "running" and client.nthreads())
        y = np.zeros(4)
        cluster.submit(add, sliced(y)).wait(LIMIT)
        assert (y == 1).all() and any(client.run(node.has_node, name(cluster)).values())
        cluster.close()
        assert not any(client.run(node.has_node, name(cluster)).values())
        client.close()
    finally:
        for each in started:
            each.kill()
            each.wait()


def name(cluster: Cluster) -> str:
    return cluster._settings.cluster


def pools_of(pid: int) -> Any:
    """None for a moment, when a worker process is being replaced."""
    try:
        return leveret._core.look_at_pools(pid)
    except leveret.Unavailable:
        return []
