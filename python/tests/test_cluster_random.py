"""leveret.Cluster: programs made at random (cluster_programs.py), against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_programs import STEPS, on_dask, on_threads
from conftest import DEEP, LIMIT, local_cluster, needs_processes

import leveret
from leveret import Cluster, sliced

pytestmark = needs_processes


@pytest.mark.parametrize("seed", range(200 if DEEP else 2))
def test_programs_on_threads(library: Path, seed: int) -> None:
    with on_threads(library, seed) as program:
        program.run()


@pytest.mark.parametrize("seed", range(200 if DEEP else 2))
def test_programs_on_dask(dask_client: Any, library: Path, seed: int) -> None:
    with on_dask(library, seed, None, dask_client, wild=False) as program:
        program.run()


@pytest.mark.parametrize("seed", range(20 if DEEP else 1))
def test_programs_on_nodes_that_come_and_go(library: Path, seed: int) -> None:
    with (
        local_cluster(2) as (local, client),
        on_dask(library, 100 + seed, local, client, wild=True) as program,
    ):
        program.run(STEPS if DEEP else 3)


@pytest.mark.parametrize("chunks", [1, 4])
def test_inputs_in_any_order_and_that_nobody_has_written(
    dask_client: Any, library: Path, chunks: int
) -> None:
    """Engines move arrays in the order of their memory; a chunk of zeros is nowhere yet."""
    matrix, sums = np.asfortranarray(np.arange(60.0).reshape(20, 3)), np.zeros(20)
    x = np.arange(40.0)[::2]
    with Cluster(dask_client, processes=1) as cluster:
        rows = cluster.load(library, "sum_rows", "in f8, rows(0), count(0), out f8[rows(0)]")
        root = cluster.load(library, "root_or_crash", "in f8, out f8, count(0) -> int")
        cluster.submit(rows, sliced(matrix), sliced(sums)).wait(LIMIT)
        assert (sums == matrix.sum(axis=1)).all()
        cluster.submit(root, sliced(x), sliced(sums)).wait(LIMIT)
        assert (sums == 2 * x).all()
        zeros = cluster.empty_like(cluster.scatter(x, chunks))
        cluster.submit(leveret.builtin("axpy"), 2.0, sliced(zeros), sliced(sums)).wait(LIMIT)
        assert (sums == 2 * x).all()
