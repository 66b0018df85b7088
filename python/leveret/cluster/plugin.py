"""What Leveret leaves on each of Dask's workers, also on those that join later."""

from __future__ import annotations

import inspect
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from ..executor import ProcessExecutor
from ..executor.options import nearest
from . import node
from .names import NodeSettings, Versions, difference, unavailable, versions


def check_nodes(client: Any) -> None:
    """Raises Unavailable with a sentence about a worker that cannot take part."""
    try:
        found = client.run(node.about)
    except ImportError as error:
        raise unavailable(
            f"a worker of {client.scheduler.address} cannot import leveret ({error}); install the "
            "same version on every node"
        ) from error
    node.check_versions(versions(), {key: Versions(*each) for key, each in found.items()})


class NodePlugin(WorkerPlugin):  # type: ignore[misc]
    """Knows the node from the start of its worker, and closes it in the end."""

    def __init__(self, settings: NodeSettings, wanted: Versions) -> None:
        self.name = f"leveret-{settings.cluster}"
        self.settings: tuple[Any, ...] = tuple(settings)
        self.wanted = tuple(wanted)

    def setup(self, worker: Any) -> None:
        if difference(Versions(*self.wanted), versions(), "") is None:  # else pieces are refused
            node.node_of(NodeSettings(*self.settings), worker)
            worker.metrics["leveret"] = _metrics

    def teardown(self, worker: Any) -> None:
        worker.metrics.pop("leveret", None)
        node.close_nodes(self.settings[0], worker.address)


async def _metrics(worker: Any) -> dict[str, Any]:
    """What Dask's scheduler is told with each heartbeat."""
    return node.counters(worker.address)


class ExecutorPlugin(WorkerPlugin):  # type: ignore[misc]
    """A ProcessExecutor under a name among the worker's executors."""

    def __init__(self, name: str, is_default: bool, options: dict[str, Any]) -> None:
        known = tuple(inspect.signature(ProcessExecutor).parameters)
        for each in options:
            if each not in known:
                raise TypeError(f"register() has no option {each!r}{nearest(each, known)}")
        self.name = f"leveret-executor-{name}"
        self.names = (name, "default") if is_default else (name,)
        self.options = options
        self.wanted = tuple(versions())

    def setup(self, worker: Any) -> None:
        why = difference(Versions(*self.wanted), versions(), worker.address)
        if why is not None:
            raise unavailable(why)
        threads, memory = node.share_of(worker)
        count = self.options.get("max_workers") or threads
        made = ProcessExecutor(
            **{"max_workers": count, "worker_memory": memory // count, **self.options}
        )
        self.before = {each: worker.executors.get(each) for each in self.names}
        worker.executors.update(dict.fromkeys(self.names, made))

    def teardown(self, worker: Any) -> None:
        made = worker.executors.get(self.names[0])
        for each, before in self.before.items():
            if before is None:
                worker.executors.pop(each, None)
            else:
                worker.executors[each] = before
        if isinstance(made, ProcessExecutor):
            made.terminate_workers()
