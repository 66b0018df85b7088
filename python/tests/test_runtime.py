"""Opening, configuring, observing and closing a runtime."""

from __future__ import annotations

import gc
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEEP, Gate
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

import leveret

NULL, SPIN, SUM = (leveret.builtin(name) for name in ("null", "spin", "sum"))


def test_what_it_says_of_itself(machine: str) -> None:
    with leveret.Runtime(machine, workers=3) as runtime:
        assert runtime.machine == machine
        assert runtime.workers == 3
        assert repr(runtime) == f"<leveret.Runtime on '{machine}', 3 workers>"
        assert len(runtime.worker_counters()) == 4
        assert isinstance(runtime.now_ns(), int)
    assert runtime.closed
    assert repr(runtime) == "<leveret.Runtime, closed>"


def test_default_workers() -> None:
    with leveret.Runtime() as runtime:
        assert runtime.workers == max(1, leveret.available_cores() - 1)


@pytest.mark.parametrize("staging", ["auto", "in_place", "copy"])
@pytest.mark.parametrize("wait", ["help", "park", "spin", "yield", "directed"])
def test_options(machine: str, staging: Any, wait: Any) -> None:
    for options in ({"depth": 1}, {"depth": 3, "tickets": 8, "full": "wait"}, {"pin": True}):
        with leveret.Runtime(
            machine,
            workers=1,
            staging=staging,
            wait=wait,
            **options,
        ) as runtime:
            x = np.arange(2000.0).reshape(100, 20)
            np.testing.assert_array_equal(runtime.submit_bulk(SUM, x).result(60), x.sum(axis=1))
            assert runtime.submit(SUM, x[:50, :7]).result(60) == x[:50, :7].sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"staging": "magic"}, "auto, in_place, copy"),
        ({"wait": ""}, "help, park, spin"),
        ({"full": "drop"}, "help, wait, fail"),
        ({"staging": 3}, "string"),
        ({"workers": 2**40}, "workers"),
        ({"workers": -1}, "worker"),
        ({"workers": 10**9}, "worker"),
        ({"tickets": -1}, "tickets"),
        ({"tickets": 2**32}, "tickets"),
        ({"tickets": 2**70}, "tickets"),
        ({"local_store_bytes": -4}, "local_store_bytes"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        leveret.Runtime(**options)


def test_options_of_a_wrong_type() -> None:
    with pytest.raises(TypeError):
        leveret.Runtime(workers="two")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        leveret.Runtime(workers=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        leveret.Runtime(colour="red")  # type: ignore[call-arg]


def test_a_machine_that_is_not_there() -> None:
    with pytest.raises(leveret.LeveretError, match="abacus") as caught:
        leveret.Runtime("abacus")
    assert caught.value.status in (leveret.Status.UNAVAILABLE, leveret.Status.BAD_CONFIG)


def test_machines() -> None:
    names = [m.name for m in leveret.machines()]
    assert "threads" in names
    assert len(names) == len(set(names))
    assert all(m.unavailable is None or m.unavailable for m in leveret.machines())


def test_a_full_runtime_refuses_when_asked_to(gate: Gate) -> None:
    with leveret.Runtime(workers=1, tickets=4, full="fail") as runtime:
        kept = [gate.submit(runtime)]
        with pytest.raises(leveret.WouldBlock):
            for _ in range(100):
                kept.append(runtime.submit(NULL, after=kept[0]))
        gate.open()
        leveret.wait_all(kept, 30)


def test_a_small_runtime_takes_many_tasks(machine: str) -> None:
    with leveret.Runtime(machine, workers=2, tickets=8) as runtime:
        for _ in range(500):
            runtime.submit(SUM, np.ones(3))
        runtime.submit_bulk(NULL, count=5000).wait(60)


def test_filters(runtime: leveret.Runtime) -> None:
    for names in ((), ["fifo"], "priority", ["locality", "by_procedure"], ["fifo"] * 8, ()):
        runtime.set_filters(names)
        tickets = [runtime.submit(NULL, priority=i, key=i % 3) for i in range(50)]
        leveret.wait_all(tickets, 60)
    with pytest.raises(ValueError, match="fifo, priority, locality, by_procedure"):
        runtime.set_filters(["random"])
    with pytest.raises(leveret.LeveretError, match="8"):
        runtime.set_filters(["fifo"] * 9)
    with pytest.raises(TypeError, match="names of filters, not 3"):
        runtime.set_filters([3])  # type: ignore[list-item]
    assert runtime.counters()["bad_filters"] == 0


def test_mutexes_end(threads: leveret.Runtime) -> None:
    mutexes = [threads.mutex() for _ in range(256)]
    with pytest.raises(leveret.InvalidArgument, match="256"):
        threads.mutex()
    with pytest.raises(leveret.InvalidArgument):
        threads.submit(NULL, locks=mutexes[:5])
    threads.submit(NULL, locks=mutexes[:4]).wait(30)


def test_counters(runtime: leveret.Runtime) -> None:
    before = runtime.counters()
    assert set(before) == set(leveret.Counters.__annotations__)
    leveret.wait_all([runtime.submit(NULL) for _ in range(100)], 60)
    runtime.wait_for_completion(60)  # a task is counted after its waiters are told
    after = runtime.counters()
    assert after["submitted"] - before["submitted"] == 100
    assert after["completed"] - before["completed"] == 100
    assert after["failed"] == 0
    assert sum(w["completed"] for w in runtime.worker_counters()) == after["completed"]


def test_write_trace(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with leveret.Runtime(machine, workers=2, trace_events=4096) as runtime:
        runtime.submit_bulk(SPIN, [(1000,)] * 50).wait(60)
        runtime.write_trace(path)
        with pytest.raises(leveret.LeveretError, match="cannot write"):
            runtime.write_trace(tmp_path / "missing" / "trace.json")
    events = json.loads(path.read_text())["traceEvents"]
    executed = [e for e in events if e.get("cat") == "execute"]
    assert len(executed) == 50
    assert {e["name"] for e in executed} == {"leveret.spin"}
    names = [e["args"]["name"] for e in events if e.get("name") == "thread_name"]
    assert len(names) >= 2


def test_no_trace(threads: leveret.Runtime, tmp_path: Path) -> None:
    with pytest.raises(leveret.Unavailable, match="trace_events > 0"):
        threads.write_trace(tmp_path / "trace.json")


def test_sim_repeats_itself() -> None:
    def run(seed: int) -> tuple[int, int]:
        with leveret.Runtime("sim", workers=4, seed=seed, trace_events=4096) as runtime:
            runtime.submit_bulk(NULL, count=100).wait()
            return runtime.trace_hash(), runtime.now_ns()

    if not any(m.name == "sim" and m.unavailable is None for m in leveret.machines()):
        pytest.skip("the machine sim does not work here")
    assert run(7) == run(7)
    assert run(7)[0] != 0


def test_closing(machine: str) -> None:
    runtime = leveret.Runtime(machine, workers=1)
    ticket = runtime.submit(NULL)
    runtime.close()
    runtime.close()
    ticket.wait()
    with pytest.raises(leveret.Closed):
        runtime.submit(NULL)
    with pytest.raises(leveret.Closed):
        runtime.submit_bulk(NULL, count=3)
    with runtime:
        pass


def test_closing_takes_its_time(gate: Gate) -> None:
    runtime = leveret.Runtime(workers=1, wait="park")
    ticket = gate.submit(runtime)
    with pytest.raises(leveret.TimeoutError):
        runtime.close(0.05)
    assert not runtime.closed
    with pytest.raises(leveret.Closed):
        runtime.submit(NULL)
    gate.open()
    runtime.close(30)
    ticket.wait()


def test_an_exception_cancels_what_waits(gate: Gate) -> None:
    class Oops(Exception):
        pass

    runtime = leveret.Runtime(workers=1, wait="park")
    with pytest.raises(Oops), runtime:
        running = gate.submit(runtime)
        waiting = runtime.submit(NULL, after=running)
        gate.open()
        raise Oops
    assert runtime.closed
    assert waiting.done()


def test_a_forgotten_runtime_warns() -> None:
    runtime = leveret.Runtime(workers=1)
    with pytest.warns(ResourceWarning, match="not closed"):
        del runtime
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runtime = leveret.Runtime(workers=1)
        runtime.close()
        del runtime
        gc.collect()


def test_status_codes_are_those_of_the_library() -> None:
    from leveret import _core

    for status in leveret.Status:
        assert _core.status_name(status) == status.name.lower()


class AnyOrder(RuleBasedStateMachine):
    """Submits, waits, cancels, drops and closes in any order: each task ends exactly once."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.runtime = leveret.Runtime(workers=2, tickets=64)
        self.data = np.arange(64.0)
        self.expected: dict[leveret.Ticket, float | None] = {}
        self.cancelled: set[leveret.Ticket] = set()

    def keep(self, ticket: leveret.Ticket, value: float | None) -> leveret.Ticket:
        self.expected[ticket] = value
        return ticket

    @precondition(lambda self: not self.runtime.closed)
    @rule(target=tickets, n=st.integers(0, 64))
    def submit_sum(self, n: int) -> leveret.Ticket:
        return self.keep(self.runtime.submit(SUM, self.data[:n]), self.data[:n].sum())

    @precondition(lambda self: not self.runtime.closed)
    @rule(target=tickets, before=st.lists(tickets, max_size=4))
    def submit_after(self, before: list[leveret.Ticket]) -> leveret.Ticket:
        ticket = self.keep(self.runtime.submit(NULL, after=before), None)
        if any(t in self.cancelled for t in before):
            self.cancelled.add(ticket)
        return ticket

    @precondition(lambda self: not self.runtime.closed)
    @rule(target=tickets, n=st.integers(0, 50))
    def submit_many(self, n: int) -> leveret.Ticket:
        return self.keep(self.runtime.submit_bulk(NULL, count=n), None)

    @rule(ticket=tickets)
    def cancel(self, ticket: leveret.Ticket) -> None:
        ticket.cancel()
        self.cancelled.add(ticket)

    def check(self, ticket: leveret.Ticket) -> None:
        try:
            assert ticket.result(30) == self.expected[ticket]
        except (leveret.Cancelled, leveret.DependencyFailed):
            assert self.cancelled
        assert ticket.done()

    @rule(ticket=tickets)
    def wait(self, ticket: leveret.Ticket) -> None:
        self.check(ticket)

    @rule(ticket=consumes(tickets))
    def drop(self, ticket: leveret.Ticket) -> None:
        del self.expected[ticket]
        self.cancelled.discard(ticket)
        self.cancelled.add(self.runtime.submit(NULL) if not self.runtime.closed else ticket)

    @rule(some=st.lists(tickets, min_size=1, max_size=5))
    def wait_any(self, some: list[leveret.Ticket]) -> None:
        self.check(leveret.wait_any(some, 30))

    @rule()
    def wait_for_completion(self) -> None:
        try:
            self.runtime.wait_for_completion(30)
        except leveret.LeveretError as error:
            assert self.cancelled or error.status == leveret.Status.CLOSED

    @rule(cancel=st.booleans())
    def close(self, cancel: bool) -> None:
        if cancel:
            self.cancelled.update(self.expected)
        self.runtime.close(30, cancel_waiting=cancel)

    @invariant()
    def counters_make_sense(self) -> None:
        counters = self.runtime.counters()
        assert counters["completed"] <= counters["submitted"]

    def teardown(self) -> None:
        self.runtime.close(30)
        for ticket in self.expected:
            self.check(ticket)


AnyOrder.TestCase.settings = settings(
    max_examples=2000 if DEEP else 100, stateful_step_count=30, deadline=None
)
test_any_order = AnyOrder.TestCase


def test_a_failure_among_many_before_is_told_once(machine: str, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    with leveret.Runtime(machine, workers=2) as runtime:
        first = [runtime.submit(NULL) for _ in range(70)]
        first.append(runtime.submit(fail, 3, after=first[0]))
        last = runtime.submit(NULL, after=first)
        with pytest.raises(leveret.DependencyFailed):
            last.wait(60)
        with pytest.raises(leveret.TaskFailed):
            first[-1].wait(60)
        leveret.wait_all(first[:-1], 60)
