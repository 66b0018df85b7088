"""The steps of test_exercise.py that open runtimes and submit."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import sys
import threading
from collections.abc import Iterable
from typing import Any, Callable, ClassVar

import numpy as np
import pytest
from exercise_world import LIMIT, Effect, Natives, Place, Task, World, added, scaled, set_to
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

import leveret
from leveret import Status

PROGRAM_SECONDS = 60  # in which each program ends, also on a busy machine
NULL, SPIN, SUM, SCALE, AXPY, COPY = (
    leveret.builtin(name) for name in ("null", "spin", "sum", "scale", "axpy", "copy")
)

KEPT: list[dict[str, Any]] = [
    {"workers": 1, "tickets": 2, "full": "help", "wait": "park", "spin_ns": 0, "staging": "auto"},
    {"workers": 2, "tickets": 8, "full": "fail", "wait": "help", "depth": 1, "staging": "copy"},
    {"workers": 3, "tickets": 64, "full": "wait", "wait": "help", "staging": "in_place"},
]

numbers = st.integers(0, 1 << 16)  # an index into whatever there is
factors = st.sampled_from([-1.0, 0.0, 1.0, 2.0])
policies = st.sampled_from([None, "park", "spin", "yield", "directed", "help"])
orders = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(-3, 3),
        "key": st.integers(0, 3),
        "grain": st.integers(0, 3),
    },
)


class Submits(RuleBasedStateMachine):
    """What Exercise inherits."""

    natives: ClassVar[Natives]
    machine: ClassVar[str]
    uncapture: ClassVar[Any]  # what is printed appears from then on
    kept: ClassVar[dict[int, World]]  # runtimes that many programs use: processes start slowly

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.is_right = True  # until a step did not come to its end
        self.threads: list[tuple[threading.Thread, list[Task]]] = []
        self.news: queue.SimpleQueue[tuple[Task, Any, Any]] = queue.SimpleQueue()
        self.errors: list[BaseException] = []
        self.watchdog = threading.Timer(PROGRAM_SECONDS, self.give_up)
        self.watchdog.daemon = True
        self.watchdog.start()

    def give_up(self) -> None:
        """The steps as they were, whatever hypothesis thinks of them."""
        self.uncapture()
        print("this program does not end:", *self.steps, sep="\n  ", file=sys.stderr, flush=True)
        print(self.world.tasks, self.world.dropped, self.runtime.counters(), file=sys.stderr)
        faulthandler.dump_traceback(file=2)
        os._exit(1)

    def say(self, *words: object) -> None:
        self.steps.append(" ".join(map(str, words)))
        self.is_right = False

    # Opening and closing.

    @initialize(
        workers=st.integers(1, 4),
        tickets=st.sampled_from([2, 3, 4, 8, 16, 64]),
        staging=st.sampled_from(["auto", "in_place", "copy"]),
        wait=st.sampled_from(["help", "park", "spin", "yield", "directed"]),
        full=st.sampled_from(["help", "wait", "fail"]),
        depth=st.integers(0, 4),
        spin_ns=st.sampled_from([0, 2_000, 50_000]),
        dice_threshold=st.sampled_from([0, 1, 16]),
        contexts=st.sampled_from([0, 1, 3]),
        nest_max=st.sampled_from([1, 4, 256]),
        number=st.integers(0, 2),
    )
    def open(self, number: int, **options: Any) -> None:
        if self.machine != "processes":
            self.say("open", self.machine, options)
            self.world = World(self.machine, options)
            return
        self.say("open", self.machine, KEPT[number])
        if number not in self.kept:
            self.kept[number] = World(self.machine, KEPT[number])
        self.world = self.kept[number]

    @property
    def runtime(self) -> leveret.Runtime:
        return self.world.runtime

    def is_open(self) -> bool:
        return not self.runtime.closed

    # Choosing.

    def place(self, number: int) -> Place | None:
        places = self.world.places
        return places[number % len(places)] if places else None

    def free_task(self, number: int) -> Task | None:
        """One with a ticket that no other thread waits for."""
        tasks = [task for task in self.world.tasks if task.waiting == 0]
        return tasks[number % len(tasks)] if tasks else None

    def some_tasks(self, numbers: list[int]) -> list[Task]:
        """Tasks with a ticket, under way or not."""
        tasks = [task for task in self.world.tasks + self.world.ended if task.ticket is not None]
        return list({tasks[n % len(tasks)]: None for n in numbers}) if tasks else []

    def policy(self, policy: str | None) -> Any:
        return policy if policy in self.world.policies() else "park"

    # Submitting.

    def prepare(self, *places: Place, is_alone: bool = False) -> None:
        """Settles what no task can follow, before an effect is made of what is predicted."""
        if is_alone:
            self.settle(places)
        # What is learned of the tasks of one place may be of another's, too.
        while hopeless := [place for place in places if place.is_hopeless()]:
            self.settle(hopeless)

    def settle(self, places: Iterable[Place]) -> None:
        self.join_threads()
        for place in places:
            self.world.settle(place)

    def submit(
        self,
        name: str,
        uses: list[tuple[Place, Effect | None]],
        submit: Callable[[dict[str, Any]], leveret.Ticket],
        *,
        expected: Callable[[], object] = lambda: None,
        after: list[Task] | None = None,
        has_after: bool = True,
        wanted: int = 1,
        **known: Any,
    ) -> Task | None:
        """Submits after all tasks that must come before; None when the runtime is full."""
        self.prepare(*(place for place, _ in uses), is_alone=not has_after)
        predecessors: dict[Task, None] = dict.fromkeys(after or [])
        edges = len(predecessors) + sum(len(place.users) for place, _ in uses)
        if self.world.needs_room(wanted, edges):
            self.join_threads()
            self.world.make_room(wanted, edges)
        for place, effect in uses:
            if not has_after:
                continue
            predecessors.update(dict.fromkeys(t for t, e in place.users if effect or e))
        # A ticket is needed to be named; who has none any more is waited for.
        if any(task.ticket is None for task in predecessors):
            self.world.wait_for_all()
        named = [task for task in predecessors if task.ticket is not None]
        told = expected()
        options = {"after": [task.ticket for task in named]} if has_after else {}
        try:
            ticket = submit(options)
        except leveret.WouldBlock:
            if not self.is_refusing() or not has_after:
                raise
            # The last of many tasks gives its slot back a moment after their ticket is done.
            self.join_threads()
            self.world.make_room(1 << 20)
            ticket = submit(options)
        task = self.world.add(Task(name, ticket, named, told, **known))
        for place, effect in uses:
            place.use(task, effect)
        if ticket.status_code == Status.DEPENDENCY_FAILED:  # what it comes after had failed already
            self.world.collect(task)
        return task

    @rule(
        rows=st.integers(1, 6),
        columns=st.integers(1, 5),
        gap=st.sampled_from([0, 0, 1, 3]),
        is_shared=st.booleans(),
    )
    def make_place(self, rows: int, columns: int, gap: int, is_shared: bool) -> None:
        if len(self.world.places) >= 6:
            return
        self.say("place", rows, columns, gap, is_shared)
        self.world.places.append(Place(rows, columns, gap, is_shared))

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, order=orders, own=st.booleans(), before=st.lists(numbers, max_size=3))
    def submit_sum(self, n: int, order: Any, own: bool, before: list[int]) -> None:
        place = self.place(n)
        if place is None:
            return
        procedure = self.natives.block_sum if own else SUM
        self.say("sum", n, order, own, before)
        self.submit(
            "sum",
            [(place, None)],
            lambda o: self.runtime.submit(procedure, place.view, **o, **order),
            expected=lambda: float(place.predicted.sum()),
            after=[task for task in self.some_tasks(before) if task.outcome is None],
        )

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, factor=factors, order=orders)
    def submit_scale(self, n: int, factor: float, order: Any) -> None:
        place = self.place(n)
        if place is None:
            return
        self.say("scale", n, factor, order)
        self.submit(
            "scale",
            [(place, scaled(factor))],
            lambda o: self.runtime.submit(SCALE, factor, place.view, **o, **order),
        )

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, value=factors, order=orders)
    def submit_fill(self, n: int, value: float, order: Any) -> None:
        place = self.place(n)
        if place is None:
            return
        self.say("fill", n, value, order)
        self.submit(
            "fill",
            [(place, set_to(value))],
            lambda o: self.runtime.submit(self.natives.fill, value, place.view, **o, **order),
        )

    def pair(self, n: int, m: int) -> tuple[Place, Place] | None:
        """Two arrays of the same shape."""
        x = self.place(n)
        if x is None:
            return None
        y = next(
            (p for p in self.world.places if p is not x and p.view.shape == x.view.shape), None
        )
        if y is None:
            y = Place(len(x.view), x.view.shape[1], m % 2, m % 3 == 0)
            self.world.places.append(y)
        return (x, y) if m % 5 else (y, x)

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, m=numbers, a=factors, order=orders)
    def submit_axpy(self, n: int, m: int, a: float, order: Any) -> None:
        pair = self.pair(n, m)
        if pair is None:
            return
        x, y = pair
        self.say("axpy", n, m, a, order)
        self.prepare(x, y)
        self.submit(
            "axpy",
            [(x, None), (y, added(a, x.predicted.copy()))],
            lambda o: self.runtime.submit(AXPY, a, x.view, y.view, **o, **order),
        )

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, m=numbers, a=factors, order=orders)
    def submit_parallel(self, n: int, m: int, a: float, order: Any) -> None:
        pair = self.pair(n, m)
        if pair is None or any(not p.view.flags.c_contiguous for p in pair):
            return
        x, y = pair
        self.say("parallel", n, m, a, order)
        self.prepare(x, y)
        self.submit(
            "parallel",
            [(x, None), (y, set_to(a + x.predicted))],
            lambda o: self.runtime.parallel(
                self.natives.add,
                x.view.size,
                a,
                leveret.sliced(x.view.reshape(-1)),
                leveret.sliced(y.view.reshape(-1)),
                **o,
                **order,
            ),
            is_many=True,
            slots=1 << 20,  # it is cut into as many pieces as there are tickets
        )

    @precondition(lambda self: self.is_open())
    @rule(
        n=numbers, m=numbers, a=factors, what=st.sampled_from(["sum", "scale", "axpy", "axpy list"])
    )
    def submit_bulk(self, n: int, m: int, a: float, what: str) -> None:
        pair = self.pair(n, m)
        if pair is None:
            return
        x, y = pair
        self.say("bulk", n, m, a, what)
        self.prepare(x, y, is_alone=True)
        each = a + np.arange(float(len(x.view)))
        bulk = self.runtime.submit_bulk
        uses: list[tuple[Place, Effect | None]] = [(x, None)]
        if what == "scale":
            uses = [(x, scaled(a))]
        elif what != "sum":
            uses.append((y, added(each[:, None], x.known.copy())))
        calls: dict[str, Callable[[], leveret.Ticket]] = {
            "sum": lambda: bulk(SUM, x.view),
            "scale": lambda: bulk(SCALE, a, x.view),
            "axpy": lambda: bulk(AXPY, each, x.view, y.view),
            "axpy list": lambda: bulk(AXPY, list(zip(each.tolist(), x.view, y.view))),
        }
        self.submit_many(what, uses, calls[what], len(x.view), x if what == "sum" else None)

    def submit_many(
        self,
        what: str,
        uses: list[tuple[Place, Effect | None]],
        call: Callable[[], leveret.Ticket],
        count: int,
        summed: Place | None,
    ) -> None:
        if self.world.needs_room(count + 1):  # its tasks may have to wait for those under way
            self.world.open_gates()
        with contextlib.suppress(leveret.WouldBlock):
            if self.is_refusing():
                self.join_threads()
                self.world.make_room(1 << 20)
                self.world.has_refused_bulk = count + 1 > self.world.tickets
            self.submit(
                "bulk " + what,
                uses,
                lambda _: call(),
                expected=lambda: None if summed is None else summed.predicted.sum(axis=1),
                has_after=False,
                wanted=2,
                is_many=True,
                slots=count + 1,
            )
            return
        assert count + 1 > self.world.tickets, "there is room for all its tasks"
        self.world.wait_for_all()
        for place, effect in uses:  # some have run
            place.users.append((Task(what, None, is_many=True), effect))
            place.check()

    def is_refusing(self) -> bool:
        return bool(self.world.options["full"] == "fail")

    @precondition(lambda self: self.is_open())
    @rule(codes=st.lists(st.integers(0, 3), min_size=1, max_size=4), order=orders)
    def submit_failing(self, codes: list[int], order: Any) -> None:
        self.say("fail", codes, order)
        failing = tuple(code for code in codes if code)
        if len(codes) == 1:
            self.submit(
                "fail",
                [],
                lambda o: self.runtime.submit(self.natives.fail, codes[0], **o, **order),
                codes=failing,
            )
            return
        if self.is_refusing() and len(codes) + 1 > self.world.tickets:
            return
        if self.world.needs_room(len(codes) + 1):
            self.world.open_gates()
        wanted = len(codes) + 1 if self.is_refusing() else 2
        self.submit(
            "bulk fail",
            [],
            lambda _: self.runtime.submit_bulk(self.natives.fail, codes),
            has_after=False,
            wanted=wanted,
            is_many=True,
            slots=len(codes) + 1,
            codes=failing,
        )

    @precondition(lambda self: self.is_open())
    @rule(before=st.lists(numbers, max_size=4), ns=st.sampled_from([0, 1_000, 200_000]), x=factors)
    def submit_small(self, before: list[int], ns: int, x: float) -> None:
        after = self.some_tasks(before)
        self.say("small", before, ns, x)
        if x > 1:
            self.submit(
                "two",
                [],
                lambda o: self.runtime.submit(self.natives.two, x + 0.5, **o),
                expected=lambda: (2 * x + 1, int(x)),
                after=after,
            )
        elif ns:
            self.submit("spin", [], lambda o: self.runtime.submit(SPIN, ns, **o), after=after)
        else:
            self.submit("null", [], lambda o: self.runtime.submit(NULL, **o), after=after)

    @precondition(lambda self: self.is_open())
    @rule(n=st.integers(0, 2), order=orders, before=st.lists(numbers, max_size=2))
    def submit_locked(self, n: int, order: Any, before: list[int]) -> None:
        """With no order among them, but for a mutex."""
        self.say("locked", n, order, before)
        locks = self.world.mutexes if n == 2 else self.world.mutexes[n]
        task = self.submit(
            "locked",
            [],
            lambda o: self.runtime.submit(
                self.natives.increment, self.world.counts[n % 2], locks=locks, **o, **order
            ),
            after=self.some_tasks(before),
        )
        if task is not None:
            self.world.counted[n % 2].append(task)

    @precondition(lambda self: self.is_open() and self.world.may_hold)
    @rule()
    def submit_gate(self) -> None:
        """A task that ends when it is let, and keeps its worker until then."""
        self.say("gate")
        flag = leveret.shared_array(1, np.int32)
        self.submit(
            "gate", [], lambda o: self.runtime.submit(self.natives.gate, flag, **o), gate=flag
        )

    @rule()
    def open_gates(self) -> None:
        self.say("open gates")
        self.world.open_gates()

    @precondition(lambda self: self.is_open())
    @rule(n=numbers, how=st.integers(0, 5))
    def submit_wrongly(self, n: int, how: int) -> None:
        """Nothing is submitted, and nothing is lost."""
        place = self.place(n) or Place(1, 1, 0, False)
        self.say("wrong", n, how)
        calls: list[Callable[[], object]] = [
            lambda: self.runtime.submit(SUM),
            lambda: self.runtime.submit(SUM, place.view.astype(np.float32)),
            lambda: self.runtime.submit(SUM, place.view, after=[3]),  # type: ignore[list-item]
            lambda: self.runtime.submit(AXPY, 1.0, place.view, place.view),
            lambda: self.runtime.submit_bulk(SCALE, 1.0, 2.0),
            lambda: leveret.wait_any([]),
        ]
        is_quiet = self.world.under_way() == 0  # else pieces of a diced task may be counted
        before = self.runtime.counters()["submitted"]
        with pytest.raises((TypeError, ValueError)):
            calls[how]()
        assert not is_quiet or self.runtime.counters()["submitted"] == before

    @precondition(lambda self: self.is_open() and self.is_refusing())
    @rule()
    def fill_up(self) -> None:
        """What is too many is refused, at once."""
        self.say("fill up")
        with pytest.raises(leveret.WouldBlock):
            for _ in range(self.world.tickets + 1):
                self.world.add(Task("null", self.runtime.submit(NULL)))
        assert self.world.under_way() >= self.world.tickets / 2

    @precondition(lambda self: self.is_open())
    @rule(
        names=st.lists(
            st.sampled_from(["fifo", "priority", "locality", "by_procedure"]), max_size=3
        )
    )
    def set_filters(self, names: list[str]) -> None:
        self.say("filters", names)
        self.runtime.set_filters(names)

    @rule()
    def join_threads(self) -> None:
        if not self.threads:
            return
        self.say("join threads")
        self.world.open_gates()
        for thread, tasks in self.threads:
            thread.join(LIMIT)
            assert not thread.is_alive(), "a wait of another thread does not end"
            for task in tasks:
                task.waiting -= 1
        self.threads.clear()
        assert not self.errors, self.errors
        while not self.news.empty():
            self.world.take(*self.news.get())
