"""The driver: one thread that cuts jobs into pieces, sends them, and takes in what comes back.

1. Whoever submits, and the engine when it tells of pieces, puts a function into the inbox.
2. The driver calls all there are, then fills the engine up to what its pace allows.
3. A piece whose node was lost goes back to its job, and is sent again; so is one whose node lacks
   a library or a job's head, with what it lacks.
So jobs need no lock: only this thread touches them.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
from functools import partial
from typing import Any, Callable

from ..errors import Closed, Status, WorkerDied
from .engine import Engine, Sent, Told
from .job import Job, Piece, cancelled
from .names import SMALL_BYTES, NodeSettings, no_nodes, unavailable, versions

LOOK_SECONDS = 0.5  # between two looks for late pieces, which ask the engine where they are
TICK_SECONDS = 0.2  # how often a driver that has work looks whether there are nodes
GONE_SECONDS = 2.0  # what an engine that was closed may take to tell of what was under way
LOSSES_MAX = 20  # nodes that may die with one piece; who is always there is no bystander
DOWNS_MAX = 3  # a node is unfit when its worker processes cannot start so often with one piece
TRIES_MAX = 1000  # a piece that is asked for again so often gets nowhere


class Driver:
    """See the file's head. wait_for_nodes: seconds that work may wait when there is no node."""

    def __init__(self, engine: Engine, settings: NodeSettings, wait_for_nodes: float) -> None:
        self.engine = engine
        self.settings = settings
        self.wait_for_nodes = wait_for_nodes
        self.inbox: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.jobs: list[Job] = []
        self.pieces: dict[str, Piece] = {}  # under way, by key
        self.reached = time.monotonic()  # when there was a node last
        self.there = time.monotonic()  # when there was an engine last
        self.looked = 0.0  # when it looked for late pieces
        self.had_nodes = False
        self.why_refused = ""
        self.versions = tuple(versions())
        self.is_stopped = False
        self.is_abandoned = False
        self.error: BaseException | None = None  # that the engine has raised; stop() raises it
        engine.open(settings, self.tell)
        self.thread = threading.Thread(target=self._run, name="leveret-cluster", daemon=True)
        self.thread.start()

    # For other threads.

    def add(self, job: Job) -> None:
        """A driver that is stopped meanwhile ends the job."""
        self.call(lambda: self._add(job))
        if self.is_stopped:  # it may have looked into its inbox for the last time
            self.thread.join()
            job.finish(self._closed())

    def cancel(self, job: Job, error: BaseException | None = None) -> None:
        """Takes back what waits, and ends what runs, wherever the engine reaches it."""
        self.call(lambda: self._cancel(job, error or cancelled()))

    def call(self, function: Callable[[], object]) -> None:
        self.inbox.put(function)

    def tell(self, told: list[Told]) -> None:
        self.call(lambda: self._take_in(told))

    def stop(self) -> None:
        """Ends the thread, with all jobs that have not ended, and closes the engine.

        The caller may do that again, when a Ctrl-C has left it. Raises what the engine has raised.
        """
        self.call(self._stop)
        self.thread.join()
        error, self.error = self.error, None
        if error is not None:
            raise error

    def abandon(self) -> None:
        """Ends the thread when it has no work, as nobody can give it more. From a finalizer."""
        self.call(self._let_go)

    # The driver's own thread.

    def _stop(self) -> None:
        self.is_stopped = True

    def _let_go(self) -> None:
        self.is_abandoned = True

    def _run(self) -> None:
        """Whatever the engine raises, each job has an end and the engine is closed."""
        self._try(self._drive)
        self.is_stopped = True
        self._try(self._take_rest)
        for job in list(self.jobs):
            self._try(partial(self._cancel, job, self._closed()))
        self._try(self.engine.close)  # on this thread, which no Ctrl-C leaves

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except BaseException as error:
            self.error = self.error or error

    def _closed(self) -> Closed:
        made = Closed("the Cluster was closed", Status.CLOSED)
        made.__cause__ = self.error
        return made

    def _drive(self) -> None:
        while not self.is_stopped:
            with contextlib.suppress(queue.Empty):
                self.inbox.get(timeout=TICK_SECONDS if self.jobs else None)()
                while not self.is_stopped:
                    self.inbox.get_nowait()()
            if not self.is_stopped:
                self._fill()
                self._look_for_late()
                self._look_for_engine()
            if self.is_abandoned and not self.jobs:
                self.is_stopped = True

    def _take_rest(self) -> None:
        """What came while it was stopped; of what comes later is_stopped has told already."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.inbox.get_nowait()()

    def _add(self, job: Job) -> None:
        if not self.jobs:
            self.reached = time.monotonic()
        place = next((i for i, j in enumerate(self.jobs) if j.priority < job.priority), None)
        self.jobs.insert(len(self.jobs) if place is None else place, job)
        self._settle(job)

    def _settle(self, job: Job) -> None:
        """Forgets a job that has ended."""
        job.look_for_end()
        if job.finished.is_set() and job in self.jobs:
            self.jobs.remove(job)
            if job.leaves_copies:
                self.engine.end(job.key)

    def _fill(self) -> None:
        """Sends what the engine may have. A job whose data cannot be had fails alone."""
        slots = self.engine.slots()
        if slots:
            self.reached, self.had_nodes = time.monotonic(), True
        else:
            # Some is sent all the same: an engine that starts nodes for work must see it.
            self._look_for_nodes()
            slots = 1
        nodes = max(1, len(self.engine.nodes()))
        for job in list(self.jobs):
            if not job.is_ready():
                self._settle(job)
                continue
            room = job.pace.room(len(self.pieces), slots, job.piece_bytes())
            sent: list[Sent] = []
            try:
                while len(sent) < room and (piece := job.take(nodes, slots)) is not None:
                    self.pieces[piece.key] = piece
                    sent.append(self._sent(piece))
                if sent:
                    self.engine.send(sent)
            except BaseException as error:  # of an iterable, a pickler, an array of the user's
                self._cancel(job, error)
            self._settle(job)

    def _sent(self, piece: Piece) -> Sent:
        job = piece.job
        parcels = {**job.parcels, **piece.parcels}
        piece.parcels = {}
        bounds = piece.begin, piece.end
        arrays = job.arrays(piece)
        small = tuple(each if _is_small(each) else None for each in arrays)
        about = self.versions, tuple(self.settings), job.key, bounds, parcels, small, job.stays
        large = [each for each, there in zip(arrays, small) if there is None]
        avoid = piece.avoid.union(job.unfit)
        return Sent(piece.key, (pickle.dumps(about, 5), *large), job.priority, job.stays, avoid)

    def _look_for_late(self) -> None:
        """The last pieces of a job may be on a slow node, while others have nothing to do."""
        now = time.monotonic()
        if not self.engine.knows_nodes or now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        late = [each.key for job in self.jobs for each in job.late(now)]
        if late:
            self.engine.locate(late, lambda *found: self.call(lambda: self._copy(*found)))

    def _copy(self, found: dict[str, str], idle: int) -> None:
        """Sends pieces to a second node. The one that lands first counts."""
        for key, node in list(found.items())[: max(0, idle)]:
            piece = self.pieces.get(key)
            if piece is None or piece.has_copy:
                continue
            others = set(self.engine.nodes()) - {node} - piece.job.unfit
            if not others:
                continue
            slow = frozenset(found.values())  # but where all are, there is no choice
            piece.avoid = slow if others - slow else frozenset({node})
            piece.has_copy = True
            piece.job.number(piece)
            self.pieces[piece.key] = piece
            try:
                self.engine.send([self._sent(piece)])
            except BaseException as error:
                self._cancel(piece.job, error)

    def _drop_copies(self, piece: Piece) -> None:
        """One has landed; what the others make is nobody's."""
        job = piece.job
        keys = job.copies(piece)
        for key in keys:
            self.pieces.pop(key, None)
            job.under_way.pop(key)
        if piece in job.again:  # one that was to be sent with what its node lacks
            job.again.remove(piece)
        if keys:
            job.leaves_copies = True
            self.engine.take_back(keys)

    def _look_for_engine(self) -> None:
        """Or a job whose engine is closed at a bad moment would wait for ever."""
        error = self.engine.gone() if self.jobs else None
        if error is None:
            self.there = time.monotonic()
        elif time.monotonic() - self.there > GONE_SECONDS:
            for job in list(self.jobs):
                self._cancel(job, error)

    def _look_for_nodes(self) -> None:
        if not self.jobs or time.monotonic() - self.reached < self.wait_for_nodes:
            return
        if self.why_refused:
            text = f"no node can take part: {self.why_refused}"
        else:
            text = str(no_nodes(self.engine.name(), self.wait_for_nodes))
            if self.had_nodes:
                text += (
                    "; those that were there have died or left: one that Dask ends for its memory "
                    "needs a higher limit, or smaller slices and batches"
                )
        for job in list(self.jobs):
            self._cancel(job, unavailable(text))

    def _cancel(self, job: Job, error: BaseException) -> None:
        if job.finished.is_set():
            return
        keys = list(job.under_way)
        for key in keys:
            self.pieces.pop(key, None)
        job.under_way.clear()
        job.again.clear()
        with contextlib.suppress(Exception):  # the engine may be the one that is gone
            self.engine.take_back(keys)
            if keys:
                self.engine.end(job.key)
        job.finish(error)
        self._settle(job)

    def _take_in(self, told: list[Told]) -> None:
        for each in told:
            piece = self.pieces.pop(each.key, None)
            if piece is None or piece.job.under_way.pop(each.key, None) is None:
                continue  # it was taken back
            try:
                self._judge(piece, each)
            except BaseException as error:
                self._cancel(piece.job, error)
            self._settle(piece.job)

    def _judge(self, piece: Piece, told: Told) -> None:
        job, report = piece.job, told.report
        if report is None:
            return self._without_report(piece, told)
        if isinstance(report, bytes):
            report = pickle.loads(report)
        if report.kind == "done":
            job.land(piece, report, told.handle)
            return self._drop_copies(piece)
        if report.kind == "missing":
            for key in report.lacks:
                data = job.parcel(key)
                if data is not None:
                    piece.parcels[key] = data
        elif report.kind == "apart":
            piece.is_apart = True
        elif report.kind == "refused":
            self.why_refused = report.why
            is_known = self.engine.refuse(report.node)
            if job.goes_on(piece):
                return None
            if not is_known or not self.engine.slots():
                return self._cancel(job, unavailable(report.why))
        elif report.kind == "down" and piece.note_down(report.node) < DOWNS_MAX:
            pass  # the node makes new ones
        elif report.kind in ("unfit", "down"):
            job.unfit.add(report.node)
            if job.goes_on(piece):
                return None
            if not self.engine.knows_nodes or job.unfit >= set(self.engine.nodes()):
                return self._cancel(job, unavailable(report.why))
        if piece.tries > TRIES_MAX:
            return self._cancel(job, unavailable(f"no node runs a piece: {report.why}"))
        return job.again.append(piece)

    def _without_report(self, piece: Piece, told: Told) -> None:
        job = piece.job
        if not told.deaths:
            error = told.error
            assert error is not None
            return None if job.goes_on(piece) else self._cancel(job, error)
        self.reached = time.monotonic()  # there was a node, if not for long
        piece.losses += told.deaths
        job.lost += 1
        if piece.losses < LOSSES_MAX:
            return None if job.goes_on(piece) else job.again.append(piece)
        text = (
            f"elements [{piece.begin}, {piece.end}) were on {piece.losses} nodes that died; see "
            f"the log of a worker of {self.engine.name()}: one that Dask ends for its memory needs "
            "a higher limit, or smaller slices and batches"
        )
        return self._cancel(job, WorkerDied(text, Status.WORKER_DIED))


def _is_small(array: Any) -> bool:
    """Whether it travels in the note; what an engine keeps, its future, does not."""
    if isinstance(array, (tuple, bytes)):
        return len(array) <= SMALL_BYTES
    return bool(getattr(array, "nbytes", SMALL_BYTES + 1) <= SMALL_BYTES)
