"""leveret.Cluster: tasks over sliced arrays, on Dask's workers and on plain executors."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LIMIT, needs_processes

import leveret
from leveret import Cluster, sliced

pytestmark = needs_processes

ROOT = "in f8, out f8, count(0) -> int"


@pytest.fixture(params=["dask", "threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "dask":
        with Cluster(request.getfixturevalue("dask_client"), processes=1) as opened:
            yield opened
        return
    with ThreadPoolExecutor(2) as threads, Cluster(threads, processes=1) as opened:
        yield opened


def test_the_call_of_runtime_submit(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    x, y = np.arange(10_000.0), np.zeros(10_000)
    ticket = cluster.submit(root, sliced(x), sliced(y))
    ticket.wait(LIMIT)
    assert (y == 2 * x).all()
    assert ticket.done() and ticket.status_code == 0 and ticket.procedure is root
    progress = ticket.progress()
    assert progress[:3] == (10_000, 0, 10_000) and progress.pieces >= 4
    assert set(progress.nodes) <= set(cluster.nodes()) or len(progress.nodes) == 1


def test_values_ranges_whole_arrays_and_rows(cluster: Cluster, library: Path) -> None:
    square = cluster.load(library, "square_range", "range, out u8")
    squares = np.zeros(500, np.uint64)
    cluster.submit(square, range(100, 600), sliced(squares)).wait(LIMIT)
    assert (squares == np.arange(100, 600, dtype=np.uint64) ** 2).all()
    cluster.submit(square, np.int64(500), sliced(squares)).wait(LIMIT)
    assert (squares == np.arange(500, dtype=np.uint64) ** 2).all()

    axpy = leveret.builtin("axpy")
    a, b = np.arange(300.0), np.ones(300)
    cluster.submit(axpy, 2.0, sliced(a), sliced(b)).wait(LIMIT)
    assert (b == 1 + 2 * a).all()

    sums = np.zeros(100)
    rows = cluster.load(library, "sum_rows", "in f8, rows(0), count(0), out f8[rows(0)]")
    matrix = np.arange(500.0).reshape(100, 5)
    cluster.submit(rows, sliced(matrix), sliced(sums)).wait(LIMIT)
    assert (sums == matrix.sum(axis=1)).all()


def test_poison_names_the_element_of_the_whole_and_the_node(
    cluster: Cluster, library: Path
) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    x, y = np.arange(1.0, 4001), np.zeros(4000)
    x[3123] = -1
    ticket = cluster.submit(root, sliced(x), sliced(y))
    with pytest.raises(leveret.Poison, match=r"'root_or_crash' at elements \[3123, 3124\) on"):
        ticket.wait(LIMIT)
    with pytest.raises(leveret.Poison, match="all others are done") as again:
        ticket.wait(LIMIT)
    assert again.value.elements == (3123, 3124) and again.value.node in ticket.progress().nodes
    x[3123] = 0
    assert (y == 2 * x).all()


def test_several_failures_have_their_places(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    bad = [0, 1, 77, 1500, 1999]
    x, y = np.arange(1.0, 2001), np.full(2000, -5.0)
    x[bad] = -1
    ticket = cluster.submit(root, sliced(x), sliced(y), max_attempts=1)
    with pytest.raises(leveret.Poison, match=r"the first of \d failures"):
        ticket.wait(LIMIT)
    places = sorted(getattr(each, "elements", None) or (0, 0) for each in ticket.failures)
    assert places == [(i, i + 1) for i in bad]
    assert (y[bad] == -5).all() and (np.delete(y, bad) == 2 * np.delete(x, bad)).all()


def test_a_slice_whose_task_fails_leaves_no_trace(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    x, y = np.arange(1.0, 1001), np.full(1000, -5.0)
    x[500] = np.inf
    ticket = cluster.submit(root, sliced(x), sliced(y), grain=10)
    with pytest.raises(leveret.TaskFailed, match="returned 7") as failure:
        ticket.wait(LIMIT)
    assert failure.value.code == 7
    begin, end = failure.value.elements or (0, 0)
    assert begin <= 500 < end and (y[begin:end] == -5).all()
    assert (y[:begin] == 2 * x[:begin]).all() and (y[end:] == 2 * x[end:]).all()


def test_inout_is_visible_once(cluster: Cluster, library: Path) -> None:
    add = cluster.load(library, "add_one", "inout f8, count(0)")
    y = np.arange(1000.0)
    first = cluster.submit(add, sliced(y))
    cluster.submit(add, sliced(y), after=first).wait(LIMIT)
    assert (y == np.arange(1000.0) + 2).all()


def test_what_comes_after_reads_what_was_made(cluster: Cluster, library: Path) -> None:
    """The argument that goes whole is read when what comes before has ended."""
    scale = leveret.builtin("scale")
    add = cluster.load(library, "add_first", "in f8[any], inout f8, count(1)")
    x, y = np.ones(1), np.ones(100)
    last = None
    for _ in range(5):
        doubled = cluster.submit(scale, 2.0, sliced(x), after=() if last is None else last)
        last = cluster.submit(add, x, sliced(y), after=doubled)
    assert last is not None
    last.wait(LIMIT)
    assert (x == 32).all() and (y == 1 + 2 + 4 + 8 + 16 + 32).all()


def test_what_comes_after_a_failure_does_not_run(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    x, y = np.full(8, np.inf), np.zeros(8)
    first = cluster.submit(root, sliced(x), sliced(y))
    second = cluster.submit(root, sliced(np.ones(8)), sliced(y), after=[first])
    with pytest.raises(leveret.DependencyFailed, match="returned 7"):
        second.wait(LIMIT)
    with pytest.raises(leveret.TaskFailed):
        first.wait(LIMIT)
    assert (y == 0).all()


def test_arrays_stay_on_their_nodes(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    add = cluster.load(library, "add_one", "inout f8, count(0)")
    x = np.arange(1.0, 1001)
    data = cluster.scatter(x)
    made = cluster.empty_like(data)
    assert len(data) == 1000 and made.nbytes == 8000 and (made.gather() == 0).all()
    cluster.submit(root, sliced(data), sliced(made)).wait(LIMIT)
    cluster.submit(add, sliced(made)).wait(LIMIT)
    assert (made.gather() == 2 * x + 1).all() and (cluster.gather(data) == x).all()


def test_failures_on_the_nodes_leave_what_was_there(cluster: Cluster, library: Path) -> None:
    root = cluster.load(library, "root_or_crash", ROOT)
    x = np.arange(1.0, 101)
    x[33] = -1
    data, made = cluster.scatter(x, 4), cluster.scatter(np.full(100, -5.0), 4)
    with pytest.raises(leveret.Poison, match=r"elements \[33, 34\)"):
        cluster.submit(root, sliced(data), sliced(made)).wait(LIMIT)
    x[33] = -2.5
    assert (made.gather() == 2 * x).all()


def test_as_completed_and_progress(cluster: Cluster, library: Path) -> None:
    add = cluster.load(library, "add_one", "inout f8, count(0)")
    arrays = [np.zeros(10) for _ in range(4)]
    tickets = [cluster.submit(add, sliced(each), priority=i) for i, each in enumerate(arrays)]
    assert cluster.progress().total == 40
    assert set(cluster.as_completed(tickets, LIMIT)) == set(tickets)
    assert all((each == 1).all() for each in arrays)
    assert list(cluster.as_completed([])) == []
    assert list(cluster.as_completed(tickets[0], LIMIT)) == tickets[:1]


def test_nothing_at_all(cluster: Cluster, library: Path) -> None:
    add = cluster.load(library, "add_one", "inout f8, count(0)")
    cluster.submit(add, sliced(np.zeros(0))).wait(LIMIT)


def test_two_versions_of_a_library(cluster: Cluster, library: Path, tmp_path: Path) -> None:
    results = []
    for number in (1, 2):
        source, path = tmp_path / f"v{number}.c", tmp_path / f"v{number}.so"
        source.write_text(
            "#include <stddef.h>\n"
            "void which(double* y, size_t n) {\n"
            f"  for (size_t i = 0; i < n; ++i) y[i] = {number};\n}}\n"
        )
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
        which = cluster.load(path, "which", "out f8, count(0)", name=f"which-{uuid.uuid4()}")
        y = np.zeros(100)
        cluster.submit(which, sliced(y)).wait(LIMIT)
        results.append(set(y))
    assert results == [{1.0}, {2.0}]


def test_cancel_ends_what_runs(cluster: Cluster, library: Path, tmp_path: Path) -> None:
    wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
    path = np.frombuffer(str(tmp_path / "never").encode() + b"\0", np.uint8)
    y = np.zeros(4)
    ticket = cluster.submit(wait, path, sliced(y))
    with pytest.raises(leveret.TimeoutError, match="not done"):
        ticket.wait(0.2)
    assert ticket.cancel()
    with pytest.raises(leveret.Cancelled):
        ticket.wait(LIMIT)
    assert not ticket.cancel() and ticket.status_code == leveret.Status.CANCELLED
    add = cluster.load(library, "add_one", "inout f8, count(0)")
    cluster.submit(add, sliced(y)).wait(LIMIT)  # its node is free, long before the file could come
    assert (y == 1).all()


def test_leaving_the_block_by_an_error_ends_what_runs(
    dask_client: Any, library: Path, tmp_path: Path
) -> None:
    path = np.frombuffer(str(tmp_path / "never").encode() + b"\0", np.uint8)
    y = np.zeros(4)
    with pytest.raises(KeyboardInterrupt), Cluster(dask_client) as cluster:
        wait = cluster.load(library, "wait_for_file", "in u1, inout f8, count(1) -> int")
        ticket = cluster.submit(wait, path, sliced(y))
        raise KeyboardInterrupt
    assert ticket.status_code == leveret.Status.CANCELLED
    assert cluster.closed and dask_client.submit(pow, 2, 3).result(LIMIT) == 8


def test_the_end_of_the_block_tells_what_nobody_waited_for(library: Path) -> None:
    with pytest.raises(leveret.TaskFailed, match="returned 7"):  # noqa: SIM117
        with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
            root = cluster.load(library, "root_or_crash", ROOT)
            cluster.submit(root, sliced(np.full(3, np.inf)), sliced(np.zeros(3)))


def test_what_importing_leveret_does_not_import() -> None:
    code = "import leveret, sys; leveret.Cluster; import leveret.cluster.node"
    code += "; assert not {'asyncio', 'dask', 'numpy', 'leveret.executor'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
