"""Programs of a Cluster made at random, and NumPy's word for what they must come to.

`python cluster_programs.py SEED COUNT` runs some on two Dask workers, and says what went wrong.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from cluster_functions import fate_of, node_pid
from conftest import LIMIT, rest, wait_until

import leveret
from leveret import Cluster, sliced

STEPS = 6  # of a program
ITEMS = 200  # of a map(), at most


class Program:
    """Steps on one Cluster. world: what may be done to its nodes at any time, by name."""

    def __init__(self, seed: int, cluster: Cluster, library: Path, world: dict[str, Any]) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.cluster = cluster
        self.library = library
        self.world = world
        self.said = [f"seed {seed}"]

    def run(self, count: int = STEPS) -> None:
        steps = [self.scale, self.squares, self.rows, self.roots, self.lying, self.chain]
        steps += [self.calls, self.calls, self.cancelled]
        for _ in range(count):
            step = self.chance.choice(steps)
            self.said.append(step.__name__)
            try:
                step()
            except BaseException as error:
                raise AssertionError(", ".join(self.said)) from error

    # What steps are made of.

    def load(self, symbol: str, signature: str) -> leveret.Procedure:
        return self.cluster.load(self.library, symbol, signature)

    def submit(self, procedure: leveret.Procedure, *args: Any, **more: Any) -> Any:
        """With a grain, or without, and with something that happens to the nodes meanwhile."""
        if self.chance.random() < 0.6:
            more["grain"] = self.chance.choice([1, 3, 16, 100])
        if self.chance.random() < 0.3:
            more["priority"] = self.chance.randint(-2, 2)
        ticket = self.cluster.submit(procedure, *args, **more)
        self.disturb()
        return ticket

    def disturb(self) -> None:
        if self.world and self.chance.random() < 0.4:
            name = self.chance.choice(sorted(self.world))
            self.said.append(f"({name})")
            self.world[name](self.chance)

    def length(self) -> int:
        return self.chance.choice([0, 1, 2, 7, 64, 500, 3000])

    def array(self, count: int) -> Any:
        """Of every step and order in memory."""
        made = self.numbers.integers(1, 1000, count).astype("f8")
        kind = self.chance.randrange(4)
        if kind == 0:
            wide = np.zeros((count, 3))
            wide[:, 1] = made
            return wide[:, 1]
        if kind == 1:
            return made[::-1].copy()[::-1]
        return made

    # Steps: each compares what it got with NumPy's.

    def scale(self) -> None:
        x, y, by = self.array(count := self.length()), self.array(count), self.chance.random()
        wanted = y + by * x
        self.submit(leveret.builtin("axpy"), by, sliced(x), sliced(y)).wait(LIMIT)
        np.testing.assert_allclose(y, wanted)

    def squares(self) -> None:
        begin, count = self.chance.randrange(1000), self.length()
        y = np.zeros(count, np.uint64)
        square = self.load("square_range", "range, out u8")
        self.submit(square, range(begin, begin + count), sliced(y)).wait(LIMIT)
        np.testing.assert_array_equal(y, np.arange(begin, begin + count, dtype=np.uint64) ** 2)

    def rows(self) -> None:
        count, width = self.length(), self.chance.randint(1, 9)
        matrix, sums = self.numbers.random((count, width)), np.zeros(count)
        if self.chance.random() < 0.5:
            matrix = np.asfortranarray(matrix)
        add = self.load("sum_rows", "in f8, rows(0), count(0), out f8[rows(0)]")
        self.submit(add, sliced(matrix), sliced(sums)).wait(LIMIT)
        np.testing.assert_allclose(sums, matrix.sum(axis=1))

    def roots(self) -> None:
        """Some elements end their process, and are as they were; all others are done."""
        x = self.array(self.length())
        bad = sorted(self.chance.sample(range(len(x)), min(len(x), self.chance.randrange(4))))
        x[bad] = -1
        y = np.full(len(x), -5.0)
        root = self.load("root_or_crash", "in f8, out f8, count(0) -> int")
        ticket = self.submit(root, sliced(x), sliced(y), max_attempts=1)
        self.check_poison(ticket, bad)
        wanted = 2 * x
        wanted[bad] = -5
        np.testing.assert_array_equal(y, wanted)

    def check_poison(self, ticket: Any, bad: list[int]) -> None:
        try:
            ticket.wait(LIMIT)
            assert not bad
        except leveret.Poison as error:
            assert error.elements == (bad[0], bad[0] + 1) or len(bad) > 1
        assert sorted(each.elements for each in ticket.failures) == [(i, i + 1) for i in bad]
        assert ticket.progress()[:2] == (ticket._job.total - len(bad), len(bad))

    def lying(self) -> None:
        """Data on the nodes; kills would take it along, and are left out."""
        x = self.array(max(1, self.length()))
        add = self.load("add_one", "inout f8, count(0)")
        root = self.load("root_or_crash", "in f8, out f8, count(0) -> int")
        data = self.cluster.scatter(x, self.chance.choice([None, 1, 5]))
        made = self.cluster.empty_like(data)
        first = self.cluster.submit(root, sliced(data), sliced(made))
        self.cluster.submit(add, sliced(made), after=first).wait(LIMIT)
        np.testing.assert_array_equal(made.gather(), 2 * x + 1)
        np.testing.assert_array_equal(data.gather(), x)

    def chain(self) -> None:
        """inout slices, one after the other, each visible once."""
        y, ticket = np.zeros(self.length()), ()
        add = self.load("add_one", "inout f8, count(0)")
        links = self.chance.randint(2, 5)
        for _ in range(links):
            ticket = self.submit(add, sliced(y), after=ticket)
        ticket.wait(LIMIT)  # type: ignore[attr-defined]
        assert set(y) <= {float(links)}

    def calls(self) -> None:
        """Each gives its result, raises, or ends its process, in its place."""
        fates = [self.chance.choice("vvvvvvvvvvve") for _ in range(self.chance.randrange(ITEMS))]
        if fates and self.chance.random() < 0.5:
            fates[self.chance.randrange(len(fates))] = "x"
        chunk = self.chance.choice([None, 1, 7])
        results = self.cluster.map(
            fate_of, fates, range(len(fates)), chunksize=chunk, return_exceptions=True
        )
        self.disturb()
        found = list(results)
        assert len(found) == len(fates)
        for i, (fate, value) in enumerate(zip(fates, found)):
            kinds = {"v": int, "e": KeyError, "x": leveret.Poison}
            assert isinstance(value, kinds[fate]), (i, fate, value)
            assert fate != "v" or value == i * i

    def cancelled(self) -> None:
        """What has landed is done once, and the rest is as it was."""
        y = np.zeros(2000)
        add = self.load("add_one_slowly", "inout f8, count(0)")
        ticket = self.submit(add, sliced(y))
        rest(self.chance.random() / 10)
        ticket.cancel()
        with contextlib.suppress(leveret.Cancelled):
            ticket.wait(LIMIT)
        assert set(y) <= {0.0, 1.0} and int(y.sum()) == ticket.progress().done


@contextlib.contextmanager
def on_threads(library: Path, seed: int) -> Iterator[Program]:
    with ThreadPoolExecutor(2) as threads:
        opened: Executor = threads
        with Cluster(opened, processes=1 + seed % 2, slice_seconds=0.01) as cluster:
            yield Program(seed, cluster, library, {})


def world_of(local: Any, client: Any) -> dict[str, Any]:
    """What happens to a LocalCluster's nodes. One is there, or comes back, in any case."""

    def kill(chance: random.Random) -> None:
        pids = list(client.run(node_pid, on_error="ignore").values())
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(pids), signal.SIGKILL)

    def scale(chance: random.Random) -> None:
        local.scale(chance.randint(1, 3))

    return {"kill": kill, "scale": scale}


@contextlib.contextmanager
def on_dask(library: Path, seed: int, local: Any, client: Any, wild: bool) -> Iterator[Program]:
    with Cluster(client, processes=1, slice_seconds=0.01, wait_for_nodes=LIMIT) as cluster:
        program = Program(seed, cluster, library, world_of(local, client) if wild else {})
        yield program
        if wild:
            wait_until(lambda: client.nthreads() or local.scale(len(local.workers) + 1))


def main() -> None:
    import subprocess
    import tempfile

    from conftest import KERNELS, local_cluster

    first, count = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder, local_cluster(2) as (local, client):
        library = Path(folder) / "kernels.so"
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(KERNELS)]
        subprocess.run(command, check=True)
        for seed in range(first, first + count):
            with on_dask(library, seed, local, client, seed % 2 == 1) as program:
                program.run()
            print(*program.said, flush=True)


if __name__ == "__main__":
    main()
