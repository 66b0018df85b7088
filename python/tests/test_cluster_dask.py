"""leveret.dask: Dask's own tasks in processes that may crash."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_functions import come_and_wait, crash_at_7, names_of_executors
from conftest import LIMIT, needs_processes, wait_until

import leveret
import leveret.dask

pytestmark = needs_processes


@pytest.fixture
def registered(dask_client: Any) -> Iterator[Any]:
    """A client of two workers that have an executor."""
    leveret.dask.register(dask_client, max_attempts=2)
    yield dask_client
    leveret.dask.unregister(dask_client)


def test_annotated_tasks_are_crash_safe(registered: Any) -> None:
    import dask

    dask_client = registered
    with dask.annotate(executor="leveret"):
        found = dask_client.map(crash_at_7, range(9))
        worker = sorted(dask_client.nthreads())[0]
        there = dask_client.submit(crash_at_7, 8, workers=[worker], pure=False)
        delayed = dask.delayed(crash_at_7)(7)
        with pytest.raises(leveret.Poison, match=r"crash_at_7\(7\)"):
            delayed.compute(scheduler=dask_client)
    assert there.result(LIMIT) == 64
    with pytest.raises(leveret.Poison, match=r"^crash_at_7\(7\) ended its worker process"):
        found[7].result(LIMIT)
    del found[7]
    assert [each.result(LIMIT) for each in found] == [0, 1, 4, 9, 16, 25, 36, 64]
    pids = set(dask_client.run(os.getpid).values())
    with dask.annotate(executor="leveret"):
        assert dask_client.submit(os.getpid, pure=False).result(LIMIT) not in pids
    assert set(dask_client.run(os.getpid).values()) == pids


@pytest.mark.parametrize(
    ("given", "options", "error", "text"),
    [
        ("client", {"max_worker": 2}, TypeError, "did you mean 'max_workers'"),
        ("client", {"name": "default"}, ValueError, "Dask's own"),
        ("nothing", {}, TypeError, "must be a distributed.Client, not NoneType"),
    ],
)
def test_register_refuses(
    dask_client: Any, given: str, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        leveret.dask.register(dask_client if given == "client" else None, **options)


def names_there(client: Any) -> set[tuple[str, ...]]:
    return {tuple(sorted(each)) for each in client.run(names_of_executors).values()}


def test_an_executor_that_is_replaced_ends_what_it_runs(registered: Any, tmp_path: Path) -> None:
    import dask

    here, go = str(tmp_path / "here"), str(tmp_path / "go")
    with dask.annotate(executor="leveret"):
        before = registered.submit(come_and_wait, here, go, pure=False)
        wait_until(Path(here).exists)
        leveret.dask.register(registered, max_attempts=1)
        after = registered.map(crash_at_7, range(7), pure=False)
    (tmp_path / "go").touch()
    assert before.result(LIMIT) == go
    assert registered.gather(after) == [x * x for x in range(7)]


def test_unregister(dask_client: Any) -> None:
    import dask

    before = names_there(dask_client)
    pids = set(dask_client.run(os.getpid).values())
    leveret.dask.register(dask_client, "one", default=True)
    leveret.dask.register(dask_client, "two", default=True)
    leveret.dask.unregister(dask_client, "one")  # the later one stays the default
    assert dask_client.submit(os.getpid, pure=False).result(LIMIT) not in pids
    leveret.dask.unregister(dask_client, "two")
    assert dask_client.submit(os.getpid, pure=False).result(LIMIT) in pids
    assert names_there(dask_client) == before
    with dask.annotate(executor="two"), pytest.raises(ValueError, match="Invalid executor 'two'"):
        dask_client.submit(os.getpid, pure=False).result(LIMIT)
    with pytest.raises(ValueError, match="no executor 'two' was registered"):
        leveret.dask.unregister(dask_client, "two")


def test_a_cluster_on_workers_whose_tasks_run_in_processes(dask_client: Any) -> None:
    leveret.dask.register(dask_client, "all", default=True)
    try:
        with (
            leveret.Cluster(dask_client) as cluster,
            pytest.raises(leveret.Unavailable, match="a Cluster needs its threads"),
        ):
            list(cluster.map(abs, [1]))
    finally:
        leveret.dask.unregister(dask_client, "all")
