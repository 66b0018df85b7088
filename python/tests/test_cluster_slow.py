"""leveret.Cluster: nodes that are slow, or give no answer, and libraries that some nodes lack."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_functions import fail_on_slow_node, node_pid
from conftest import LIMIT, local_cluster, needs_processes, wait_until

import leveret
from leveret import Cluster, sliced
from leveret.cluster.job import Job, Piece
from leveret.cluster.pace import LATE_SECONDS, Pace

pytestmark = needs_processes


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def uneven(libraries: Path) -> Iterator[tuple[Any, str]]:
    """A client of three nodes, and the one of them on which add_one_by_node takes ten minutes.

    It alone finds what lies in the folder of libraries.
    """
    config = pytest.importorskip("dask.config")
    own = "distributed.nanny.pre-spawn-environ"
    with local_cluster(2) as (local, client):
        before = set(client.nthreads())
        with config.set({f"{own}.SLOW_NODE": "/never", f"{own}.LD_LIBRARY_PATH": str(libraries)}):
            local.scale(3)
            client.wait_for_workers(3, timeout=LIMIT)
        yield client, (set(client.nthreads()) - before).pop()


def landings(ticket: leveret.ClusterTicket) -> list[tuple[Piece, str]]:
    """Pieces with their nodes, as they land."""
    found: list[tuple[Piece, str]] = []
    genuine = ticket._job.land

    def land(piece: Piece, report: Any, handle: Any) -> None:
        found.append((piece, report.node))
        genuine(piece, report, handle)

    ticket._job.land = land  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize("stays", [False, True])
def test_the_last_slices_do_not_wait_for_a_slow_node(
    uneven: tuple[Any, str], library: Path, stays: bool
) -> None:
    """What it has when the others have nothing to do runs there as well, and is visible once."""
    client, slow = uneven

    with Cluster(client, processes=1) as cluster:
        add = cluster.load(library, "add_one_by_node", "inout f8, count(0)")

        def is_copied() -> bool:
            """Dask may have given it nothing to do."""
            y = np.zeros(30)
            data = cluster.scatter(y, 3) if stays else y
            ticket = cluster.submit(add, sliced(data), grain=10)
            landed = landings(ticket)
            ticket.wait(LIMIT)
            assert (np.asarray(data) == 1).all()
            progress = ticket.progress()
            assert progress[:4] == (30, 0, 30, 3) and progress.under_way == 0
            assert slow not in {node for _, node in landed}
            return any(piece.has_copy for piece, _ in landed)

        wait_until(is_copied)
        # What runs of it there is ended: the node is free long before it would have been.
        name = cluster._settings.cluster
        wait_until(lambda: not client.run(is_busy, name, workers=[slow])[slow])


def is_busy(cluster: str) -> bool:
    """Whether a piece runs here, by Client.run()."""
    from leveret.cluster import node

    return any(each.running for key, each in node._nodes.items() if key[0] == cluster)


def test_nobody_waits_for_a_node_that_is_stopped(uneven: tuple[Any, str], library: Path) -> None:
    """With what it runs, what waits for it, and results that lie there."""
    client, slow = uneven
    y = np.zeros(2000)
    pid = client.run(node_pid, workers=[slow])[slow]
    with Cluster(client, processes=1, slice_seconds=0.02) as cluster:
        add = cluster.load(library, "add_one_slowly", "inout f8, count(0)")
        cluster.submit(add, sliced(y)).wait(LIMIT)
        ticket = cluster.submit(add, sliced(y))
        wait_until(lambda: ticket.progress().done > 200)
        os.kill(pid, signal.SIGSTOP)
        try:
            ticket.wait(LIMIT)
        finally:
            os.kill(pid, signal.SIGCONT)
    assert set(y) == {2.0}


def test_what_is_late() -> None:
    pace = Pace(0.1)
    for _ in range(20):
        pace.note(100, 0.1)
    pace.note(100, 10.0)  # of a slow node, which does not count
    assert 0.5 < pace.late_seconds(200) < 1.5 and pace.late_seconds(1) == LATE_SECONDS
    job = Job("slow", pace)
    job.may_copy = True
    job.cut = lambda nodes, slots: (0, 200, None)  # type: ignore[method-assign]
    piece = job.take(3, 3)
    assert piece is not None
    assert job.late(piece.sent + 1.6) == [piece] and not job.late(piece.sent + 0.5)
    job.may_copy = False  # as calls, which may do more than to return something
    assert not job.late(piece.sent + 1.6)


def test_one_of_two_that_ends_badly_does_not_count() -> None:
    job = Job("copied", Pace(0.1))
    piece = Piece(job, 0, 0, 4)
    job.number(piece)
    first = piece.key
    assert not job.goes_on(piece) and job.copies(piece) == []
    piece.has_copy = True
    job.number(piece)
    assert job.copies(piece) == [first, piece.key] and piece.key != first
    job.under_way.pop(piece.key)
    assert job.goes_on(piece) and piece.key == first and not piece.has_copy


def build(folder: Path, name: str, text: str, *words: str) -> Path:
    """A library, as a linker makes it: a new file in the place of the one before."""
    source, made, path = folder / f"{name}.c", folder / "new.so", folder / f"lib{name}.so"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(made), str(source), *words], check=True)
    return made.rename(path)


PUT = "#include <stddef.h>\nvoid %s(double* y, size_t n) {\n  while (n > 0) y[--n] = %s;\n}\n"


def test_nodes_that_lack_what_a_library_needs(
    uneven: tuple[Any, str], library: Path, tmp_path: Path, libraries: Path
) -> None:
    """They have no part in what needs it, and in everything else as before."""
    need = build(tmp_path, "need", "double three(void) { return 3; }\n", "-Wl,-soname,libneed.so")
    text = "double three(void);\n" + PUT % ("put", "three()")
    user = build(tmp_path, "user", text, f"-L{tmp_path}", "-lneed")
    ctypes.CDLL(str(need), ctypes.RTLD_GLOBAL)  # here it is there
    client, fit = uneven
    y = np.zeros(90)
    with Cluster(client, processes=1) as cluster:
        put = cluster.load(user, "put", "out f8, count(0)", "put-three")
        ticket = cluster.submit(put, sliced(y), grain=1)
        with pytest.raises(
            leveret.Unavailable, match=r"library of 'put-three' cannot be used on tcp.*libneed\.so"
        ):
            ticket.wait(LIMIT)
        assert len(cluster.nodes()) == 3
        add = cluster.load(library, "add_one", "inout f8, count(0)")
        cluster.submit(add, sliced(y), grain=1).wait(LIMIT)
        need.rename(libraries / need.name)  # one of them has it now
        ticket = cluster.submit(put, sliced(y), grain=1)
        ticket.wait(LIMIT)
        assert ticket.progress().nodes == (fit,) and set(y) == {3.0}
        cluster.submit(add, sliced(y), grain=1).wait(LIMIT)
    assert set(y) == {4.0}


def test_a_node_whose_initializer_raises(uneven: tuple[Any, str]) -> None:
    """The others run the calls."""
    client, _ = uneven
    with Cluster(client, processes=1, initializer=fail_on_slow_node) as cluster:
        found = cluster.map(abs, range(-100, 0), chunksize=1, timeout=LIMIT)
        assert list(found) == list(range(100, 0, -1))


def test_a_library_that_is_built_anew_or_removed(uneven: tuple[Any, str], tmp_path: Path) -> None:
    """A procedure is of the file that was loaded, on all nodes."""
    client, _ = uneven
    y = np.zeros(90)
    with Cluster(client, processes=1) as cluster:
        path = build(tmp_path, "put", PUT % ("put", "1"))
        first = cluster.load(path, "put", "out f8, count(0)", "put-one")
        build(tmp_path, "put", PUT % ("put", "2"))
        second = cluster.load(path, "put", "out f8, count(0)", "put-two")
        build(tmp_path, "put", PUT % ("put", "3"))
        third = cluster.load(path, "put", "out f8, count(0)")
        path.unlink()
        for procedure, value in ((first, 1), (second, 2), (third, 3)):
            cluster.submit(procedure, sliced(y), grain=1).wait(LIMIT)
            assert set(y) == {value}
        path = build(tmp_path, "late", PUT % ("put", "4"))
        late = leveret.load(path, "put", "out f8, count(0)", "put-late")
        path.unlink()
        with pytest.raises(leveret.InvalidArgument, match=r"'put-late'.*Cluster\.load\(\), which"):
            cluster.submit(late, sliced(y))
