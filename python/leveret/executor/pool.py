"""What is behind a ProcessExecutor: its queue, its calls under way and their futures.

Calls wait in a queue of this module until a worker is about to be free; one that was handed to the
runtime counts as running. Whoever is in the runtime when a call ends, or the port's own thread,
completes its future and hands over the next call. Callbacks of futures run on the port's own
thread: others may be within submit() or result(), under locks of the user's that a callback wants.
Those of a future that shutdown() takes back when that thread has ended run in close(), or there.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from collections import deque
from concurrent import futures
from typing import Any

from .. import _core
from ..errors import Closed, PoolDown, Status
from ..interrupts import LoopInterrupts, is_of_signal
from ..wire import beside, unchanged
from ..wire.files import shows_files
from ..wire.pickling import dumps
from ..wire.setup import HostSetup, Setup, about_this_process
from ..wire.stored import Recent
from . import closing
from .counting import note_end, note_taken_back
from .ending import end_call
from .ends import Ends
from .environment import Zygote
from .failures import (
    BrokenExecutor,
    RemoteTraceback,
    closed_by_fork,
    failure_of,
    why_down,
)
from .future import Future
from .mapping import Mapping, Part
from .mortem import Mortem, how_it_ended
from .pace import AHEAD_MAX, Pace
from .python_runtime import SPIN_NS, PythonRuntime
from .replies import STAGED_BYTES_MAX, ReplyFiles, ReplySpace, in_shared
from .search_path import SearchPath
from .sources import Sources
from .telling import Telling
from .work import Work, place_in


class Pool:
    """What lives until the last call is done, longer than the executor if that is dropped."""

    def __init__(
        self,
        workers: int,
        given: tuple[Any, ...],
        setup: Setup,
        runtime: dict[str, Any],
        may_rerun: bool,
        max_attempts: int,
        zygote: Zygote,
        telling: Telling,
    ) -> None:
        if closing.Exit.has_begun:
            raise Closed("cannot open an executor after interpreter shutdown", Status.CLOSED)
        self.workers = workers
        self.max_attempts = max_attempts
        self.lock = threading.RLock()
        self.waiting: deque[Work] = deque()
        # Those under way. Nothing else counts them: a signal's handler may raise between two steps.
        self.running: set[Work] = set()
        self.is_terminated = False
        self.last: _core.Call | None = None
        self.pace = Pace(workers)
        self.space = ReplySpace()
        self.path = SearchPath()
        self.is_shared = zygote.is_shared
        self.files = ReplyFiles()
        self.kept: Any = given  # shared arrays in it live as long
        self.held = Recent()
        self.is_shut_down = False
        self.broken: BrokenExecutor | None = None
        self.sources = Sources(self)
        self.ends = Ends(self)
        self.is_pumping = False  # with the lock
        self.called_back: deque[Future[Any]] = deque()  # futures whose callbacks are due
        self.idle = threading.Event()
        self.closed = threading.Event()
        self.closer = threading.RLock()  # held while the pool's parts are closed
        self.late = threading.RLock()  # held while callbacks run that the port's thread has left
        self.pid = os.getpid()
        self.forks = closing.Exit.forks
        self.interrupts: LoopInterrupts | None = None  # while the program is in a `with` block
        self.telling = telling
        self.counts = telling.on_progress is not None
        with contextlib.ExitStack() as undo:
            undo.callback(self.files.close)
            self.mortem = Mortem(workers)
            undo.callback(self.mortem.close)
            self.open(setup, runtime, may_rerun, zygote)
            undo.pop_all()
        closing.pools.add(self)

    def open(self, setup: Setup, runtime: dict[str, Any], may_rerun: bool, zygote: Zygote) -> None:
        deaths = self.mortem.deaths
        self.setup = HostSetup(self.dump_setup(setup))
        self.runtime = PythonRuntime(
            zygote,
            deaths,
            "processes",
            self.workers,
            tickets=max(64, 2 * AHEAD_MAX * self.workers),
            host_threads=1024,
            full="fail",
            spin_ns=SPIN_NS,
            max_attempts=self.max_attempts,
            **runtime,
        )
        self.port = _core.CallPort(
            self.runtime, self.deliver, self.call_back, may_rerun, self.setup.place, deaths
        )

    def dump_setup(self, setup: Setup) -> bytes:
        """What workers set themselves up by."""
        if self.kept[0] is not None:
            setup.initializer = dumps(self.kept, 0)[0]
        if self.is_shared:
            setup.path = pickle.dumps(self.path.sent, 5)
        setup.about = about_this_process(self.files.address)
        setup.pages = self.mortem.pages.files if shows_files() else []
        return pickle.dumps(setup, 5)

    # Handing over.

    def add(self, work: Work) -> None:
        """Takes a call whose future nobody has seen yet."""
        work.future._pool = self
        try:
            with self.lock:
                self.check_open()
                if self.counts:
                    self.telling.add(1)
                self.take_or_queue(work)
                last = self.last
            if self.sources.queue or self.port.has_finished:
                self.sources.leave()
            if self.waiting and last is not None:
                self.port.tend(last)
        except BaseException:
            self.leave_rest()
            raise

    def take_or_queue(self, work: Work) -> None:
        """With the lock."""
        future = work.future
        if (
            self.waiting
            or self.sources.queue
            or self.is_pumping
            or not self.pace.has_room(len(self.running), work)
        ):
            self.queue(work)
            self.pump()
        else:  # nothing is in its way
            future._state = "RUNNING"
            if not self.try_start(work):
                future._state = "PENDING"
                self.waiting.append(work)

    def leave_rest(self) -> None:
        """After what a signal's handler has raised: others do what was to be done here.

        Calls that have ended within port.submit() are to be delivered; and with no call under way
        no end would come that has others handed over.
        """
        if self.waiting or self.sources.queue or self.port.has_finished:
            self.port.leave(True)

    def queue(self, work: Work) -> None:
        """Behind those that are as urgent. With the lock."""
        waiting, priority = self.waiting, work.asked.priority
        if not waiting or waiting[-1].asked.priority >= priority:
            return waiting.append(work)
        place = place_in(waiting, priority)
        return self.waiting.insert(place, work)  # another deque, where a handler has emptied it

    def pid_is_own(self) -> bool:
        return self.pid == os.getpid()

    def is_left(self) -> bool:
        """Whether it is the parent's, in a child of os.fork()."""
        return self.forks != closing.Exit.forks

    def check_here(self) -> None:
        if self.is_left():
            raise closed_by_fork()

    def check_open(self) -> None:
        if self.forks != closing.Exit.forks:
            raise closed_by_fork()
        if self.broken is not None:
            raise BrokenExecutor(str(self.broken), Status.POOL_DOWN) from self.broken.__cause__
        if self.is_shut_down:
            raise Closed("cannot schedule new futures after shutdown", Status.CLOSED)
        if closing.Exit.has_begun:
            raise Closed("cannot schedule new futures after interpreter shutdown", Status.CLOSED)

    def pump(self) -> None:
        """Hands calls over while workers have room. With the lock.

        A signal's handler may come in here, and submit or raise: a call leaves the queue when all
        is done for it.
        """
        if self.is_pumping:  # by this thread, further down on its stack, which goes on
            return
        self.is_pumping = True
        try:
            while self.waiting and self.hand_over_first():
                pass
        except RecursionError:  # the caller's stack is deep, the call is not to blame
            self.port.leave(True)
        finally:
            self.is_pumping = False

    def hand_over_first(self) -> bool:
        """The first call that waits; False when none may be handed over now."""
        sources = self.sources
        try:
            work = self.waiting[0]
        except IndexError:  # a handler has taken all back
            return False
        if not self.pace.has_room(len(self.running), work):
            return False
        if sources.is_due and sources.queue and sources.maker is None:
            return False  # for feed(), which whoever calls this calls next
        if work.call is None:
            if not self.drop_or_start(work):
                return False  # all tickets in use: the next end hands it over
            sources.is_due = not isinstance(work.future, Part)
        with contextlib.suppress(ValueError):  # all were withdrawn meanwhile
            self.waiting.remove(work)
        return True

    def drop_or_start(self, work: Work) -> bool:
        """Drops a call that was cancelled; else as try_start(). With the lock."""
        future = work.future
        try:
            if future._begin():
                return self.try_start(work)
            future._pool = None
            return True
        finally:  # without a call in Python: no handler comes in between
            if work.call is None and future._state == "RUNNING":
                future._state = "PENDING"

    def try_start(self, work: Work) -> bool:
        """Hands over a call, or fails it; False when all tickets are in use. With the lock."""
        try:
            return self.start(work)
        except BaseException as error:
            if is_of_signal(error) or isinstance(error, RecursionError):
                raise
            self.ends.finish(self, work, None, self.translate(error))
            if self.sources.queue:  # a chunk becomes calls of one item each
                self.port.leave(True)
            return True

    def take_in(self, mapping: Mapping, work: Work) -> None:
        """Puts the call of a mapping into the queue, and hands it over if there is room."""
        work.future._pool = self
        is_first = self.pace.has_room(len(self.running), work)
        mapping.take(work, self.waiting.appendleft if is_first else self.waiting.append)
        if self.broken is not None:
            self.waiting.remove(work)
            self.fail(work)
        self.pump()

    def start(self, work: Work) -> bool:
        # A Ctrl-C comes between any two steps: what is done first is done for nothing at worst.
        request, buffers, asked = work.request, work.buffers, work.asked
        work.call = None
        work.blind = self.mortem.blind
        try:
            block = self.space.reserve(work)
            if len(request) > STAGED_BYTES_MAX or (buffers and work.size() > STAGED_BYTES_MAX):
                request, buffers = in_shared(request), [in_shared(each) for each in buffers]
            self.running.add(work)
            self.port.submit(
                work, request, buffers, block, asked.timeout, asked.max_attempts, asked.retry
            )
        finally:
            if work.call is None:
                self.running.discard(work)
                self.space.release(work)
        call = work.call
        if call is None:
            return False
        future = work.future
        self.last = future._call = call
        if work.held:
            self.held.note(work.held)
        if future._is_awaited():
            call.set_urgent()
        if future._state != "RUNNING" or self.is_terminated:  # by a handler, within this
            end_call(self, call)
        return True

    # Coming back.

    def deliver(self, batch: list[Any], may_run_code: bool) -> None:
        """What the port calls with calls that ended, on whatever thread."""
        self.ends.deliver(batch, may_run_code)

    def hand_over(self, future: Future[Any]) -> None:
        """Leaves a future's callbacks to the port's own thread."""
        if self.closed.is_set() or self.pid != os.getpid():  # it has ended
            future._run_callbacks()
            return
        self.called_back.append(future)
        if self.closed.is_set():  # meanwhile, and close() may have looked
            with contextlib.suppress(ValueError):  # close() has it
                self.called_back.remove(future)
                future._run_callbacks()
        elif not self.port.is_own_thread:
            self.port.hurry()

    def run_left_callbacks(self) -> None:
        """Those that came when the port's own thread had ended, from futures taken back late.

        All have run when this returns, whichever thread runs them.
        """
        with self.late, contextlib.suppress(IndexError):  # hand_over() may have taken one back
            while not self.is_left():
                self.called_back.popleft()._call_back(self.is_left)

    def call_back(self) -> None:
        """What the port's own thread calls."""
        if self.is_left():
            return
        self.ends.read_left()
        while self.called_back and not self.is_left():
            self.called_back.popleft()._call_back(self.is_left)

    def failure(self, work: Work, status: Status, task_code: int, text: str) -> BaseException:
        """The exception for a call whose task failed."""
        if status == Status.POOL_DOWN:
            return self.break_down(why_down(text))
        # Marks of others, which are at it now, tell nothing of a call whose end was seen.
        in_setup = work.deaths[-1].in_initializer if work.deaths else self.setup.has_marks()
        if status in (Status.POISON, Status.WORKER_DIED) and in_setup:
            return self.break_down(f"the initializer ended the process: {how_it_ended(task_code)}")
        work.was_ended = status == Status.CANCELLED and not self.is_terminated
        if status == Status.CANCELLED and self.is_terminated:
            return BrokenExecutor("the executor's workers were terminated", Status.POOL_DOWN)
        return failure_of(work, self.attempts_of(work), status, task_code, text)

    def attempts_of(self, work: Work) -> int:
        return work.asked.max_attempts or self.max_attempts

    def break_down(self, why: str, trace: str = "") -> BrokenExecutor:
        """Fails everything that waits. trace: where the initializer raised what why says."""
        with self.lock:
            if self.broken is None:
                self.fail_all(f"its initializer raised {why}" if trace else why, trace)
        return self.again()

    def fail_all(self, why: str, trace: str) -> None:
        """With the lock. What runs goes on to its end; then workers end, as after shutdown()."""
        self.broken = BrokenExecutor(f"the executor is broken: {why}", Status.POOL_DOWN)
        self.is_shut_down = True
        if trace:
            self.broken.__cause__ = RemoteTraceback(trace)
        self.sources.withdraw(self.again())
        for work in self.take_back():
            if work.future._begin():
                self.fail(work)
        self.port.leave(True)  # its own thread looks whether this was the last end

    def fail(self, work: Work) -> None:
        """One that has not begun when the executor breaks."""
        error = self.again()
        note_end(self, work.future, None, error)
        work.future.set_exception(error)

    def again(self) -> BrokenExecutor:
        """Each future gets an exception of its own."""
        made = BrokenExecutor(str(self.broken), Status.POOL_DOWN)
        made.__cause__ = self.broken.__cause__ if self.broken is not None else None
        return made

    def has_ended_by(self, error: BaseException | None) -> bool:
        """Whether it says that this executor is broken; a call may have raised that of its own."""
        is_over = self.broken is not None or self.is_terminated
        return is_over and isinstance(error, BrokenExecutor)

    def translate(self, error: BaseException) -> BaseException:
        if isinstance(error, PoolDown):
            return self.break_down(why_down(str(error)))
        return error

    # The end.

    def shut_down(self, wait: bool, cancel_futures: bool) -> None:
        if self.pid != os.getpid():
            return
        if not cancel_futures:
            self.sources.send_unasked()
        with self.lock:
            self.is_shut_down = True
            withdrawn = []
            if cancel_futures:
                self.sources.withdraw(futures.CancelledError())
                withdrawn = self.take_back()
                for work in withdrawn:  # before the last end closes the pool
                    note_taken_back(work.future)
        for work in withdrawn:
            work.future._withdraw()
        closes = wait and not (self.port.is_own_thread or self.telling.is_own_thread)
        try:
            self.look_for_end(closes)
            if wait:
                if self.port.is_own_thread:
                    self.look_after_calls()
                self.idle.wait()
                self.close()
        except BaseException:  # of a signal's handler
            if closes and self.idle.is_set():
                closing.close_apart(self)
            raise

    def look_after_calls(self) -> None:
        """Until the last has ended. In a callback: while it waits, no other thread may do that."""
        while not self.idle.is_set():
            self.ends.read_left()
            with self.lock:
                work = next(iter(self.running), None)
            call = None if work is None else work.call
            if call is None or not self.port.wait(call, 0.1):
                self.idle.wait(0.001)  # another thread is at it

    def take_back(self) -> list[Work]:
        """Empties the queue; gives the calls that have not begun. With the lock.

        Where a signal's handler has come while one was handed over, it is in the queue still.
        """
        waiting, self.waiting = self.waiting, deque()
        left = [each for each in waiting if each.call is None]
        for work in left:
            if work.future._state == "RUNNING":  # this is the handler
                work.future._state = "PENDING"
        return left

    def look_for_end(self, closes: bool = False) -> None:
        """After shutdown(): the last end has a thread close the runtime, if no caller closes it."""
        if not self.is_shut_down or self.running or self.ends.open or self.idle.is_set():
            return
        self.sources.feed()  # drops mappings that have nothing left
        with self.lock:
            self.pump()  # drops what was cancelled
            is_at_work = self.running or self.ends.open or self.waiting or self.sources.queue
            if is_at_work or self.idle.is_set():
                return
            self.idle.set()
        if not closes:
            closing.close_apart(self)

    def close(self) -> None:
        """Once. Where a signal's handler raises in here, another caller, then or later, closes."""
        # A callback shuts down; another closer waits for this thread.
        if self.port.is_own_thread or self.telling.is_own_thread:
            if self.closer.acquire(blocking=False):
                try:
                    self.close_parts()
                finally:
                    self.closer.release()
            return
        # Not under the pool's lock: the port's thread may be in such a callback.
        with self.closer:
            self.close_parts()
        self.run_left_callbacks()

    def close_parts(self) -> None:
        """Each of them may be closed twice."""
        if self.closed.is_set():
            return
        self.runtime.close()
        self.port.close()
        self.setup.close()
        self.telling.close()
        with self.lock:
            self.files.close()
            self.mortem.close()
            self.last = self.kept = None
            self.held.clear()
            unchanged.forget()
            beside.forget()
        closing.pools.discard(self)
        self.closed.set()
