"""leveret.dask: Dask's own tasks in processes that may crash.

    import dask, leveret.dask
    from distributed import Client

    client = Client("scheduler:8786")
    leveret.dask.register(client)
    with dask.annotate(executor="leveret"):
        future = client.submit(f, x)

A task that ends its process is run again, up to three times, and then fails with leveret.Poison,
which names the function and its arguments. Dask's worker and all other tasks go on.
"""

from __future__ import annotations

from typing import Any

from .cluster.plugin import ExecutorPlugin, check_nodes, plugin_name
from .errors import Closed, Status

__all__ = ["register", "unregister"]

_TAKEN = ("default", "offload", "actor")


def register(client: Any, name: str = "leveret", *, default: bool = False, **options: Any) -> None:
    """Gives each worker of a Dask cluster, also those that join later, a leveret.ProcessExecutor.

    client: a distributed.Client. name: what `dask.annotate(executor=name)` calls it. default: it
    also takes the place of Dask's threads for all tasks that name no executor; a leveret.Cluster
    cannot be opened on such workers. options: of leveret.ProcessExecutor; max_workers is the
    number of the worker's threads when it is not given, and worker_memory the share of the
    worker's memory limit. A second call with the same name replaces the executor; tasks that run on
    the one before end there.

    Tasks of a process have no worker: get_worker(), get_client() and secede() do not work in them.
    Raises TypeError for anything but a synchronous Client and for unknown options, ValueError for
    names that are Dask's own, Closed for a client that is closed, Unavailable when a worker has
    other versions of leveret, Python or processor. Thread safety: any thread. Cost: a question to
    all workers; processes are started there at once, in some 100 ms.
    """
    _check_client(client)
    if not isinstance(name, str) or not name or name in _TAKEN:
        raise ValueError(f"name: {name!r} is Dask's own or none; give the executor another")
    plugin = ExecutorPlugin(name, default, options)
    check_nodes(client)
    client.register_plugin(plugin)


def unregister(client: Any, name: str = "leveret") -> None:
    """Takes an executor away from all workers, also from those that join later.

    Tasks that run on it end there; Dask refuses those that ask for it later, and runs those that
    name none as before. Raises ValueError when there is none of this name, TypeError and Closed as
    register().
    """
    _check_client(client)
    try:
        client.unregister_worker_plugin(plugin_name(name))
    except ValueError as error:
        raise ValueError(f"name: no executor {name!r} was registered with this cluster") from error


def _check_client(client: Any) -> None:
    kind = type(client)
    if kind.__module__.partition(".")[0] != "distributed" or not hasattr(client, "nthreads"):
        raise TypeError(f"client must be a distributed.Client, not {kind.__name__}")
    if client.asynchronous:
        raise TypeError("client: give it one that was made without asynchronous=True")
    if client.status not in ("running", "connecting"):
        text = f"client: it is {client.status}; make a new distributed.Client"
        raise Closed(text, Status.CLOSED)
