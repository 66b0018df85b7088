"""The driver of test_cluster_network.py: `python network_driver.py cut SCHEDULER LIBRARY FAR`.

It runs beside the scheduler. FAR is the network namespace of a node, whose link is its eth0.
"""

from __future__ import annotations

import select
import subprocess
import sys
from typing import Any

import numpy as np
from conftest import LIMIT, wait_until
from distributed import Client

from leveret import Cluster, sliced

NODES = 2


def set_link(far: str, state: str) -> None:
    subprocess.run(["ip", "-n", far, "link", "set", "dev", "eth0", state], check=True)


def square(x: int) -> int:
    select.select([], [], [], 0.002)
    return x * x


def run_both(cluster: Cluster, library: str, y: Any, happens: Any) -> None:
    """Slices and calls, and something in the midst of them."""
    slow = cluster.load(library, "add_one_slowly", "inout f8, count(0)")
    before = y[0]
    ticket = cluster.submit(slow, sliced(y))
    results = cluster.map(square, range(500), chunksize=5)
    wait_until(lambda: ticket.progress().done > len(y) // 10)
    happens()
    ticket.wait(LIMIT)
    assert list(results) == [i * i for i in range(500)]
    assert set(y) == {before + 1}


def cut(cluster: Cluster, library: str, far: str) -> None:
    """The link to a node is cut in the midst; it comes back, and so does the node."""
    y = np.zeros(2000)
    run_both(cluster, library, y, lambda: set_link(far, "down"))
    wait_until(lambda: len(cluster.nodes()) == NODES - 1)
    slow = cluster.load(library, "add_one_slowly", "inout f8, count(0)")
    cluster.submit(slow, sliced(y[:100])).wait(LIMIT)
    assert set(y[:100]) == {2.0}
    set_link(far, "up")
    wait_until(lambda: len(cluster.nodes()) == NODES)

    def both_take_part() -> bool:
        ticket = cluster.submit(slow, sliced(y))
        ticket.wait(LIMIT)
        return len(ticket.progress().nodes) == NODES

    wait_until(both_take_part)
    assert len(set(y[:100])) == len(set(y[100:])) == 1


def delay(cluster: Cluster, library: str, far: str) -> None:
    """All that goes to a node and comes from it is late, and some of it is lost on the way."""
    run_both(cluster, library, np.zeros(1000), lambda: None)


def main(what: str, scheduler: str, library: str, far: str) -> None:
    with Client(scheduler) as client:
        client.wait_for_workers(NODES, timeout=LIMIT)
        with Cluster(client, processes=1, slice_seconds=0.02, wait_for_nodes=LIMIT) as cluster:
            {"cut": cut, "delay": delay}[what](cluster, library, far)
    print("all was done once")


if __name__ == "__main__":
    main(*sys.argv[1:])
