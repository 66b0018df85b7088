"""What test_exercise.py knows of a runtime: its tasks, their arrays, and what may become of them.

Each array has a content that is known, and users: tasks in the order in which they have it, each
after those before. When they are over, the content must be what those that ended well have made of
it, one after the other, and nothing beside the array may have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

import leveret
from leveret import Status

LIMIT = 30.0  # seconds in which everything that can end has ended
GUARD = 8
GUARDED = -777.0

Floats = npt.NDArray[np.float64]
Effect = Callable[[Floats], None]  # what a task makes of the content of one array


class Natives:
    """The procedures of kernels.c."""

    def __init__(self, library: Path) -> None:
        def load(symbol: str, signature: str) -> leveret.Procedure:
            return leveret.load(library, symbol, signature)

        self.fill = load("fill_block", "f8, out f8, rows(1), count(1), stride(1)")
        self.block_sum = load("block_sum", "in f8, rows(0), count(0), stride(0), result f8")
        self.fail = load("fail_with", "i4 -> int")
        self.increment = load("increment", "inout i8")
        self.two = load("two_results", "f8, result f8, result i4")
        self.add = load("add_range", "range, f8, in f8, out f8")
        self.gate = load("wait_for_flag", "in i4 -> int")


def scaled(factor: float) -> Effect:
    def effect(content: Floats) -> None:
        content *= factor

    return effect


def added(a: Any, x: Floats) -> Effect:
    def effect(content: Floats) -> None:
        content += a * x

    return effect


def set_to(value: Any) -> Effect:
    def effect(content: Floats) -> None:
        content[:] = value

    return effect


class Place:
    """An array among guards, maybe one with gaps between its rows, and what it must hold."""

    def __init__(self, rows: int, columns: int, gap: int, is_shared: bool) -> None:
        shape = rows + 2, GUARD + columns + gap
        self.frame: Floats = (
            leveret.shared_array(shape) if is_shared else np.empty(shape, np.float64)
        )
        self.frame[:] = GUARDED
        if gap == 0:  # without a gap between the rows
            flat = self.frame.reshape(-1)[GUARD : GUARD + rows * columns]
            self.view: Floats = flat.reshape(rows, columns)
        else:
            self.view = self.frame[1:-1, GUARD : GUARD + columns]
        self.view[:] = np.arange(rows * columns).reshape(rows, columns) % 7
        self.known: Floats = self.view.copy()
        self.predicted: Floats = self.view.copy()  # when all users have ended well
        self.users: list[tuple[Task, Effect | None]] = []

    @property
    def writers(self) -> list[Task]:
        return [task for task, effect in self.users if effect is not None]

    def use(self, task: Task, effect: Effect | None) -> None:
        self.users.append((task, effect))
        if effect is not None:
            effect(self.predicted)

    def is_hopeless(self) -> bool:
        """Nothing can come after its users, or they are too many."""
        return len(self.users) > 8 or any(
            task.outcome not in (None, Status.OK) or task.is_forgotten() for task, _ in self.users
        )

    def check(self) -> None:
        """All users are over."""
        self._check_guards()
        self._conclude()
        writers = [(task, effect) for task, effect in self.users if effect is not None]
        unclear = [(task, effect) for task, effect in writers if task.may_have_run_in_part()]
        for task, effect in writers:
            if task.outcome == Status.OK:
                effect(self.known)
        if len(unclear) == 1:
            after = self.known.copy()
            unclear[0][1](after)
            is_either = (self.view == self.known) | (self.view == after)
            assert is_either.all(), (self.view, self.known, after)
        if unclear:
            self.known = self.view.copy()
        assert np.array_equal(self.view, self.known), (self.view, self.known)
        self.predicted = self.known.copy()
        self.users.clear()

    def _conclude(self) -> None:
        """What a task came after that ended well has ended well, too."""
        has_run = False
        for task, effect in reversed(self.users):
            if has_run and effect is not None and task.outcome is None:
                task.outcome = Status.OK
            has_run = has_run or task.outcome == Status.OK

    def _check_guards(self) -> None:
        frame = self.frame.copy()
        # The view's elements, found by their addresses.
        begin = self.frame.__array_interface__["data"][0]
        offset = self.view.__array_interface__["data"][0] - begin
        inside = np.ndarray(self.view.shape, np.float64, frame, offset, self.view.strides)
        inside[:] = GUARDED
        assert (frame == GUARDED).all(), "bytes beside the array have changed"


@dataclass(eq=False)
class Task:
    """One submit: one task, or many behind one ticket."""

    name: str
    ticket: leveret.Ticket | None
    after: Sequence[Task] = ()
    expected: object = None  # its result
    codes: tuple[int, ...] = ()  # of those of its tasks that fail
    is_many: bool = False
    slots: int = 1  # that it may use before it is done
    gate: npt.NDArray[np.int32] | None = None  # not 0: its task ends
    may_be_cancelled: bool = False
    must_not_run: bool = False  # it was cancelled before it could begin
    outcome: Status | None = None
    waiting: int = 0  # other threads that use the ticket

    def may_have_run_in_part(self) -> bool:
        """Nobody asked what became of it, or it is many tasks."""
        return self.outcome is None or (self.is_many and self.outcome == Status.CANCELLED)

    def is_forgotten(self) -> bool:
        """Nobody can learn whether it was cancelled, and nothing more can come after it."""
        return self.ticket is None and self.outcome is None and self.may_be_cancelled

    def is_held(self) -> bool:
        """It cannot end before a gate is opened."""
        if self.outcome is not None or self.may_be_cancelled:
            return False
        if self.gate is not None and self.gate[0] == 0:
            return True
        return any(before.is_held() for before in self.after)

    def allowed(self) -> set[Status]:
        predecessors = {before.outcome for before in self.after}
        found = {Status.CANCELLED} if self.may_be_cancelled else set()
        if predecessors - {Status.OK}:
            found.add(Status.DEPENDENCY_FAILED)
        if not predecessors - {Status.OK, None} and not self.must_not_run:
            found.add(Status.TASK_FAILED if self.codes else Status.OK)
            # Of many tasks one may be cancelled after all others have ended well.
            if self.codes and self.is_many and self.may_be_cancelled:
                found.add(Status.OK)
        return found

    def check_outcome(self) -> None:
        assert self.outcome in self.allowed(), f"{self.name}: {self.outcome!r}, {self.allowed()}"

    def take(self, error: leveret.LeveretError | None, result: object = None) -> None:
        """What a wait has told."""
        outcome = Status.OK if error is None else error.status
        assert self.outcome in (None, outcome), f"{self.name}: {self.outcome!r}, then {outcome!r}"
        self.outcome = outcome
        self.check_outcome()
        if isinstance(error, leveret.TaskFailed) and outcome == Status.TASK_FAILED:
            assert error.code in self.codes
            if not self.may_be_cancelled:
                assert error.failures == len(self.codes)
        if error is None:
            assert same(result, self.expected), (self.name, result, self.expected)


def same(result: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return isinstance(result, tuple) and all(map(same, result, expected))
    if isinstance(expected, np.ndarray):
        return isinstance(result, np.ndarray) and np.array_equal(result, expected)
    return result == expected


class World:
    """One runtime with its tasks."""

    def __init__(self, machine: str, options: dict[str, Any]) -> None:
        self.machine = machine
        self.options = options
        self.tickets: int = 1 << (options["tickets"] - 1).bit_length()
        self.runtime = leveret.Runtime(machine, **options)
        # A host that helps would run the gate that it is to open; `sim` is one thread; and a gate
        # that is copied cannot be opened.
        helps = "help" in (options["wait"], options["full"]) and machine == "threads"
        self.may_hold = machine != "sim" and options["staging"] != "copy" and not helps
        self.places: list[Place] = []
        self.tasks: list[Task] = []  # whose outcome is not known
        self.ended: list[Task] = []
        self.dropped: list[Task] = []  # since the last wait for all
        self.mutexes = [self.runtime.mutex() for _ in range(2)]
        self.counts = [np.zeros(1, np.int64) for _ in self.mutexes]
        self.counted: list[list[Task]] = [[] for _ in self.mutexes]
        self.has_refused_bulk = False

    def policies(self) -> list[str | None]:
        some: list[str | None] = [None, "park", "spin", "yield", "directed"]
        if not self.may_hold or self.machine == "processes":
            some.append("help")
        return some

    # Tasks under way.

    def add(self, task: Task) -> Task:
        self.tasks.append(task)
        return task

    def open_gates(self) -> None:
        for task in self.tasks + self.dropped:
            if task.gate is not None:
                task.gate[0] = 1

    def held(self) -> list[Task]:
        return [task for task in self.tasks + self.dropped if task.is_held()]

    def under_way(self) -> int:
        """Tickets in use, at most: who has more than one gives back all but one by itself.

        But not while a gate holds its workers, and in time for a submit that does not wait.
        """
        tasks = self.tasks + self.dropped
        if self.options["full"] != "fail" and not self.held():
            return len(tasks)
        return sum(1 if t.ticket is not None and t.ticket.done() else t.slots for t in tasks)

    def has_edges(self, wanted: int) -> bool:
        edges_max = max(32, 2 * self.tickets)
        return edges_max >= wanted + sum(len(task.after) for task in self.tasks + self.dropped)

    def needs_room(self, wanted: int, edges: int = 0) -> bool:
        """Whether a submit could wait for what only this thread does."""
        return self.under_way() + wanted > self.tickets or not self.has_edges(edges)

    def make_room(self, wanted: int, edges: int = 0) -> None:
        if not self.has_edges(edges):
            self.open_gates()
            for task in [task for task in self.tasks if task.after]:
                self.collect(task)
            self.wait_for_all()
        while self.under_way() + wanted > self.tickets and self.under_way() > 0:
            self.open_gates()
            if self.tasks:
                self.collect(self.tasks[0])
            else:
                self.wait_for_all()

    def collect(self, task: Task, policy: Any = None, timeout: float = LIMIT) -> None:
        """Waits for a task and checks what became of it."""
        assert task.ticket is not None
        try:
            self.take(task, None, task.ticket.result(timeout, policy))
        except leveret.TimeoutError:
            raise
        except leveret.LeveretError as error:
            self.take(task, error)
        assert task.ticket.done()
        assert task.ticket.status_code == task.outcome

    def take(self, task: Task, error: leveret.LeveretError | None, result: object = None) -> None:
        task.take(error, result)
        if task in self.tasks:
            self.tasks.remove(task)
            self.ended.append(task)

    def drop(self, task: Task) -> None:
        task.ticket = None
        self.tasks.remove(task)
        self.dropped.append(task)

    def settle_dropped(self) -> None:
        """What became of tasks that nobody waited for; a cancelled one is not known."""
        for task in self.dropped:
            if task.may_be_cancelled or any(before.outcome is None for before in task.after):
                continue
            predecessors = {before.outcome for before in task.after}
            if predecessors - {Status.OK}:
                task.outcome = Status.DEPENDENCY_FAILED
            else:
                task.outcome = Status.TASK_FAILED if task.codes else Status.OK

    def wait_for_all(self) -> None:
        self.open_gates()
        failure = None
        try:
            self.runtime.wait_for_completion(LIMIT)
        except leveret.TimeoutError:
            raise
        except leveret.LeveretError as error:
            # Its frames would keep tickets that a caller drops later.
            failure = error.with_traceback(None)
        for task in list(self.tasks):
            assert task.ticket is not None and task.ticket.done()
            self.collect(task, timeout=0)
        self.settle_dropped()
        outcomes = {task.outcome for task in self.dropped}
        if failure is not None:
            assert outcomes - {Status.OK} or self.has_refused_bulk, failure
        elif not self.has_refused_bulk:
            assert not outcomes & {Status.TASK_FAILED, Status.DEPENDENCY_FAILED}, self.dropped
        self.ended += self.dropped
        self.dropped.clear()

    # What must hold.

    def settle(self, place: Place) -> None:
        """Nobody uses the array any more, and it holds what it must."""
        if any(task in self.dropped for task, _ in place.users):
            self.wait_for_all()
        for task, _ in place.users:
            if task in self.tasks:
                self.open_gates()
                self.collect(task)
        place.check()

    def check_all(self) -> None:
        """No task is left."""
        for task in self.ended:
            if task.outcome is not None:
                task.check_outcome()
        for place in self.places:
            place.check()
        for count, tasks in zip(self.counts, self.counted):
            ran = sum(task.outcome == Status.OK for task in tasks)
            unknown = sum(task.outcome is None for task in tasks)
            assert ran <= count[0] <= ran + unknown, (count[0], ran, unknown)
        counters = self.runtime.counters()
        assert counters["submitted"] == counters["completed"], counters

    def forget(self) -> None:
        """For another program on the same runtime."""
        self.places.clear()
        self.ended.clear()
        for tasks in self.counted:
            tasks.clear()
        for count in self.counts:
            count[0] = 0
        self.has_refused_bulk = False

    def close(self, cancel: bool) -> None:
        if cancel:
            for task in self.tasks + self.dropped:
                task.may_be_cancelled = True
        # What is held and does not run is cancelled meanwhile.
        opener = threading.Thread(target=self.open_gates)
        if self.machine == "sim" or not cancel:
            self.open_gates()
        opener.start()
        self.runtime.close(LIMIT, cancel)
        opener.join(LIMIT)
        for task in list(self.tasks):
            assert task.ticket is not None and task.ticket.done()
            self.collect(task, timeout=0)
        self.settle_dropped()
        self.ended += self.dropped
        self.dropped.clear()
        self.check_all()
