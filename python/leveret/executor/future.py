"""The future of a call."""

from __future__ import annotations

import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from .pool import Pool


class Future(futures.Future[Any]):
    """A future whose waiter looks after the runtime itself, which is quicker than to be woken."""

    _call: _core.Call | None = None
    _pool: Pool | None = None

    def _look_after(self, timeout: float | None) -> float | None:
        """Waits for a call that is under way; returns what is left of the time."""
        pool, call = self._pool, self._call
        if call is None or pool is None or self._state != "RUNNING":
            return timeout
        if timeout is None:
            pool.port.wait(call, None)
            return None
        end = time.monotonic() + timeout
        if timeout > 0:
            pool.port.wait(call, timeout)
        return max(0.0, end - time.monotonic())

    def result(self, timeout: float | None = None) -> Any:
        return super().result(self._look_after(timeout))

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return super().exception(self._look_after(timeout))
