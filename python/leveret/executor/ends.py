"""What becomes of calls that ended: some run again, of the others results are read and futures end.

1. The port gives a batch of ends, on whatever thread: deliver(). With the pool's lock it notes who
   has died, runs again what may, and hands over calls that waited.
2. Without it each reply is read, which runs code of the user's, logs are told, and the future ends.
3. Within submit() its caller holds whatever locks it likes: there, only what runs nobody's code is
   read (wire/plain.py), and no mapping's call is made. The rest is left, to the port's own thread
   or to the call's waiter.

A signal's handler may raise between any two steps, and RecursionError comes where the caller's
stack is deep. The port then gives the same batch again, on its own thread, where neither is; so
each step may be done twice, and an end is over only when its future is.
"""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from ..errors import OutOfMemory, Status, WorkerDied
from ..interrupts import is_of_signal
from ..wire.errors import with_cause
from ..wire.plain import runs_nothing
from ..wire.replies import BROKEN, IN_FILE, VALUE, Overwritten, read_reply
from . import notes
from .counting import note_end
from .failures import overwritten, unreadable
from .mapping import Part
from .replies import Gone, NoRoom

if TYPE_CHECKING:
    from .mortem import Death
    from .pool import Pool
    from .work import Work

# A call that was hit by what others left behind is run again without counting an attempt, but not
# for ever: one that is always hit is no bystander.
HITS_MAX = 8
# More than so many are not left until nobody submits for a while.
LEFT_MAX = 64

_Outcome = tuple[Any, "BaseException | None", "memoryview | None"]


class _Again(Exception):
    """The call was handed over again."""


class End:
    """How a call ended, until its future has."""

    __slots__ = ("code", "is_over", "is_taken", "reply", "task_code", "text", "work")

    def __init__(self, work: Work, code: int, task_code: int, text: str, reply: Any) -> None:
        self.work = work
        self.code = code
        self.task_code = task_code
        self.text = text
        self.reply = reply
        self.is_taken = False  # a thread reads it; with the pool's lock
        self.is_over = False

    def runs_nothing(self) -> bool:
        """Whether reading it runs no code of the user's."""
        reply = self.reply
        if self.code != Status.OK or type(reply) is not tuple or reply[0] != VALUE:
            return False
        return runs_nothing(reply[1])


class Ends:
    """Of the calls of one pool. Thread safety: any thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = weakref.ref(pool)  # which frees itself when it is closed
        self.open: set[Work] = set()  # ended, but not their futures; with the pool's lock
        self.left: deque[End] = deque()  # for the port's own thread
        # Deaths that are not told yet: with the call, and the number of the call's attempt.
        self.dead: deque[tuple[Death, Work | None, int]] = deque()
        self.is_telling = False  # a thread is in tell_deaths(); set with the pool's lock

    @property
    def pool(self) -> Pool:
        pool = self._pool()
        assert pool is not None
        return pool

    def deliver(
        self, batch: list[tuple[Work, int, int, str, Any, Any]], may_run_code: bool
    ) -> None:
        """What the port calls with calls that ended. may_run_code: also the user's."""
        pool = self.pool
        ends = []
        with pool.lock:
            if pool.mortem.deaths.has_any:
                self.bury()
            for work, code, task_code, text, reply, call in batch:
                end = self.note(pool, work, code, task_code, text, reply, call)
                if end is not None:
                    ends.append(end)
            if pool.waiting:
                pool.pump()
        if may_run_code:
            self.tell_deaths()
        is_left = is_urgent = False
        for end in ends:
            if may_run_code or end.runs_nothing():
                self.read(pool, end)
            if not end.is_over and not end.is_taken:
                is_left = True
                is_urgent = self.leave(end) or is_urgent
        if is_left or self.dead:
            pool.port.leave(is_urgent)
        del batch, ends
        if may_run_code:
            pool.sources.feed()
        elif pool.sources.queue or pool.port.has_finished:
            pool.sources.leave()
        if pool.files.here:
            self.forget_files()
        if not pool.is_shut_down:
            return
        if may_run_code:
            pool.look_for_end()
        else:
            pool.port.leave(True)  # a mapping may have calls to make

    def leave(self, end: End) -> bool:
        """Leaves an end to others; whether that is urgent."""
        future = end.work.future
        self.left.append(end)
        future._left = end
        return future._is_awaited() or bool(future._waiters) or len(self.left) > LEFT_MAX

    def note(
        self, pool: Pool, work: Work, code: int, task_code: int, text: str, reply: Any, call: Any
    ) -> End | None:
        """Takes in the end of a call; None if it runs again. With the lock."""
        if work.was_told:  # seen before, and its future has ended
            self.open.discard(work)  # Python 3.9's handlers may raise behind any step of read()
            return None
        if work.call is not call and work in pool.running:  # it runs again
            return None
        end = work.end
        if end is None:
            end = work.end = End(work, code, task_code, text, reply)
        self.open.add(work)
        pool.running.discard(work)
        pool.space.release(work)
        if type(reply) is tuple:  # the port has read it
            pool.pace.note(work, reply[2] / work.count)
            pool.space.note(work, reply[3])
        if code != Status.OK:
            pool.files.receive()
            if self.was_hit(work, Status(code)) and self.start_again(work):
                return None
        return end

    def bury(self) -> None:
        """Reads what dead workers have left, with the calls that they were in. With the lock."""
        pool = self.pool
        for death in pool.mortem.take():
            found = (work for work in pool.running if id(work) == death.call)
            victim = next(found, None)
            if victim is not None:
                victim.deaths = (*victim.deaths, death)
            if victim is not None or death.how != 0:  # else it was told to end
                attempt = 0 if victim is None else len(victim.deaths)
                self.dead.append((death, victim, attempt))

    def tell_deaths(self) -> None:
        """Tells of them in order: one thread does it, for those that come meanwhile, too."""
        pool = self.pool
        while self.dead:
            is_mine = False  # first, as a signal's handler may raise anywhere
            try:
                with pool.lock:
                    if self.is_telling:
                        return
                    is_mine = self.is_telling = True
                while self.dead:
                    self.tell_death(*self.dead.popleft())
            finally:
                if is_mine:
                    self.is_telling = False

    def tell_death(self, death: Death, victim: Work | None, attempt: int) -> None:
        pool = self.pool
        name = None if victim is None else victim.name()
        if name is not None:
            with pool.lock:
                pool.mortem.show_culprit(death, name)
        notes.tell(death.notes, death.worker)
        pool.telling.tell_death(death, name, attempt)

    def forget_files(self) -> None:
        pool = self.pool
        if pool.files.here:
            with pool.lock:
                if not pool.running and not self.open:
                    pool.files.forget()

    def read_left(self) -> None:
        """What was left for the port's own thread, on it."""
        self.tell_deaths()
        pool = self.pool
        while self.left:
            self.read(pool, self.left.popleft())
        self.forget_files()
        if pool.waiting or pool.sources.queue:
            with pool.lock:
                pool.pump()
            pool.sources.feed()
        if pool.is_shut_down:
            pool.look_for_end()

    def read(self, pool: Pool, end: End) -> None:
        """Reads a reply, unless another thread is at it, and ends the future."""
        work = end.work
        try:
            with pool.lock:
                if end.is_taken:
                    return
                end.is_taken = True
            if not end.is_over:
                try:
                    value, error, noted = self.outcome(end)
                except _Again:
                    return
                if noted is not None:
                    notes.tell_of_reply(noted)
                self.finish(pool, work, value, error)
            end.is_over = work.was_told = True
            end.reply = work.end = None  # nothing keeps what the caller has got
            self.open.discard(work)
        except RecursionError:
            end.is_taken = False
            if pool.port.is_own_thread:
                raise
            self.left.append(end)  # there, the stack is not deep
            pool.port.hurry()
        except BaseException:
            end.is_taken = False
            if not pool.port.is_own_thread:  # which may have passed this end over meanwhile
                self.left.append(end)
                pool.port.leave(True)
            raise

    def read_for_waiter(self, end: End) -> None:
        """Reads a reply that was left for the port's own thread, on that of the call's waiter.

        The own one passes an end over that is being read, and comes back to none: so it is told
        where that was the last end of an executor, or has made calls of what a chunk left over.
        """
        pool = self.pool
        try:
            self.read(pool, end)
        finally:
            if pool.is_shut_down or pool.sources.queue:
                pool.port.leave(True)

    def outcome(self, end: End) -> _Outcome:
        """The value or the error of a call that ended, and its notes, whatever is raised there."""
        work = end.work
        try:
            if end.code == Status.OK:
                return self.value(work, end.reply)
            return None, self.pool.failure(work, Status(end.code), end.task_code, end.text), None
        except _Again:
            raise
        except BaseException as error:  # an unpickler may raise what it likes
            if isinstance(error, RecursionError) and not self.pool.port.is_own_thread:
                raise
            # No fault of the result, which is read again. Once: an unpickler may raise such, too.
            if not work.was_interrupted and is_of_signal(error):
                work.was_interrupted = True
                raise
            return None, unreadable(work.name(), error), None

    def value(self, work: Work, reply: Any) -> _Outcome:
        """What a reply says."""
        if type(reply) is tuple:
            return (*self.take(reply[0], pickle.loads(reply[1])), None)
        pool = self.pool
        if reply is None:
            text = f"{work.name()}: the host had no memory for its result"
            return None, OutOfMemory(text, Status.OUT_OF_MEMORY), None
        try:
            kind, value, ns, size, noted = read_reply(memoryview(reply))
            if kind == IN_FILE:
                pid, number, inode = value
                with pool.lock:
                    file = pool.files.open(pid, number, inode, size)
                kind, value, ns, size, noted = read_reply(file)
        except Gone:
            return None, self.run_again(work), None
        except NoRoom as why:
            text = f"{work.name()}: its result is lost: {why}"
            return None, OutOfMemory(text, Status.OUT_OF_MEMORY), None
        except Overwritten:
            return None, overwritten(work.name()), None
        with pool.lock:
            pool.pace.note(work, ns / work.count)
            pool.space.note(work, size)
        return (*self.take(kind, value), noted)

    def take(self, kind: int, value: Any) -> tuple[Any, BaseException | None]:
        if kind == VALUE:
            return value, None
        if kind == BROKEN:
            return None, self.pool.break_down(*value)
        return None, with_cause(*value)

    def finish(self, pool: Pool, work: Work, value: Any, error: BaseException | None) -> None:
        future = work.future
        part = future if isinstance(future, Part) else None
        if part is not None:
            value, error = part.mapping.settle(work, value, error)
        if pool.counts:
            note_end(pool, future, value, error)
        if work.was_ended and (part is None or not part.is_chunk):
            future._note_end()
        else:
            future._settle(value, error)
        future._call = future._pool = future._left = None  # it may be kept, but not they

    # Running again.

    def run_again(self, work: Work) -> WorkerDied:
        """For a large result whose worker died before it was fetched; the error if it may not."""
        pool = self.pool
        work.retries += 1
        with pool.lock:
            if work.retries < pool.attempts_of(work) and self.start_again(work):
                raise _Again
        text = f"{work.name()}: the worker process ended before its result was fetched"
        return WorkerDied(text, Status.WORKER_DIED)

    def start_again(self, work: Work) -> bool:
        """With the lock."""
        pool = self.pool
        end, work.end = work.end, None
        try:
            if pool.start(work):
                self.open.discard(work)
                return True
        except Exception as error:
            if is_of_signal(error) or isinstance(error, RecursionError):
                raise
        finally:
            if work.call is None:
                work.end = end
        return False

    def was_hit(self, work: Work, status: Status) -> bool:
        """Whether a call's worker died of something else, and the call may run again."""
        pool = self.pool
        if work.hits >= HITS_MAX:
            return False
        # What has begun is marked, if its worker had a page.
        is_known = work.blind == pool.mortem.blind
        if status == Status.WORKER_DIED:
            is_hit = is_known and not work.deaths  # it must not begin twice
        else:
            own = sum(death.is_own for death in work.deaths)
            most = pool.attempts_of(work)
            attempts = most if is_known else len(work.deaths)
            is_hit = status == Status.POISON and own < min(attempts, most)
        work.hits += is_hit
        return is_hit
