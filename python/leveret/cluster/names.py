"""What travels between the driver and its nodes: names of procedures and libraries, and reports.

Everything here is pickled by the engine, and must mean the same on all computers.
"""

from __future__ import annotations

import dataclasses
import functools
import platform
import sys
from typing import Any, NamedTuple

from .. import _core
from ..errors import Status, Unavailable

SMALL_BYTES = 16 << 10  # arrays up to this size travel within a note or a pickled report


class Versions(NamedTuple):
    """What driver and nodes must have alike, so that code and data mean the same."""

    leveret: str
    python: str
    processor: str


@functools.lru_cache
def versions() -> Versions:
    """Those of this process."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Versions(_core.version(), python, platform.machine())


def difference(here: Versions, there: Versions, node: str) -> str | None:
    """A sentence about a node that cannot take part; None: it can."""
    for name, mine, other in zip(("leveret", "Python", "processor"), here, there):
        if mine != other:
            return (
                f"{node} has {name} {other}, and the driver has {mine}; install the same on every "
                "node"
            )
    return None


class NodeSettings(NamedTuple):
    """How a node opens its runtime. cluster: whose it is; processes: 0 for the node's share."""

    cluster: str
    processes: int = 0
    worker_memory: int | None = None
    pool: str | None = None
    options: tuple[tuple[str, Any], ...] = ()


class ProcedureName(NamedTuple):
    """A procedure, wherever it is: a function of the library with this content, or a builtin.

    library: the hash of the content; empty: it comes with the package.
    """

    name: str
    signature: str
    library: str = ""
    symbol: str = ""


@dataclasses.dataclass(frozen=True)
class Head:
    """What all pieces of a job have alike. A node keeps it, and is sent it when it lacks it.

    procedure, values: of a task. function: of calls, pickled.
    """

    key: str
    settings: NodeSettings
    procedure: ProcedureName | None = None
    arguments: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    function: bytes = b""


class Note(NamedTuple):
    """What a piece brings along, pickled: engines look into objects, and not into bytes.

    It is plain tuples, so that a node of another version can read it. small: its arrays, with None
    for those that are arguments of their own, and (shape, type) for those that are no input.
    """

    versions: tuple[str, ...]
    settings: tuple[Any, ...]
    job: str
    piece: tuple[int, int]
    parcels: dict[str, bytes]
    small: tuple[Any, ...]
    stays: bool


class Failure(NamedTuple):
    """Elements (of the whole call) that are not done, and why."""

    begin: int
    end: int
    error: BaseException


class Report(NamedTuple):
    """What a node tells of a piece.

    kind: "done"; "missing", when the node lacks what `lacks` names; "refused", when the node cannot
    take part, and `why` says the reason; "unfit", when it cannot in this job; "down", when its
    worker processes end as they start; "apart", when it cannot read the items together; "again",
    when the piece met a node that closes.
    seconds: what it took. outputs: arrays, in the order of the arguments, or the outcomes of calls.
    """

    kind: str
    node: str
    seconds: float = 0.0
    outputs: tuple[Any, ...] = ()
    failures: tuple[Failure, ...] = ()
    lacks: tuple[str, ...] = ()
    why: str = ""


def no_nodes(engine: str, seconds: float) -> Unavailable:
    return unavailable(
        f"no worker has come to {engine} in {seconds:g} s; start one, for example: dask worker "
        f"{engine}"
    )


def unavailable(text: str) -> Unavailable:
    return Unavailable(text, Status.UNAVAILABLE)
