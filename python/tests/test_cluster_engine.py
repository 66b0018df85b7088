"""leveret.Cluster: how what is done on Dask's workers comes back to the driver."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import needs_processes

import leveret

pytestmark = needs_processes


class Pending:
    """A future of Dask's, as far as the engine looks at it."""

    def __init__(self) -> None:
        self.status = "pending"
        self.event = asyncio.Event()
        self._state = SimpleNamespace(wait=self.event.wait, exception=None)

    def finish(self, status: str = "finished") -> None:
        self.status = status
        self.event.set()


async def turns() -> None:
    """Lets the loop do all there is to do."""
    loop = asyncio.get_running_loop()
    for _ in range(20):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def test_results_are_gathered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one at once, then what is done after a while, or all when nothing else runs."""
    pytest.importorskip("distributed")
    from leveret.cluster import dask_engine

    monkeypatch.setattr(dask_engine, "PAUSE_SHARE", 1e12)
    monkeypatch.setattr(dask_engine, "PAUSE_MAX", 1e6)

    async def run() -> None:
        gathered: list[int] = []
        told: list[Any] = []

        async def gather(done: list[Any], asynchronous: bool) -> list[str]:
            gathered.append(len(done))
            return ["report"] * len(done)

        engine = dask_engine.DaskEngine(SimpleNamespace(gather=gather, status="running"))
        engine.tell = told.extend
        futures = {f"piece-{i}": Pending() for i in range(10)}
        engine.under_way.update({k: dask_engine.UnderWay(f) for k, f in futures.items()})
        await engine._follow_all(list(futures.items()))
        first, *others, last = futures.values()
        first.finish()
        await turns()
        assert gathered == [1] and [each.key for each in told] == ["piece-0"]
        for each in others[:-1]:
            each.finish()
        others[-1].finish("error")
        await turns()
        assert gathered == [1]
        last.finish()
        await turns()
        assert gathered == [1, 8] and {each.key for each in told} == set(futures)
        assert engine.under_way == {} and engine.collector is None

    asyncio.run(run())


def test_workers_that_leave_as_a_cluster_opens() -> None:
    """One that gives no answer is nobody's fault; one that cannot import leveret is told."""
    pytest.importorskip("distributed")
    from leveret.cluster.names import versions
    from leveret.cluster.plugin import check_nodes

    answers: dict[str, Any] = {"tcp://a": OSError("closed"), "tcp://b": tuple(versions())}

    def run(function: Any, on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return answers

    check_nodes(SimpleNamespace(run=run))
    answers["tcp://c"] = ModuleNotFoundError("No module named 'leveret'")
    with pytest.raises(leveret.Unavailable, match=r"tcp://c cannot import leveret .*install"):
        check_nodes(SimpleNamespace(run=run))
    answers["tcp://c"] = tuple(versions()._replace(leveret="9.9.9"))
    with pytest.raises(leveret.Unavailable, match=r"tcp://c has leveret 9\.9\.9"):
        check_nodes(SimpleNamespace(run=run))
