"""leveret.Cluster: clients that close, arrays of others, and what is dropped or awaited."""

from __future__ import annotations

import asyncio
import functools
import gc
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest
from conftest import LIMIT, needs_processes, wait_until

import leveret
from leveret import Cluster, sliced
from leveret.cluster import cluster as cluster_module
from leveret.cluster import names, node
from leveret.cluster.engine import ExecutorEngine, Sent, Told
from leveret.cluster.pace import Pace

pytestmark = needs_processes


def add_one(cluster: Cluster, library: Path) -> leveret.Procedure:
    return cluster.load(library, "add_one", "inout f8, count(0)")


def another_client(dask_client: Any) -> Any:
    import distributed

    return distributed.Client(dask_client.scheduler.address, set_as_default=False)


def test_a_client_that_is_closed_meanwhile(dask_client: Any, library: Path, tmp_path: Path) -> None:
    client = another_client(dask_client)
    cluster = Cluster(client, processes=1)
    address = client.scheduler.address
    data = cluster.scatter(np.zeros(4))
    path = np.frombuffer(str(tmp_path / "never").encode() + b"\0", np.uint8)
    wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
    ticket = cluster.submit(wait, path, sliced(np.zeros(4)))
    wait_until(lambda: ticket.progress().under_way)
    client.close()
    for refused in (
        ticket.wait,
        lambda: cluster.scatter(np.zeros(4)),
        data.gather,
        cluster.submit(add_one(cluster, library), sliced(np.zeros(4))).wait,
        lambda: list(cluster.map(abs, [1])),
    ):
        with pytest.raises(leveret.Closed, match=r"it is clos.*make a new distributed\.Client"):
            refused()
    assert address in repr(cluster)
    # What ran of it is ended on the nodes, too, where nobody would have waited for it.
    name = cluster._settings.cluster
    wait_until(lambda: not any(dask_client.run(node.has_node, name).values()))
    assert dask_client.submit(pow, 2, 3, pure=False).result(LIMIT) == 8
    cluster.close()


def test_a_client_whose_loop_ends_with_it(
    dask_client: Any, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop was to tell of is lost then."""
    client = another_client(dask_client)
    cluster = Cluster(client, processes=1)

    async def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(cluster._driver.engine, "_follow_all", nothing)
    path = np.frombuffer(str(tmp_path / "never").encode() + b"\0", np.uint8)
    wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
    ticket = cluster.submit(wait, path, sliced(np.zeros(4)))
    wait_until(lambda: ticket.progress().under_way)
    client.close()
    with pytest.raises(leveret.Closed, match=r"make a new distributed\.Client"):
        ticket.wait(LIMIT)
    cluster.close()


def test_a_node_that_was_closed_is_not_opened_again(library: Path) -> None:
    """By a piece that its engine had begun before."""
    settings = names.NodeSettings("closed-early", 1)
    versions = tuple(names.versions())
    about: tuple[Any, ...] = versions, tuple(settings), "job:1", (0, 4), {}, (), False
    missing = pickle.loads(node.perform(pickle.dumps(about)))
    assert (missing.kind, missing.lacks) == ("missing", ("job:1",))
    node.close_nodes("closed-early")
    report = pickle.loads(node.perform(pickle.dumps(about)))
    assert report.kind == "again" and "is closed" in report.why
    assert not [key for key in node._nodes if key[0] == "closed-early"]


def test_a_driver_that_is_killed_leaves_nothing_on_the_nodes(dask_client: Any) -> None:
    program = (
        "import select, sys, leveret, distributed\n"
        "cluster = leveret.Cluster(distributed.Client(sys.argv[1]), processes=1)\n"
        "rest = lambda seconds: select.select([], [], [], seconds)\n"
        "results = cluster.map(rest, [0, *[600] * 4], chunksize=1)\n"
        "next(results)\n"
        "print(cluster._settings.cluster, flush=True)\n"
        "rest(600)\n"
    )
    command = [sys.executable, "-c", program, dask_client.scheduler.address]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    with driver.stdout:
        name = driver.stdout.readline().strip()
        driver.kill()
        driver.wait()
    assert name
    wait_until(lambda: not any(dask_client.run(node.has_node, name).values()))
    assert dask_client.submit(pow, 2, 3, pure=False).result(LIMIT) == 8


def test_a_cluster_that_is_dropped_ends_its_thread_and_nodes(
    dask_client: Any, library: Path
) -> None:
    def drivers() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name == "leveret-cluster"}

    before = drivers()  # of which one that another test has left may be ending
    y = np.zeros(4)
    cluster = Cluster(dask_client, processes=1)
    name = cluster._settings.cluster
    ticket = cluster.submit(add_one(cluster, library), sliced(y))
    with pytest.warns(ResourceWarning, match="was not closed"):
        del cluster
        gc.collect()
    ticket.wait(LIMIT)
    assert (y == 1).all()
    wait_until(lambda: not drivers() - before)
    wait_until(lambda: not any(dask_client.run(node.has_node, name).values()))


def test_data_waits_for_a_node_that_the_engine_starts_for_it(library: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local) as client,
        Cluster(client, processes=1) as cluster,
    ):
        local.adapt(minimum=0, maximum=1, interval="50ms")
        data = cluster.scatter(np.zeros(10), 2)
        cluster.submit(add_one(cluster, library), sliced(data)).wait(LIMIT)
        assert (np.asarray(data) == 1).all()


def test_arrays_of_another_cluster(dask_client: Any, library: Path) -> None:
    client = another_client(dask_client)
    with Cluster(dask_client) as first, Cluster(dask_client) as second, Cluster(client) as other:
        data = first.scatter(np.zeros(8))
        add = add_one(first, library)
        second.submit(add, sliced(data)).wait(LIMIT)
        assert (data.gather() == 1).all()
        with pytest.raises(leveret.InvalidArgument, match="lies with another client; pass array"):
            other.submit(add, sliced(data))
    client.close()


def test_two_clusters_on_one_client(dask_client: Any, library: Path) -> None:
    y = np.zeros(100)
    with Cluster(dask_client, processes=1) as first:
        with Cluster(dask_client, processes=1) as second:
            tickets = [
                each.submit(add_one(each, library), sliced(np.zeros(4))) for each in (first, second)
            ]
            for each in tickets:
                each.wait(LIMIT)
        first.submit(add_one(first, library), sliced(y)).wait(LIMIT)
    assert (y == 1).all()


def test_a_cluster_array_is_an_array_for_numpy() -> None:
    with ThreadPoolExecutor(1) as threads, Cluster(threads) as cluster:
        data = cluster.scatter(np.arange(6.0).reshape(3, 2))
        assert np.asarray(data).shape == (3, 2) and np.asarray(data, "f4").dtype == "f4"
        assert np.sum(data) == 15
        with pytest.raises(ValueError, match="without a copy"):
            data.__array__(copy=False)
        with (
            leveret.Runtime("threads") as runtime,
            pytest.raises(BufferError, match="is only given as a copy"),
        ):
            runtime.submit(leveret.builtin("scale"), 2.0, data)
        assert cluster.scatter(data).gather().shape == (3, 2)


def test_what_stays_here(library: Path) -> None:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        data = cluster.scatter(np.zeros(4))
        ticket = cluster.submit(add_one(cluster, library), sliced(data))
        ticket.wait(LIMIT)
        for each, advice in ((cluster, "do without"), (data, r"gather\(\)"), (ticket, "wait for")):
            kind = type(each).__name__
            with pytest.raises(TypeError, match=rf"a {kind} cannot be sent.*{advice}"):
                cloudpickle.dumps(each)
        with pytest.raises(TypeError, match="a Cluster cannot be sent to a node"):
            list(cluster.map(lambda _: cluster.nodes(), [1]))


def test_tickets_are_awaited(library: Path, tmp_path: Path) -> None:
    path = np.frombuffer(str(tmp_path / "never").encode() + b"\0", np.uint8)
    y = np.zeros(4)

    async def run(cluster: Cluster) -> None:
        add = add_one(cluster, library)
        ticket = cluster.submit(add, sliced(y))
        await asyncio.gather(ticket, cluster.submit(add, sliced(np.zeros(4))))
        await ticket  # again, now that it is done
        root = cluster.load(library, "root_or_crash", "in f8, out f8, count(0) -> int")
        with pytest.raises(leveret.TaskFailed, match="returned 7"):
            await cluster.submit(root, sliced(np.full(4, np.inf)), sliced(np.zeros(4)))
        wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
        waits = cluster.submit(wait, path, sliced(np.zeros(4)))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waits, 0.1)
        with pytest.raises(leveret.Cancelled):
            waits.wait(LIMIT)

    with ThreadPoolExecutor(2) as threads, Cluster(threads, processes=1) as cluster:
        asyncio.run(run(cluster))
    assert (y == 1).all()


def test_large_pieces_go_without_advice(dask_client: Any) -> None:
    """Dask warns of arguments above 10 MB, which ended the map() where warnings are errors."""
    with Cluster(dask_client, processes=1) as cluster:
        assert list(cluster.map(len, [bytes(11_000_000)] * 2, chunksize=1)) == [11_000_000] * 2


class Graveyard(ExecutorEngine):
    """An engine all of whose nodes die."""

    def send(self, pieces: list[Sent]) -> None:
        self.tell([Told(each.key, deaths=4) for each in pieces])


def test_a_piece_that_ends_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "engine_of", Graveyard)
    with (
        ThreadPoolExecutor(1) as threads,
        Cluster(threads) as cluster,
        pytest.raises(leveret.WorkerDied, match=r"on 20 nodes that died.*a higher limit"),
    ):
        list(cluster.map(abs, [1, 2]))


class Lame(ExecutorEngine):
    """Three nodes, whose worker processes cannot start: two turns of each, then the third's."""

    knows_nodes = True
    order = "ABABCCCABC"  # whom the next pieces are sent to

    def nodes(self) -> list[str]:
        return ["A", "B", "C"]

    def send(self, pieces: list[Sent]) -> None:
        for each in pieces:
            self.refused = [*getattr(self, "refused", []), sorted(each.avoid)]
            found = self.order[len(self.refused) - 1]
            self.tell([Told(each.key, report=names.Report("down", found, why="no licence"))])


def test_each_node_has_its_tries_to_start_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others could not do with the piece is no fault of the next."""
    monkeypatch.setattr(cluster_module, "engine_of", Lame)
    with ThreadPoolExecutor(1) as threads, Cluster(threads) as cluster:
        with pytest.raises(leveret.Unavailable, match="no licence"):
            list(cluster.map(abs, [1]))
        engine: Any = cluster._driver.engine
    none: list[str] = []
    assert engine.refused == [*[none] * 7, ["C"], ["A", "C"]]


class Deserted(ExecutorEngine):
    """An engine whose only node leaves with the first piece that it is sent."""

    is_left = False

    def slots(self) -> int:
        return 0 if self.is_left else 1

    def send(self, pieces: list[Sent]) -> None:
        self.is_left = True


def test_the_last_node_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "engine_of", Deserted)
    with (
        ThreadPoolExecutor(1) as threads,
        Cluster(threads, wait_for_nodes=0.1) as cluster,
        pytest.raises(
            leveret.Unavailable, match=r"no worker has come.*were there have died.*limit"
        ),
    ):
        list(cluster.map(abs, [1, 2]))


def test_deaths_that_dask_counts() -> None:
    distributed = pytest.importorskip("distributed")
    from leveret.cluster.dask_engine import DaskEngine

    killed = distributed.KilledWorker("a", SimpleNamespace(address="tcp://b"), 3)
    future = SimpleNamespace(status="error", _state=SimpleNamespace(exception=killed))
    assert DaskEngine(None)._without_result("a", future).deaths == 4


def test_what_is_known_of_functions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large they are, and however many."""
    monkeypatch.setattr(cluster_module, "PACES_MAX", 3)
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        for size in (0, 100_000, 100_001, 100_002, 100_002):
            assert list(cluster.map(functools.partial(max, bytes(size)), [b"a"])) == [b"a"]
            assert len(pickle.dumps(list(cluster._paces))) < 1000
        assert len(cluster._paces) == 1
        (pace,) = cluster._paces.values()
        assert pace.seconds


def test_what_takes_little_is_cut_into_few() -> None:
    pace = Pace(0.1)
    assert pace.size(1000, 1000, 4, 4, 1 << 20) <= 32  # nothing is known
    pace.note(1000, 0.001)
    assert pace.size(1000, 1000, 4, 4, 1 << 20) == 1000
    pace = Pace(0.1)
    pace.note(1000, 1.0)
    assert pace.size(1000, 1000, 4, 4, 1 << 20) <= 63
