"""What Leveret leaves on Dask's scheduler, and on each worker, also on those that join later."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin

from ..nearest import nearest
from . import node
from .names import NodeSettings, Versions, difference, unavailable, versions


def check_nodes(client: Any) -> None:
    """Raises Unavailable with a sentence about a worker that cannot take part.

    One that is leaving just now gives no answer, and is not asked again.
    """
    found = client.run(node.about, on_error="return")
    for address, each in sorted(found.items()):
        if isinstance(each, ImportError):
            raise unavailable(
                f"{address} cannot import leveret ({each}); install the same version on every node"
            ) from each
    for address, each in sorted(found.items()):
        if isinstance(each, BaseException):
            continue
        differs = difference(versions(), Versions(*each), address)
        if differs is not None:
            raise unavailable(differs)


class NodePlugin(WorkerPlugin):  # type: ignore[misc]
    """Knows the node from the start of its worker, and closes it in the end."""

    def __init__(self, settings: NodeSettings, wanted: Versions) -> None:
        self.name = f"leveret-{settings.cluster}"
        self.settings: tuple[Any, ...] = tuple(settings)
        self.wanted = tuple(wanted)

    def setup(self, worker: Any) -> None:
        if difference(Versions(*self.wanted), versions(), "") is None:  # else pieces are refused
            node.open_node(NodeSettings(*self.settings), worker)
            worker.metrics["leveret"] = _metrics

    def teardown(self, worker: Any) -> None:
        worker.metrics.pop("leveret", None)
        node.close_nodes(self.settings[0], worker.address)


async def _metrics(worker: Any) -> dict[str, Any]:
    """What Dask's scheduler is told with each heartbeat."""
    return node.counters(worker.address)


class DriverPlugin(SchedulerPlugin):  # type: ignore[misc]
    """On the scheduler: closes a cluster's nodes when its driver has gone without a word."""

    def __init__(self, client: str, nodes: str) -> None:
        """client: the id of the driver's client. nodes: the name of the nodes' plugin."""
        self.name = f"{nodes}-driver"
        self.client = client
        self.nodes = nodes
        self.under_way: set[Any] = set()

    def remove_client(self, scheduler: Any, client: str) -> None:
        if client == self.client:
            leaving = asyncio.ensure_future(self._leave(scheduler))
            self.under_way.add(leaving)
            leaving.add_done_callback(self.under_way.discard)

    async def _leave(self, scheduler: Any) -> None:
        with contextlib.suppress(Exception):  # the driver may have closed them, or all may end
            await scheduler.unregister_worker_plugin(None, name=self.nodes)
        with contextlib.suppress(Exception):
            scheduler.remove_plugin(name=self.name)


def plugin_name(name: str) -> str:
    """What Dask knows the plugin by whose executor is called `name`."""
    return f"leveret-executor-{name}"


class ExecutorPlugin(WorkerPlugin):  # type: ignore[misc]
    """A ProcessExecutor under a name among the worker's executors."""

    def __init__(self, name: str, is_default: bool, options: dict[str, Any]) -> None:
        from ..executor import ProcessExecutor

        known = tuple(inspect.signature(ProcessExecutor).parameters)
        for each in options:
            if each not in known:
                raise TypeError(f"register() has no option {each!r}{nearest(each, known)}")
        self.name = plugin_name(name)
        self.names = (name, "default") if is_default else (name,)
        self.options = options
        self.wanted = tuple(versions())

    def setup(self, worker: Any) -> None:
        why = difference(Versions(*self.wanted), versions(), worker.address)
        if why is not None:
            raise unavailable(why)
        from ..executor import ProcessExecutor

        threads, memory = node.share_of(worker)
        count = self.options.get("max_workers") or threads
        made = ProcessExecutor(
            **{"max_workers": count, "worker_memory": memory // count, **self.options}
        )
        self.made = made
        for each in self.names:
            _given_to(worker, each).append(made)
            worker.executors[each] = made

    def teardown(self, worker: Any) -> None:
        """Takes it away. What runs on it goes on to its end, unless the worker itself ends."""
        made: Any = getattr(self, "made", None)
        if made is None:  # it was refused
            return
        for each in self.names:
            given = _given_to(worker, each)
            given.remove(made)
            if given[-1] is None:
                worker.executors.pop(each, None)
            else:
                worker.executors[each] = given[-1]
        if worker.status.name in ("running", "paused"):
            made.shutdown(wait=False)
        else:
            made.terminate_workers()


def _given_to(worker: Any, name: str) -> list[Any]:
    """What executors have had this name on a worker, one above the other; first Dask's, or None."""
    given: dict[str, list[Any]] = worker.__dict__.setdefault("leveret_executors", {})
    return given.setdefault(name, [worker.executors.get(name)])
