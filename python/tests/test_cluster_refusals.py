"""leveret.Cluster: what it refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from conftest import LIMIT, needs_processes

import leveret
from leveret import Cluster, sliced
from leveret.cluster import names

pytestmark = needs_processes


@pytest.fixture(scope="module")
def opened() -> Iterator[Cluster]:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        yield cluster


def ones(count: int = 4) -> Any:
    return np.ones(count)


def masked() -> Any:
    return np.ma.masked_less(np.arange(8.0), 4)


def repeated() -> Any:
    return np.lib.stride_tricks.as_strided(np.ones(1), (8,), (0,))


def read_only() -> Any:
    made = ones()
    made.flags.writeable = False
    return made


SHARED = np.ones(8)

CALLS: list[tuple[str, Callable[[Cluster], tuple[Any, ...]], type[Exception], str]] = [
    ("copy", lambda c: (ones(), ones()), leveret.InvalidArgument, "argument 1: an output"),
    ("read", lambda c: (1.0, ones()), leveret.InvalidArgument, "no argument is sliced"),
    ("copy", lambda c: (sliced(ones()), ones()), leveret.InvalidArgument, "must be sliced"),
    (
        "copy",
        lambda c: (sliced(ones(4)), sliced(ones(5))),
        leveret.InvalidArgument,
        "argument 1: 5 slices, but argument 0 has 4",
    ),
    ("copy", lambda c: (sliced(ones()),), TypeError, "takes 2 arguments from its caller"),
    (
        "copy",
        lambda c: (sliced(ones()), sliced(np.ones(4, "f4"))),
        TypeError,
        r"argument 1 \(out f8\): the array holds f4.*astype\('f8'\)",
    ),
    (
        "copy",
        lambda c: (sliced(ones().astype(">f8")), sliced(ones())),
        TypeError,
        r"argument 0 \(in f8\): the array holds f8 in the byte order of other.*astype\('f8'\)",
    ),
    ("copy", lambda c: (sliced([1]), sliced(ones())), TypeError, "expected an array, got list"),
    ("copy", lambda c: (sliced(ones()), sliced(read_only())), BufferError, "argument 1.*read-only"),
    ("copy", lambda c: (sliced(masked()), sliced(ones())), TypeError, "argument 0.*a.filled"),
    ("copy", lambda c: (sliced(ones()), sliced(repeated())), ValueError, "the same memory.*a.copy"),
    ("copy", lambda c: (sliced(np.ones(())), sliced(ones())), ValueError, "no axis"),
    (
        "copy",
        lambda c: (sliced(SHARED[:4]), sliced(SHARED[2:6])),
        leveret.InvalidArgument,
        "argument 1: an output that shares memory with argument 0",
    ),
    (
        "whole",
        lambda c: (SHARED[6:], sliced(SHARED)),
        leveret.InvalidArgument,
        "argument 1: an output that shares memory with argument 0",
    ),
    (
        "copy",
        lambda c: (sliced(c.scatter(ones(8), 2)), sliced(c.scatter(ones(8), 4))),
        leveret.InvalidArgument,
        "argument 1: its chunks begin elsewhere",
    ),
    ("copy", lambda c: (c.scatter(ones(8)), sliced(ones(8))), leveret.InvalidArgument, "in chunks"),
    ("read", lambda c: ("x", sliced(ones())), TypeError, r"argument 0 \(f8\): expected a number"),
    (
        "range",
        lambda c: ((0.0, 4.0), sliced(np.zeros(4, "u8"))),
        TypeError,
        r"argument 0 \(range\): expected an integer, got float; convert it with int\(\)",
    ),
    (
        "range",
        lambda c: ((0, "4"), sliced(np.zeros(4, "u8"))),
        TypeError,
        r"argument 0 \(range\): expected an integer, got str; convert it with int\(\)",
    ),
    ("far", lambda c: (sliced(ones()), sliced(ones())), leveret.InvalidArgument, "far memory"),
    ("result", lambda c: (sliced(ones()),), leveret.InvalidArgument, "hands back a value"),
]


@pytest.mark.parametrize(("procedure", "args", "error", "text"), CALLS)
def test_submit_refuses(
    opened: Cluster,
    library: Path,
    procedure: str,
    args: Callable[[Cluster], tuple[Any, ...]],
    error: type[Exception],
    text: str,
) -> None:
    made = {
        "copy": ("root_or_crash", "in f8, out f8, count(0) -> int"),
        "read": ("axpy_f4", "f8, in f8, count(1)"),
        "far": ("narrow", "in f8, far in f8, task"),
        "whole": ("add_first", "in f8[any], inout f8, count(1)"),
        "result": ("increment", "in f8, result i8"),
        "range": ("square_range", "range, out u8"),
    }[procedure]
    # A function has the name by which it was loaded first, and other tests look at that of "copy".
    name = None if procedure == "copy" else f"refused-{procedure}"
    with pytest.raises(error, match=text):
        opened.submit(opened.load(library, *made, name=name), *args(opened))
    assert opened.progress().under_way == 0


def test_scatter_refuses_a_mask(opened: Cluster) -> None:
    with pytest.raises(TypeError, match=r"array: the array has a mask.*a.filled"):
        opened.scatter(masked())


WRONG: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (
        lambda c: c.empty_like(ones()),
        TypeError,
        r"array must be one of .*empty_like\(\), not ndarr",
    ),
    (
        lambda c: c.empty_like(c.scatter(ones()), object),
        TypeError,
        "dtype: expected one of numbers",
    ),
    (lambda c: c.empty_like(c.scatter(ones()), dtyp="f4"), TypeError, "did you mean 'dtype'"),
    (lambda c: c.gather(ones()), TypeError, "array must be one of Cluster.scatter"),
    (lambda c: c.scatter("abc"), TypeError, "array: expected one of numbers"),
    (lambda c: c.scatter(ones(), chunk=2), TypeError, "did you mean 'chunks'"),
    (lambda c: c.scatter(ones(), 0), ValueError, "chunks must be >= 1"),
    (lambda c: c.map(abs), TypeError, "needs at least one iterable"),
    (lambda c: c.map(abs, [1], chunk_size=2), TypeError, "did you mean 'chunksize'"),
    (lambda c: c.map(abs, [1], chunksize=1.5), TypeError, "chunksize must be an int"),
    (lambda c: c.map(abs, [1], on_poison="retrun"), ValueError, "did you mean 'return'"),
    (lambda c: c.map(abs, [1], timeout="1"), TypeError, "timeout must be a number of seconds"),
    (lambda c: c.map(abs, [1], timeout=float("nan")), ValueError, "timeout must be"),
    (lambda c: c.map(3, [1]), TypeError, "fn must be callable, not int"),
    (lambda c: list(c.as_completed(3)), TypeError, "tickets must be a ticket .*, not int"),
    (lambda c: list(c.as_completed([3])), TypeError, "tickets must be tickets of a Cluster, not"),
    (lambda c: c.wait_for_completion("x"), TypeError, "timeout must be None or a number of sec"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_other_methods_refuse(
    opened: Cluster, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(opened)
    assert list(opened.map(abs, [-1])) == [1]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"piority": 1}, TypeError, r"submit\(\) has no option 'piority'; did you mean 'priority'"),
        ({"after": 1}, TypeError, "after must be tickets of a Cluster, not int"),
        ({"after": [1]}, TypeError, "after must be tickets of a Cluster, not int"),
        ({"grain": -1}, ValueError, "grain must be >= 0"),
        ({"priority": 1.5}, TypeError, "priority must be an integer"),
        ({"task_timeout": -1}, ValueError, "task_timeout must be"),
    ],
)
def test_options_of_submit(
    opened: Cluster, given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        opened.submit(leveret.builtin("scale"), 2.0, sliced(ones()), **given)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"process": 1}, TypeError, "no option 'process'; did you mean 'processes'"),
        ({"max_workers": 2}, TypeError, "no option 'max_workers'.*processes"),
        (
            {"wait_for_nodes": float("nan")},
            ValueError,
            "wait_for_nodes must be a number of seconds",
        ),
        ({"worker_memory": -1}, ValueError, "worker_memory must be >= 0"),
        ({"processes": -1}, ValueError, "processes must be >= 0"),
        ({"processes": 1.5}, TypeError, "processes must be an integer"),
        ({"slice_seconds": 0}, ValueError, "slice_seconds must be a number of seconds > 0"),
        ({"pool": 3}, TypeError, "pool must be a name"),
    ],
)
def test_options_of_a_cluster(given: dict[str, Any], error: type[Exception], text: str) -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(error, match=text):
        Cluster(threads, **given)


def test_procedures_without_a_library(opened: Cluster) -> None:
    import ctypes

    function = ctypes.CFUNCTYPE(None)(lambda: None)
    nameless = leveret.procedure(function, "inout f8")
    with pytest.raises(leveret.InvalidArgument, match=r"known by its address.*Cluster\.load"):
        opened.submit(nameless, sliced(ones()))
    with pytest.raises(TypeError, match="procedure must be a Procedure"):
        opened.submit("copy", sliced(ones()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Python functions are run by Dask's Client\.submit"):
        opened.submit(len, sliced(ones()))  # type: ignore[arg-type]


def test_no_engine() -> None:
    with pytest.raises(TypeError, match=r"distributed\.Client or a concurrent\.futures\.Executor"):
        Cluster(None)


def test_an_executor_whose_workers_are_no_nodes() -> None:
    """It is told as the Cluster is made, where every call and task was refused."""
    with leveret.ProcessExecutor(1) as executor:
        for client in (executor, executor.options(timeout=60)):
            with pytest.raises(TypeError, match="client must not be a ProcessExecutor"):
                Cluster(client)


def nested(x: int) -> list[int]:
    """A call that opens a Cluster of its own."""
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        return list(cluster.map(abs, [x]))


def test_a_cluster_in_a_worker_process(opened: Cluster) -> None:
    with pytest.raises(leveret.Unavailable, match="is a worker process of Leveret"):
        list(opened.map(nested, [-1]))


def test_the_end_of_the_block_does_not_tell_what_was_cancelled(library: Path) -> None:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        slow = cluster.load(library, "add_one_slowly", "inout f8, count(0)")
        ticket = cluster.submit(slow, sliced(np.zeros(100_000)))
        assert ticket.cancel()
    assert ticket.status_code == leveret.Status.CANCELLED


def test_closed_things(library: Path) -> None:
    threads = ThreadPoolExecutor(1)
    with Cluster(threads) as cluster:
        data = cluster.scatter(ones())
    for refused in (
        lambda: cluster.submit(leveret.builtin("scale"), 2.0, sliced(ones())),
        lambda: cluster.map(abs, [1]),
        lambda: cluster.scatter(ones()),
        data.gather,
    ):
        with pytest.raises(leveret.Closed, match="closed"):
            refused()
    assert "closed" in repr(cluster)
    cluster.close()
    threads.shutdown()
    with pytest.raises(leveret.Closed, match="the executor is shut down"):
        Cluster(threads)


def test_an_executor_that_is_shut_down_meanwhile() -> None:
    threads = ThreadPoolExecutor(1)
    with Cluster(threads) as cluster:
        threads.shutdown()
        ticket = cluster.submit(leveret.builtin("scale"), 2.0, sliced(ones()))
        with pytest.raises(leveret.Closed, match="takes no more work"):
            ticket.wait(LIMIT)


def test_a_closed_client(dask_client: Any) -> None:
    import distributed

    client = distributed.Client(dask_client.scheduler.address)
    cluster = Cluster(client)
    client.close()
    ticket = cluster.submit(leveret.builtin("scale"), 2.0, sliced(ones()))
    with pytest.raises(leveret.Closed, match=r"it is closed; make a new distributed\.Client"):
        ticket.wait(LIMIT)
    cluster.close()
    with pytest.raises(leveret.Closed, match=r"make a new distributed\.Client"):
        Cluster(client)


def test_versions_that_differ() -> None:
    here = names.versions()
    there = here._replace(leveret="0.0.1")
    said = names.difference(here, there, "tcp://a")
    assert said is not None and "tcp://a has leveret 0.0.1, and the driver has" in said
    assert names.difference(here, here, "tcp://a") is None


def test_a_node_of_another_version_is_left_out(
    dask_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are, here: the driver says that it is of another version than they."""
    from leveret.cluster import driver, plugin

    other = names.versions()._replace(leveret="9.9.9")
    monkeypatch.setattr(driver, "versions", lambda: other)
    with Cluster(dask_client) as cluster:
        ticket = cluster.submit(leveret.builtin("scale"), 2.0, sliced(ones()))
        with pytest.raises(leveret.Unavailable, match=r"has leveret .* driver has 9\.9\.9"):
            ticket.wait(LIMIT)
    monkeypatch.setattr(plugin, "versions", lambda: other)
    with pytest.raises(leveret.Unavailable, match="install the same on every node"):
        Cluster(dask_client)
