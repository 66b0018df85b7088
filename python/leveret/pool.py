"""What is behind a ProcessExecutor: its queue, its calls under way and their futures.

Calls wait in a queue of this module until a worker is about to be free; one that was handed to the
runtime counts as running. Whoever is in the runtime when a call ends, or the port's own thread,
completes its future and hands over the next call.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import signal
import threading
import time
import weakref
from collections import deque
from concurrent import futures
from typing import Any, cast

from . import _core
from ._calls import SETUP_MARKS
from .errors import Closed, PoolDown, Status, WorkerDied, make_error
from .launch import worker_command
from .pickling import BROKEN, ERROR, IN_FILE, REQUEST, dump_arguments, read_reply
from .runtime import Runtime

# A function whose calls take less is given to workers some calls at a time; else a call would wait
# behind a long one while another worker is idle. (A round trip takes 30 us.)
SHORT_NS = 300_000
# Python needs its cores for itself. (bench python-function: best of 0, 5, 20 and 50 us.)
SPIN_NS = 20_000
# So much work is handed over per worker, in calls that are short, and so many calls at most.
AHEAD_NS, AHEAD_MAX = 5_000_000, 64
REPLY_BYTES_MAX = 16 << 20  # larger results come in a file of their own
REPLIES_BYTES_MAX = 64 << 20  # shared memory kept for results of calls under way
STAGED_BYTES_MAX = 16 << 20  # a quarter of the local store
_SEALS = 2 | 4 | 8  # SHRINK, GROW, WRITE
_F_GET_SEALS = 1034


class BrokenExecutor(PoolDown, futures.BrokenExecutor):
    """The executor runs no more calls: its initializer failed, or its workers die at once."""


class RemoteTraceback(Exception):
    """The cause of an exception that came from a worker process: its traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class PythonRuntime(Runtime):
    """A runtime whose workers run Python functions."""

    _preload: tuple[str, ...] = ()

    def _command(self, machine: str) -> list[str]:
        return worker_command(("cloudpickle", *self._preload), runs_python=True)


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


class Work:
    """A call, from submit() to the end of its future."""

    __slots__ = (
        "args",
        "buffers",
        "function",
        "future",
        "pickled",
        "request",
        "reserved",
        "retries",
    )

    def __init__(
        self, future: Future, function: Any, pickled: bytes, flags: int, args: Any
    ) -> None:
        self.future = future
        self.function = function
        self.pickled = pickled  # of the function: under this, its last results' size is known
        self.args = args
        self.reserved = 0
        self.retries = 0
        data, self.buffers = dump_arguments(args)
        self.request = REQUEST.pack(flags, len(pickled)) + pickled + data

    def size(self) -> int:
        return len(self.request) + sum(each.nbytes for each in self.buffers)

    def name(self) -> str:
        """The call as messages name it."""
        function = getattr(self.function, "__qualname__", None) or repr(self.function)
        if isinstance(self.args, list):
            return f"{function} on {len(self.args)} items"
        args, kwargs = self.args
        try:
            words = [_short(each) for each in args]
            words += [f"{key}={_short(each)}" for key, each in kwargs.items()]
        except Exception:  # a repr() that fails
            words = ["..."]
        return f"{function}({', '.join(words)})"


def _in_shared(data: Any) -> Any:
    """Larger data does not go through a worker's local store, where all of a call must fit."""
    if len(data) < STAGED_BYTES_MAX // 64:
        return data
    view = memoryview(data)
    place = memoryview(_core.SharedBlock(view.nbytes, False))[: view.nbytes]
    place[:] = view
    return place


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Pool:
    """What lives until the last call is done, longer than the executor if that is dropped."""

    def __init__(
        self,
        workers: int,
        setup: bytes,
        runtime: dict[str, Any],
        may_rerun: bool,
        max_attempts: int,
        preload: tuple[str, ...],
    ) -> None:
        self.workers = workers
        self.max_attempts = max_attempts
        self.lock = threading.RLock()
        self.waiting: deque[Work] = deque()
        self.under_way = 0
        self.last: _core.Call | None = None
        self.window_min = max(2, 2 * workers - 1)  # no call waits behind a running one
        self.window = self.window_min
        self.times: dict[bytes, float] = {}  # by function: how long its calls take, lately
        self.sizes: dict[bytes, int] = {}  # by function: bytes of its last results
        self.reserved = 0
        self.is_shut_down = False
        self.broken: BrokenExecutor | None = None
        self.idle = threading.Event()
        self.is_closing = False
        self.closed = threading.Event()
        self.closer = threading.Lock()
        self.pid = os.getpid()
        self.setup = _core.SharedBlock(SETUP_MARKS + 8 + len(setup))
        view = memoryview(self.setup)
        view[SETUP_MARKS : SETUP_MARKS + 8] = len(setup).to_bytes(8, "little")
        view[SETUP_MARKS + 8 :] = setup
        opened: type[PythonRuntime] = type("PythonRuntime", (PythonRuntime,), {"_preload": preload})
        self.runtime = opened(
            "processes",
            workers,
            tickets=max(64, 2 * AHEAD_MAX * workers),
            host_threads=1024,
            full="fail",
            spin_ns=SPIN_NS,
            max_attempts=max_attempts,
            **runtime,
        )
        self.port = _core.CallPort(self.runtime, self.deliver, may_rerun, self.setup)
        _pools.add(self)

    # Handing over.

    def add(self, work: Work) -> None:
        work.future._pool = self
        with self.lock:
            self.check_open()
            self.waiting.append(work)
            self.pump()
            last = self.last
        if self.waiting and last is not None:
            self.port.tend(last)
        if self.port.has_finished:
            self.port.drain()

    def check_open(self) -> None:
        if self.broken is not None:
            raise BrokenExecutor(str(self.broken), Status.POOL_DOWN) from self.broken.__cause__
        if self.is_shut_down:
            raise Closed("cannot schedule new futures after shutdown", Status.CLOSED)
        if _exit.has_begun:
            raise Closed("cannot schedule new futures after interpreter shutdown", Status.CLOSED)
        if self.pid != os.getpid():
            text = "this executor was made before os.fork(); make one in this process"
            raise Closed(text, Status.CLOSED)

    def pump(self) -> None:
        """Hands calls over while workers have room. With the lock."""
        waiting = self.waiting
        while waiting and self.under_way < self.window:
            work = waiting[0]
            if self.under_way >= self.window_min and not self.is_short(work):
                return
            waiting.popleft()
            future = work.future
            if not future.set_running_or_notify_cancel():
                continue
            try:
                started = self.start(work)
            except BaseException as error:
                future.set_exception(self.translate(error))
                continue
            if not started:
                waiting.appendleft(work)  # all tickets in use: the next end hands it over
                return

    def start(self, work: Work) -> bool:
        block = self.reserve(work)
        request, buffers = work.request, work.buffers
        if len(request) > STAGED_BYTES_MAX or (buffers and work.size() > STAGED_BYTES_MAX):
            request, buffers = _in_shared(request), [_in_shared(each) for each in buffers]
        call = self.port.submit(work, request, buffers, block)
        if call is None:
            self.release(work)
            return False
        self.under_way += 1
        self.last = work.future._call = call
        return True

    def reserve(self, work: Work) -> _core.SharedBlock | None:
        """Shared memory for the result, as large as the function's last one."""
        size = self.sizes.get(work.pickled, 0)
        size += size // 8
        if not 0 < size <= REPLY_BYTES_MAX or self.reserved + size > REPLIES_BYTES_MAX:
            return None
        with contextlib.suppress(MemoryError):
            block = _core.SharedBlock(size, False)
            work.reserved = size
            self.reserved += size
            return block
        return None

    def release(self, work: Work) -> None:
        self.reserved -= work.reserved
        work.reserved = 0

    def is_short(self, work: Work) -> bool:
        return self.times.get(work.pickled, SHORT_NS) < SHORT_NS

    def note(self, work: Work, ns: int, size: int) -> None:
        """Learns from a call that ended. With the lock."""
        if len(self.times) > 1024:
            self.times.clear()
            self.sizes.clear()
        key = work.pickled
        before = self.times.get(key)
        # One long call counts at once, short ones after some.
        self.times[key] = ns if before is None or ns > before else before + (ns - before) / 8
        ahead = min(AHEAD_MAX, int(AHEAD_NS // max(1.0, self.times[key]))) * self.workers
        is_short = self.times[key] < SHORT_NS
        self.window = max(ahead, self.window_min) if is_short else self.window_min
        if size > 1024:
            self.sizes[key] = size
        else:
            self.sizes.pop(key, None)

    # Coming back.

    def deliver(self, batch: list[tuple[Work, int, int, str, Any]]) -> None:
        """What the port calls with calls that ended, on whatever thread."""
        ends = []
        with self.lock:
            for work, code, task_code, text, reply in batch:
                self.under_way -= 1
                self.release(work)
                ends.append((work, *self.read(work, code, task_code, text, reply)))
            self.pump()
        for work, value, error in ends:
            self.finish(work, value, error)
        del batch, ends
        self.look_for_end()

    def read(
        self, work: Work, code: int, task_code: int, text: str, reply: Any
    ) -> tuple[Any, BaseException | None]:
        """The value or the error of a call that ended; _AGAIN when it was handed over again."""
        if code != Status.OK:
            return None, self.failure(work, code, task_code, text)
        try:
            kind, value, ns, size = read_reply(memoryview(reply))
            if kind == IN_FILE:
                pid, number, inode = value
                kind, value, ns, size = read_reply(_open_file(pid, number, inode, size))
        except _Gone:
            return self.run_again(work)
        except BaseException as error:  # the result cannot be read here
            return None, error
        self.note(work, ns, size)
        if kind == BROKEN:
            return None, self.break_down(value[1])
        if kind == ERROR:
            thrown, trace = value
            thrown.__cause__ = RemoteTraceback(trace)
            return None, cast(BaseException, thrown)
        return value, None

    def finish(self, work: Work, value: Any, error: BaseException | None) -> None:
        if value is _AGAIN:
            return
        future = work.future
        with contextlib.suppress(futures.InvalidStateError):
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)
        future._call = None

    def run_again(self, work: Work) -> tuple[Any, BaseException | None]:
        """For a large result whose worker died before it was fetched."""
        work.retries += 1
        if work.retries < self.max_attempts:
            with contextlib.suppress(Exception):
                if self.start(work):
                    return _AGAIN, None
        text = f"{work.name()}: the worker process ended before its result was fetched"
        return None, WorkerDied(text, Status.WORKER_DIED)

    def failure(self, work: Work, code: int, task_code: int, text: str) -> BaseException:
        """The exception for a call whose task failed. With the lock."""
        status = Status(code)
        if status == Status.POOL_DOWN:
            return self.break_down("worker processes die as soon as they start")
        if status in (Status.POISON, Status.WORKER_DIED) and any(
            memoryview(self.setup)[:SETUP_MARKS]
        ):
            return self.break_down(f"the initializer ended the process: {_how(task_code)}")
        name = work.name()
        if status == Status.POISON:
            text = f"{name} ended its worker process on each of {self.max_attempts} attempts: "
            text += f"{_how(task_code)}; other calls are not affected"
        elif status == Status.WORKER_DIED:
            text = f"{name} ended its worker process: {_how(task_code)}; retry=False, so it was "
            text += "not run again"
        elif status == Status.OVERRAN:
            text = f"{name} ran longer than the executor's timeout, and its worker was killed"
        else:
            text = f"{name}: {text or status.name.lower()}"
        return make_error(code, text, -1, task_code, 1)

    def break_down(self, why: str) -> BrokenExecutor:
        """Fails everything that waits. With the lock."""
        if self.broken is None:
            text = "the executor is broken: "
            if "\n" in why:
                self.broken = BrokenExecutor(text + "its initializer raised", Status.POOL_DOWN)
                self.broken.__cause__ = RemoteTraceback(why)
            else:
                self.broken = BrokenExecutor(text + why, Status.POOL_DOWN)
            waiting, self.waiting = self.waiting, deque()
            for work in waiting:
                if work.future.set_running_or_notify_cancel():
                    work.future.set_exception(self.again())
        return self.again()

    def again(self) -> BrokenExecutor:
        """Each future gets an exception of its own."""
        made = BrokenExecutor(str(self.broken), Status.POOL_DOWN)
        made.__cause__ = self.broken.__cause__ if self.broken is not None else None
        return made

    def translate(self, error: BaseException) -> BaseException:
        if isinstance(error, PoolDown):
            return self.break_down("worker processes die as soon as they start")
        return error

    # The end.

    def shut_down(self, wait: bool, cancel_futures: bool) -> None:
        if self.pid != os.getpid():
            return
        with self.lock:
            self.is_shut_down = True
            if cancel_futures:
                waiting, self.waiting = self.waiting, deque()
                for work in waiting:
                    work.future.cancel()
                    work.future.set_running_or_notify_cancel()
        self.look_for_end()
        if wait:
            self.idle.wait()
            self.close()

    def look_for_end(self) -> None:
        """After shutdown(): the last call to end closes the runtime, on a thread of its own."""
        if not self.is_shut_down or self.under_way or self.idle.is_set():
            return
        with self.lock:
            self.pump()  # drops what was cancelled
            if self.under_way or self.waiting or self.idle.is_set():
                return
            self.idle.set()
        # The runtime cannot be closed from its own thread, and nobody may be waiting.
        with contextlib.suppress(RuntimeError):  # the interpreter ends: its exit handler closes
            threading.Thread(target=self.close, name="leveret-closer", daemon=True).start()

    def close(self) -> None:
        with self.closer:
            is_first = not self.is_closing
            self.is_closing = True
        # Not under the lock: the port's thread may be in a callback that shuts down, too.
        if is_first:
            self.runtime.close()
            self.port.close()
            _pools.discard(self)
            self.closed.set()
        elif not self.port.is_own_thread:
            self.closed.wait()


class _Gone(Exception):
    """The process that has a large result is no more."""


_AGAIN = object()


def _how(task_code: int) -> str:
    if task_code < 0:
        known = {s.value: f" ({s.name})" for s in signal.Signals}
        return f"signal {-task_code}{known.get(-task_code, '')}"
    return f"it called exit({task_code})" if task_code else "it was gone"


def _open_file(pid: int, number: int, inode: int, size: int) -> memoryview:
    """Maps the memory file in which a worker left a large reply."""
    try:
        file = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        raise _Gone from None
    try:
        about = os.fstat(file)
        if about.st_ino != inode or about.st_size != size:
            raise _Gone
        if fcntl.fcntl(file, _F_GET_SEALS) & _SEALS != _SEALS:
            raise _Gone
        place = mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        return memoryview(place)
    except OSError:
        raise _Gone from None
    finally:
        os.close(file)


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


class _exit:  # noqa: N801
    has_begun = False


def _at_exit() -> None:
    """Waits for what is pending, as concurrent.futures does."""
    _exit.has_begun = True
    for pool in list(_pools):
        with contextlib.suppress(Exception):
            pool.shut_down(True, False)


os.register_at_fork(after_in_child=_pools.clear)
# Before threads are joined, while new ones can be started: as concurrent.futures, which is older.
getattr(threading, "_register_atexit")(_at_exit)  # noqa: B009
