"""Arrays that lie on the nodes, in chunks along their first axis."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

from ..errors import Closed, Status
from .here import StaysHere

if TYPE_CHECKING:
    from .cluster import Cluster


class ClusterArray(StaysHere):
    """An array whose chunks are on the nodes of a Cluster; made by its scatter() and empty_like().

    It is an argument of Cluster.submit(), wrapped in leveret.sliced(): each slice is one chunk, and
    runs where that is. What a slice writes takes the chunk's place when it is done, on the node.

    shape, dtype: as of a NumPy array. bounds: where chunks begin, and the length. Thread safety:
    any thread; not gather() while a task that writes it is under way. For NumPy it is what
    gather() gives: a copy.
    """

    _instead = "pass array.gather(), or leveret.sliced(array) to Cluster.submit()"

    def __init__(
        self, cluster: Cluster, shape: tuple[int, ...], dtype: Any, bounds: list[int]
    ) -> None:
        self.cluster = cluster
        self.shape = shape
        self.dtype = dtype
        self.bounds = bounds
        self._handles: list[Any] = [None] * (len(bounds) - 1)  # None: zeros, nowhere yet

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks together."""
        return int(math.prod(self.shape) * self.dtype.itemsize)

    def __repr__(self) -> str:
        chunks = len(self._handles)
        return f"<leveret.ClusterArray {self.shape} {self.dtype} in {chunks} chunks>"

    def gather(self) -> Any:
        """The whole as a NumPy array here. Chunks that nobody has written are zeros.

        Raises Unavailable when a node that had a chunk is gone and it cannot be made again, Closed
        when the cluster is closed. Cost: moves all of it.
        """
        import numpy as np

        if self.cluster.closed:
            raise Closed("the Cluster that has this array is closed", Status.CLOSED)
        made = np.zeros(self.shape, self.dtype)
        places = [i for i, handle in enumerate(self._handles) if handle is not None]
        found = self.cluster._driver.engine.gather([self._handles[i] for i in places])
        for i, chunk in zip(places, found):
            made[self.bounds[i] : self.bounds[i + 1]] = chunk
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("an array that lies on nodes cannot be had without a copy")
        made = self.gather()
        return made if dtype is None else made.astype(dtype, copy=False)

    # For the driver.

    def handle_at(self, begin: int) -> Any | None:
        return self._handles[bisect.bisect_left(self.bounds, begin)]

    def take(self, begin: int, end: int, made: tuple[Any, int]) -> None:
        """A slice was written: its output takes the chunk's place."""
        handle, index = made
        place = bisect.bisect_left(self.bounds, begin)
        self._handles[place] = self.cluster._driver.engine.output(handle, index)
