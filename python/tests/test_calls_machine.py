"""ProcessExecutor: random programs whose functions have state give what a fresh copy would give."""

from __future__ import annotations

import concurrent.futures as cf
import functools
from typing import Any

import numpy as np
import pytest
from conftest import DEEP, needs_processes
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes

small = st.integers(0, 9)


class Failed(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{number}{text}")


class Counter:
    """A method, and a callable object, that change what they belong to."""

    def __init__(self) -> None:
        self.n = 0
        self.seen: list[int] = []

    def add(self, i: int) -> int:
        self.n += i
        self.seen.append(i)
        return self.n * 100 + len(self.seen)

    def __call__(self, i: int) -> int:
        return self.add(i)

    def fail(self, i: int) -> int:
        self.n += 1
        raise Failed(self.n, "!")


def pop(given: dict[int, int], i: int) -> int:
    return given.popitem()[1] + i


def fill(array: Any, value: int) -> int:
    array += value
    return int(array.sum())


CODE = """
def f(i, seen=[]):
    global n
    n += 1
    seen.append(i)
    return (n, len(seen), g(i))
def g(i): return K * i
M, w = object(), [0]
o = {"w": w}
def h(i, mark=M, *, table=o): return (i, o["w"] is w, mark is M, table is o)
"""


class Counted:
    """What f gives: its global lives in each worker, and is set anew when the host changes it."""

    def __init__(self, machine: Machine, first: int, product: int) -> None:
        self.machine = machine
        self.first = first  # if the global was set for this call
        self.product = product

    def __eq__(self, got: object) -> bool:
        assert isinstance(got, tuple)
        most = self.first + self.machine.calls_of_f
        return self.first <= got[0] <= most and got[1:] == (1, self.product)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"({self.first} or more, 1, {self.product})"


class Machine(RuleBasedStateMachine):
    @initialize(workers=st.integers(1, 2))
    def open(self, workers: int) -> None:
        self.workers = workers
        self.pool = ProcessExecutor(workers)
        self.futures: list[tuple[cf.Future[Any], Any]] = []
        self.counter = Counter()
        self.space: dict[str, Any] = {"__name__": "__main__", "n": 5, "K": 1}
        exec(CODE, self.space)
        self.array = np.zeros(3000)
        self.shared = leveret.shared_array(8)
        self.calls_of_f = 0
        self.is_open = True

    def functions(self) -> list[tuple[Any, Any]]:
        """Functions, and what each gives for i now."""
        n, seen = self.counter.n, len(self.counter.seen)
        k, count = self.space["K"], self.space["n"]
        total = int(self.array.sum())
        held = [n]
        is_one = self.space["o"]["w"] is self.space["w"]
        is_table = self.space["h"].__kwdefaults__["table"] is self.space["o"]

        def closure(i: int) -> int:
            held[0] += i
            return held[0]

        return [
            (self.counter.add, lambda i: (n + i) * 100 + seen + 1),
            (self.counter, lambda i: (n + i) * 100 + seen + 1),
            (closure, lambda i: n + i),
            (functools.partial(pop, {1: n}), lambda i: n + i),
            (functools.partial(fill, self.array), lambda i: total + 3000 * i),
            (self.space["f"], lambda i: Counted(self, count + 1, k * i)),
            (self.space["g"], lambda i: k * i),
            (self.space["h"], lambda i: (i, is_one, True, is_table)),
            (abs, lambda i: i),
        ]

    open_only = precondition(lambda self: self.is_open)

    @open_only
    @rule(which=st.integers(0, 8), i=small, count=st.integers(1, 3))
    def submit(self, which: int, i: int, count: int) -> None:
        function, expected = self.functions()[which]
        self.calls_of_f += count if which == 5 else 0
        for _ in range(count):
            self.futures.append((self.pool.submit(function, i), expected(i)))

    @open_only
    @rule(
        which=st.integers(0, 8), count=st.integers(0, 40), chunksize=st.sampled_from([None, 1, 6])
    )
    def map(self, which: int, count: int, chunksize: int | None) -> None:
        function, expected = self.functions()[which]
        self.calls_of_f += count if which == 5 else 0
        got = self.pool.map(function, range(count), chunksize=chunksize)
        assert list(got) == [expected(i) for i in range(count)]

    @open_only
    @rule(bad=small, chunksize=st.sampled_from([None, 1, 4]))
    def map_until_one_fails(self, bad: int, chunksize: int | None) -> None:
        counter, text = Counter(), str(self.counter.n + 1)
        counter.n = self.counter.n

        def call(i: int) -> int:
            return counter.fail(i) if i == bad else i

        got = self.pool.map(call, range(10), chunksize=chunksize)
        assert [next(got) for _ in range(bad)] == list(range(bad))
        with pytest.raises(Failed, match=rf"^{text}!$"):
            next(got)

    @open_only
    @rule(at=st.integers(0, 7), value=small)
    def write_shared(self, at: int, value: int) -> None:
        view = self.shared[::-1][at : at + 1]

        def write() -> None:
            view[:] = value

        self.pool.submit(write).result(60)
        assert self.shared[7 - at] == value

    @rule(value=small)
    def change(self, value: int) -> None:
        self.counter.n += value
        self.array = self.array.copy()  # arguments must not be changed until their calls are done
        self.array[0] += value
        self.space["K"] = value
        self.space["n"] += 1

    @rule(value=small, is_one=st.booleans(), is_new=st.booleans())
    def relate(self, value: int, is_one: bool, is_new: bool) -> None:
        """Globals that have a list in common, or two that are equal."""
        self.space["w"] = [value]
        table = {"w": self.space["w"] if is_one else [value]}
        if is_new:
            self.space["o"] = table
        else:
            self.space["o"].update(table)

    @rule(value=small)
    def define_again(self, value: int) -> None:
        exec(f"def g(i): return K * i + {value} - {value}", self.space)

    @rule(which=st.integers(0, 1000))
    def cancel(self, which: int) -> None:
        if self.futures:
            future = self.futures[which % len(self.futures)][0]
            if future.cancel():
                assert future.cancelled()

    @rule()
    def wait(self) -> None:
        while self.futures:
            future, expected = self.futures.pop()
            assert future.cancelled() or future.result(60) == expected

    @open_only
    @rule(cancels=st.booleans(), waits=st.booleans())
    def shut_down(self, cancels: bool, waits: bool) -> None:
        self.pool.shutdown(waits, cancel_futures=cancels)
        self.is_open = False
        with pytest.raises(leveret.Closed):
            self.pool.submit(abs, 1)

    @precondition(lambda self: not self.is_open)
    @rule()
    def open_another(self) -> None:
        self.pool = ProcessExecutor(self.workers)
        self.is_open = True

    @invariant()
    def nothing_here_was_changed_by_calls(self) -> None:
        if hasattr(self, "counter"):
            assert self.counter.seen == [] and self.space["f"].__defaults__ == ([],)

    def teardown(self) -> None:
        if hasattr(self, "pool"):
            self.pool.shutdown()
            self.wait()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=200 if DEEP else 6,
    stateful_step_count=50 if DEEP else 14,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
