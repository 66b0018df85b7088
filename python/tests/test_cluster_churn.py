"""leveret.Cluster: nodes that come and go at random, that share workers, and that die at named
moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import uuid
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from cluster_functions import node_pid, pools_here
from conftest import DEEP, LIMIT, local_cluster, needs_processes, rest, wait_until

import leveret
from leveret import Cluster, Procedure, sliced

pytestmark = needs_processes

MOST = 3  # nodes
MODES = [False, True] if DEEP else [False]  # whether nodes are processes


def add_slowly(cluster: Cluster, library: Path) -> Procedure:
    return cluster.load(library, "add_one_slowly", "inout f8, count(0)")


def end_nodes(client: Any) -> None:
    for pid in client.run(node_pid).values():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("processes", MODES)
@pytest.mark.parametrize("seed", range(20 if DEEP else 2))
def test_nodes_come_and_go(library: Path, seed: int, processes: bool) -> None:
    """Each element is done once, and each call gives its result, whoever is there."""
    chance = random.Random(seed)
    y = np.zeros(600)
    changes = sorted(chance.randrange(400) for _ in range(8))
    with (
        local_cluster(1, processes=processes) as (local, client),
        Cluster(client, processes=1, slice_seconds=0.01, wait_for_nodes=LIMIT) as cluster,
    ):
        ticket = cluster.submit(add_slowly(cluster, library), sliced(y))
        results = cluster.map(abs, range(-300, 0), chunksize=5)
        while changes and not ticket.done():
            if ticket.progress().done < changes[0]:
                rest(0.002)
                continue
            changes.pop(0)
            if chance.random() < 0.5 and cluster.nodes():
                client.retire_workers([chance.choice(cluster.nodes())])
            local.scale(chance.randint(1, MOST))
        ticket.wait(LIMIT)
        assert list(results) == list(range(300, 0, -1)), f"seed {seed}"
        assert set(y) == {1.0}, f"seed {seed}"


def test_nodes_share_workers(dask_client: Any, library: Path, tmp_path: Path) -> None:
    """Two nodes on one computer that name the same pool have its two workers, and no others."""
    name = f"tests-{uuid.uuid4().hex[:8]}"
    path = np.frombuffer(str(tmp_path / "go").encode() + b"\0", np.uint8)
    y = np.zeros(8)
    # Executors that other tests have given to Dask, and taken back, may be ending.
    wait_until(lambda: not any(dask_client.run(pools_here).values()))
    with Cluster(dask_client, processes=2, pool=name) as cluster:
        wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
        ticket = cluster.submit(wait, path, sliced(y))
        wait_until(lambda: all(dask_client.run(pools_here).values()))
        found = [each for pools in dask_client.run(pools_here).values() for each in pools]
        workers = {worker["pid"] for pool in found for worker in pool["workers"]}
        assert len(workers) == 2
        (tmp_path / "go").touch()
        ticket.wait(LIMIT)
        assert set(y) == {1.0}
        assert list(cluster.map(abs, range(-9, 0))) == list(range(9, 0, -1))


def first_time(engine: Any, method: str, happens: Callable[[], object]) -> list[bool]:
    """Has something happen when an engine's method is called first; whether it was."""
    genuine = getattr(engine, method)
    called: list[bool] = []

    def then(*args: Any) -> Any:
        if not called:
            called.append(True)
            happens()
        return genuine(*args)

    setattr(engine, method, then)
    return called


def test_nodes_that_die_at_named_moments(library: Path) -> None:
    with local_cluster(1) as (local, client):

        def end() -> None:
            end_nodes(client)

        def finish(ticket: leveret.ClusterTicket) -> None:
            """A nanny of Dask's may start no other worker when one dies as it starts."""
            for _ in range(30):
                with contextlib.suppress(leveret.TimeoutError):
                    return ticket.wait(LIMIT / 30)
                if not client.nthreads():
                    local.scale(len(local.workers) + 1)
            return ticket.wait(0)

        def opened() -> Cluster:
            return Cluster(client, processes=1, slice_seconds=0.01, wait_for_nodes=LIMIT)

        y = np.zeros(40)
        with opened() as cluster:  # when it asks for the library, which none has yet
            genuine = cluster._driver._judge
            asked: list[bool] = []

            def judge(piece: Any, told: Any) -> None:
                genuine(piece, told)
                if piece.parcels and not asked:
                    asked.append(True)
                    end()

            cluster._driver._judge = judge  # type: ignore[method-assign]
            finish(cluster.submit(add_slowly(cluster, library), sliced(y)))
            assert asked
        with opened() as cluster:  # before the first piece
            end()
            finish(cluster.submit(add_slowly(cluster, library), sliced(y)))
        with opened() as cluster:  # when a piece is taken back
            taken = first_time(cluster._driver.engine, "take_back", end)
            ticket = cluster.submit(add_slowly(cluster, library), sliced(np.zeros(20_000)))
            wait_until(lambda: ticket.progress().under_way)
            assert ticket.cancel()
            with pytest.raises(leveret.Cancelled):
                ticket.wait(LIMIT)
            finish(cluster.submit(add_slowly(cluster, library), sliced(y)))
            assert taken
        cluster = opened()  # when it is to be closed
        finish(cluster.submit(add_slowly(cluster, library), sliced(y)))
        end()
        cluster.close()
    assert set(y) == {4.0}
