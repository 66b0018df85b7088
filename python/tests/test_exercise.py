"""Programs at random from the whole interface of the package, and an oracle: exercise_world.py.

LEVERET_SEED=n runs the programs of that seed, LEVERET_DEEP=1 many more, and LEVERET_SHRINK=1 looks
for a smaller one that fails, too, which takes minutes. A program that does not end
is printed with the stacks of all threads.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import DEEP, rest, works
from exercise_submits import NULL, Submits, numbers, policies
from exercise_world import LIMIT, Natives, Task, World
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import leveret
from leveret import Status

PROGRAMS = [("threads", 200), ("sim", 100), ("processes", 100)]  # of 40 steps: 20 s in all
SHRINKS = os.environ.get("LEVERET_SHRINK") == "1"


class Exercise(Submits):
    """All steps of a program, and its end."""

    # Waiting.

    @rule(n=numbers, policy=policies)
    def wait(self, n: int, policy: str | None) -> None:
        task = self.free_task(n)
        if task is not None:
            self.say("wait", n, policy)
            self.world.open_gates()
            self.world.collect(task, self.policy(policy))

    @rule(n=numbers, policy=policies, timeout=st.sampled_from([0, 1e-4, 2e-3]))
    def wait_for_a_time(self, n: int, policy: str | None, timeout: float) -> None:
        task = self.free_task(n)
        if task is None or task.ticket is None:
            return
        self.say("wait for", n, policy, timeout)
        was_done, was_held = task.ticket.done(), task.is_held()
        begin = time.monotonic()
        try:
            self.world.collect(task, self.policy(policy), timeout)
        except leveret.TimeoutError:
            assert not was_done, "it was there before"
            assert time.monotonic() - begin >= timeout
        else:
            assert not was_held, "it has not been let"

    @rule(some=st.lists(numbers, min_size=1, max_size=5), policy=policies)
    def wait_any(self, some: list[int], policy: str | None) -> None:
        tasks = self.some_tasks(some)
        if not tasks:
            return
        self.say("wait any", some, policy)
        self.world.open_gates()
        tickets = [task.ticket for task in tasks if task.ticket is not None]
        found = leveret.wait_any(tickets, LIMIT, self.policy(policy))
        task = next(task for task in tasks if task.ticket is found)
        assert found.done()
        if task.waiting == 0:
            self.world.collect(task, timeout=0)

    @rule(some=st.lists(numbers, max_size=5), policy=policies, how=st.booleans())
    def wait_for_several(self, some: list[int], policy: str | None, how: bool) -> None:
        tasks = [task for task in self.some_tasks(some) if task.waiting == 0]
        self.say("wait all", some, policy, how)
        self.world.open_gates()
        tickets = [task.ticket for task in tasks if task.ticket is not None]
        if how:
            found = list(leveret.as_completed(tickets, LIMIT, self.policy(policy)))
            assert len(found) == len(tickets) and set(found) == set(tickets)
        else:
            with contextlib.suppress(leveret.TaskFailed, leveret.Cancelled):
                leveret.wait_all(tickets, LIMIT, self.policy(policy))
        for task in tasks:
            self.world.collect(task, timeout=0)

    @precondition(lambda self: self.is_open())
    @rule()
    def wait_for_completion(self) -> None:
        self.say("wait for completion")
        self.world.open_gates()
        self.join_threads()
        self.world.wait_for_all()

    @rule(n=numbers)
    def look(self, n: int) -> None:
        task = self.free_task(n)
        if task is None or task.ticket is None:
            return
        self.say("look", n)
        is_held = task.is_held()
        assert not (task.ticket.done() and is_held)
        assert "leveret.Ticket" in repr(task.ticket)
        if task.ticket.done():
            self.world.collect(task, timeout=0)
        else:
            assert task.ticket.status_code == Status.PENDING

    # Cancelling and dropping.

    @rule(n=numbers)
    def cancel(self, n: int) -> None:
        task = self.free_task(n)
        if task is None or task.ticket is None:
            return
        self.say("cancel", n)
        is_behind = not task.may_be_cancelled and any(t.is_held() for t in task.after)
        may = task.ticket.cancel()
        assert may or not is_behind, "it cannot have begun"
        task.may_be_cancelled = task.may_be_cancelled or may
        task.must_not_run = task.must_not_run or is_behind

    @rule(n=numbers)
    def drop(self, n: int) -> None:
        task = self.free_task(n)
        if task is not None:
            self.say("drop", n)
            self.world.drop(task)

    # Other threads.

    @precondition(lambda self: self.machine != "sim")
    @rule(some=st.lists(numbers, min_size=1, max_size=4), how=st.integers(0, 3), policy=policies)
    def wait_elsewhere(self, some: list[int], how: int, policy: str | None) -> None:
        """Another thread waits for the same tickets as this one, maybe."""
        tasks = self.some_tasks(some)
        if not tasks or len(self.threads) >= 3:
            return
        self.say("wait elsewhere", some, how, policy)
        for task in tasks:
            task.waiting += 1
        given = [(task, task.ticket) for task in tasks if task.ticket is not None]
        arguments = (given, how, self.policy(policy))
        thread = threading.Thread(target=self.wait_in_thread, args=arguments)
        thread.start()
        self.threads.append((thread, tasks))

    def wait_in_thread(
        self, given: list[tuple[Task, leveret.Ticket]], how: int, policy: Any
    ) -> None:
        try:
            tickets = [ticket for _, ticket in given]
            if how == 0:
                assert leveret.wait_any(tickets, LIMIT, policy) in tickets
            elif how == 1:
                assert set(leveret.as_completed(tickets, LIMIT, policy)) == set(tickets)
            elif how == 2:
                with contextlib.suppress(leveret.TaskFailed, leveret.Cancelled):
                    leveret.wait_all(tickets, LIMIT, policy)
            for task, ticket in given:
                try:
                    self.news.put((task, None, ticket.result(LIMIT, policy)))
                except leveret.LeveretError as error:  # noqa: PERF203
                    self.news.put((task, error, None))
        except BaseException as error:
            self.errors.append(error)

    # Ends.

    @precondition(lambda self: self.machine != "processes" and self.is_open())
    @rule(cancel=st.booleans())
    def close(self, cancel: bool) -> None:
        self.say("close", cancel)
        self.join_threads()
        self.world.close(cancel)
        with pytest.raises(leveret.Closed):
            self.runtime.submit(NULL)
        with pytest.raises(leveret.Closed):
            self.runtime.submit_bulk(NULL, count=2)
        self.world.close(cancel)

    @invariant()
    def counters_make_sense(self) -> None:
        if hasattr(self, "world"):
            counters = self.runtime.counters()
            assert counters["completed"] <= counters["submitted"]
            assert counters["bad_filters"] == 0
            self.is_right = True

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                self.end()
                self.is_right = True
        finally:
            self.watchdog.cancel()
            for number in [n for n, world in self.kept.items() if world is self.world]:
                if not self.is_right:  # it may not be what it should be
                    self.kept.pop(number).runtime.close(LIMIT, True)
            del self.world

    def end(self) -> None:
        if not self.is_right:
            print("this program fails:", *self.steps, sep="\n  ")
        self.say("end")
        self.world.open_gates()
        self.join_threads()
        if self.machine != "processes":
            self.world.close(False)
            return
        self.runtime.set_filters(())
        self.world.wait_for_all()
        self.world.check_all()
        self.world.forget()


def left() -> Counter[str]:
    """Threads and descriptors of this process."""
    found = Counter({"thread": len(list(Path("/proc/self/task").iterdir()))})
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one by which the folder is read
            found[re.sub(r"\d+", "", str(file.readlink()))] += 1
    return found


@contextlib.contextmanager
def nothing_left(machine: str) -> Iterator[None]:
    """Threads leave the kernel's list a moment after they have been joined."""
    leveret.shared_array(1)  # the heap's file stays open
    leveret.Runtime(machine, workers=1).close()
    before = left()
    yield
    gc.collect()  # a runtime keeps files until nobody holds it or one of its tickets
    end = time.monotonic() + LIMIT
    while left() - before and time.monotonic() < end:
        rest(0.001)
    # What tests before have left to the collector may be gone by now.
    assert not left() - before, "of what there is more"


def run_alone(request: pytest.FixtureRequest) -> None:
    """Runs the test in a process of its own: what other tests keep would count as left."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, f"{__file__}::{request.node.name}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        check=False,
        env={**environment, "LEVERET_ALONE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("machine", "programs"), PROGRAMS)
def test_exercise(
    machine: str, programs: int, library: Path, request: pytest.FixtureRequest
) -> None:
    if not works(machine):
        pytest.skip(f"the machine {machine} does not work here")
    if "LEVERET_ALONE" not in os.environ:
        return run_alone(request)
    number = int(os.environ.get("LEVERET_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LEVERET_SEED={number}")
    kept: dict[int, World] = {}
    capture: Any = request.config.pluginmanager.getplugin("capturemanager")
    members = {
        "natives": Natives(library),
        "machine": machine,
        "kept": kept,
        "uncapture": staticmethod(capture.suspend_global_capture),
    }
    chosen = seed(number)(type("Exercise", (Exercise,), members))
    with nothing_left(machine):
        try:
            run_state_machine_as_test(
                chosen,
                settings=settings(
                    max_examples=programs * (50 if DEEP else 1),
                    stateful_step_count=40,
                    deadline=None,
                    database=None,
                    phases=(Phase.generate, Phase.shrink) if SHRINKS else (Phase.generate,),
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            while kept:
                kept.popitem()[1].runtime.close(LIMIT, True)


def test_what_was_cancelled_and_dropped_is_not_predicted(library: Path) -> None:
    members = {
        "natives": Natives(library),
        "machine": "threads",
        "kept": {},
        "uncapture": staticmethod(lambda: None),
    }
    for _ in range(10):  # whether it was in time for the cancel is the runtime's affair
        program = type("Directed", (Exercise,), members)()
        program.open(
            number=0, workers=1, tickets=16, staging="auto", wait="park", full="help", depth=0,
            spin_ns=0, dice_threshold=0, contexts=0, nest_max=1,
        )  # fmt: skip
        program.make_place(rows=4, columns=4, gap=3, is_shared=False)
        program.submit_gate()  # what follows waits
        program.submit_fill(n=0, value=1.0, order={})
        program.cancel(n=1)
        program.drop(n=1)
        program.submit_sum(n=0, order={}, own=False, before=[])
        program.teardown()
