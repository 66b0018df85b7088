"""Executors that live from one Parallel call to the next, as loky's reusable executor does.

One is used again by calls with the same options, environment and working directory: all that its
workers got from this process when they were started. Others are closed when a call opens a new one,
and all when nobody has used them for a while.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable

from ..errors import LeveretError, PoolDown
from ..procedures import builtin
from ..runtime import Runtime
from .process_executor import ProcessExecutor


def is_down(runtime: Runtime) -> bool:
    """Whether its workers have died so often that there are none any more."""
    try:
        runtime.submit(builtin("null"))
    except PoolDown:
        return True
    except LeveretError:  # all tickets are in use, say
        return False
    return False


class Kept:
    """An executor, and how many Parallel objects use it."""

    def __init__(self, executor: ProcessExecutor) -> None:
        self.executor = executor
        self.idle_seconds = 0.0  # that it stays, as the latest user wants
        self.users = 0
        self.idle_since = 0.0

    def is_usable(self) -> bool:
        """Whether it runs calls: what kills processes may have killed those that were idle."""
        pool = self.executor._pool
        return pool.broken is None and not pool.is_shut_down and not is_down(pool.runtime)

    def ends(self) -> float:
        """When it is closed if nobody uses it before."""
        return self.idle_since + self.idle_seconds

    def close(self) -> None:
        """Lets it end when its last call does; what was not begun is cancelled."""
        self.executor.shutdown(wait=False, cancel_futures=True)


class Pools:
    """The executors of this process. Thread safety: any thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a fork, which has none."""
        self.lock = threading.Lock()
        self.all: dict[Any, Kept] = {}
        self.timer: threading.Timer | None = None
        self.looks_at = 0.0  # when the timer ends

    def lease(self, key: Any, idle_seconds: float, make: Callable[[], ProcessExecutor]) -> Kept:
        """The executor for these options, opened if there is none; release() it."""
        with self.lock:
            kept = self.all.get(key)
            if kept is not None and not kept.is_usable():
                del self.all[key]
                kept = None
            if kept is None:
                self.close_if(lambda each: each.users == 0)
                kept = self.all[key] = Kept(make())
            kept.idle_seconds = idle_seconds
            kept.users += 1
            return kept

    def release(self, kept: Kept) -> None:
        """For one who does not use it any more."""
        with self.lock:
            kept.users -= 1
            kept.idle_since = time.monotonic()
            if kept.users == 0:
                self.watch(kept.ends())

    def retire(self, kept: Kept) -> None:
        """Ends an executor in which something runs that nobody wants: no call gets it again."""
        with self.lock:
            self.close_if(lambda each: each is kept)

    def close_if(self, is_meant: Callable[[Kept], bool]) -> None:
        """With the lock."""
        for key, each in list(self.all.items()):
            if is_meant(each):
                del self.all[key]
                each.close()

    def watch(self, end: float) -> None:
        """Sees to it that on_time() is called then, if it is not before. With the lock."""
        if self.timer is not None:
            if self.looks_at <= end:
                return
            self.timer.cancel()
        self.looks_at = end
        self.timer = threading.Timer(max(0.0, end - time.monotonic()), self.on_time)
        self.timer.daemon = True
        self.timer.name = "leveret-idle"
        self.timer.start()

    def on_time(self) -> None:
        """Closes what was idle for long enough, and looks again when the next one will be."""
        with self.lock:
            now = time.monotonic()
            self.close_if(lambda each: each.users == 0 and each.ends() <= now)
            self.timer = None
            ends = [each.ends() for each in self.all.values() if each.users == 0]
            if ends:  # those in use are watched from release() on
                self.watch(min(ends))


pools = Pools()
os.register_at_fork(after_in_child=pools.forget)
