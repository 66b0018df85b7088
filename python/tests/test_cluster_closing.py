"""leveret.Cluster: close() while other threads submit, map and wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from conftest import LIMIT, needs_processes, wait_until

import leveret
from leveret import Cluster, sliced
from leveret.cluster import cluster as cluster_module
from leveret.cluster import node

pytestmark = needs_processes


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as opened:
        yield opened


def scaled(cluster: Cluster, **options: Any) -> leveret.ClusterTicket:
    return cluster.submit(leveret.builtin("scale"), 2.0, sliced(np.ones(4)), **options)


def closes(cluster: Cluster) -> Iterator[Any]:
    """An iterable during which the cluster is closed, as another thread may do."""
    cluster.close()
    yield from ()


def mapped(cluster: Cluster) -> None:
    def items() -> Iterator[int]:
        yield 1
        yield from closes(cluster)

    list(cluster.map(abs, items(), timeout=LIMIT))


def submitted(cluster: Cluster) -> None:
    scaled(cluster, after=closes(cluster)).wait(LIMIT)


@pytest.mark.parametrize("work", [mapped, submitted])
def test_work_that_comes_when_the_cluster_is_closed(
    cluster: Cluster, work: Callable[[Cluster], None]
) -> None:
    """Nobody would look at it any more."""
    with pytest.raises(leveret.Closed, match="the Cluster was closed"):
        work(cluster)


def test_tickets_of_two_threads_are_all_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One submits while another looks which tickets are over; the end of a block waits for both."""
    others: list[leveret.ClusterTicket] = []
    is_over = cluster_module._is_over

    def look(ticket: leveret.ClusterTicket) -> bool:
        if not others:
            thread = threading.Thread(target=lambda: others.append(scaled(cluster)))
            others.append(ticket)
            thread.start()
            thread.join(LIMIT)
        return is_over(ticket)

    first = scaled(cluster)
    monkeypatch.setattr(cluster_module, "_is_over", look)
    last = scaled(cluster)
    assert {others[1], last} <= set(cluster._tickets)
    first.wait(LIMIT)
    cluster.wait_for_completion(LIMIT)
    assert all(each.done() for each in (first, last, *others)) and not cluster._tickets


def test_the_nodes_are_closed_though_a_signal_leaves_close(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Ctrl-C does in its wait. The next close() waits for the rest."""
    scaled(cluster).wait(LIMIT)
    driver, name = cluster._driver, cluster._settings.cluster
    assert node.has_node(name)

    def interrupted() -> None:
        wait_until(lambda: cluster.closed)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(driver.thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cluster.close()
    cluster.close()
    assert cluster.closed and not driver.thread.is_alive() and not node.has_node(name)


def test_the_nodes_are_closed_though_the_engine_raises(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is under way has an end, and close() says why."""
    scaled(cluster).wait(LIMIT)
    driver, name = cluster._driver, cluster._settings.cluster

    def raises() -> int:
        raise MemoryError("of the engine")

    monkeypatch.setattr(driver.engine, "slots", raises)
    with pytest.raises(leveret.Closed) as told:
        scaled(cluster).wait(LIMIT)
    assert isinstance(told.value.__cause__, MemoryError)
    with pytest.raises(MemoryError, match="of the engine"):
        cluster.close()
    cluster.close()
    assert cluster.closed and not node.has_node(name)


def test_a_job_is_known_before_it_runs(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the end of a block waits for it; one that a Ctrl-C has left is ended."""
    known: list[leveret.ClusterTicket] = []
    add = cluster._driver.add

    def interrupted(job: Any) -> None:
        known.extend(cluster._tickets)
        add(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster._driver, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scaled(cluster)
    assert len(known) == 1 and not cluster._tickets
    assert known[0]._job.finished.wait(LIMIT)


def test_work_that_comes_behind_the_end(cluster: Cluster) -> None:
    """The driver is told to stop, and is not there yet."""
    driver, is_free = cluster._driver, threading.Event()
    driver.call(lambda: is_free.wait(LIMIT))
    closing = threading.Thread(target=cluster.close, daemon=True)
    wait_until(driver.inbox.empty)
    closing.start()
    wait_until(lambda: not driver.inbox.empty())
    ticket = scaled(cluster)
    is_free.set()
    with pytest.raises(leveret.Closed, match="the Cluster was closed"):
        ticket.wait(LIMIT)
    closing.join(LIMIT)
    assert not closing.is_alive()
