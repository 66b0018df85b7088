"""Plain calls of submit(), wait() and result() go a short way: as the long one, but quicker."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import leveret
from leveret import _core

NULL = leveret.builtin("null")
LONG = getattr(_core, "_bound")  # noqa: B009  (the methods behind the quick ones)


def _outcome(submit: Callable[..., Any], *args: Any) -> tuple[str, object]:
    try:
        return "result", submit(*args).result(60)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.fixture
def procedures(library: Path) -> list[leveret.Procedure]:
    return [
        NULL,
        leveret.builtin("sum"),
        leveret.load(library, "two_results", "f8, result f8, result i4"),
        leveret.load(library, "assign_or_not", "i4, result f8, out f8, count(2)"),
        leveret.load(library, "block_sum", "in f8, rows(0), count(0), stride(0), result f8"),
    ]


def test_both_ways_give_the_same(machine: str, procedures: list[leveret.Procedure]) -> None:
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    values: list[Callable[[], object]] = [
        lambda: 1,
        lambda: 2.5,
        lambda: np.int32(1),
        lambda: np.ones(rng.randrange(40)),
        lambda: np.ones((4, 6))[1:, ::2],
        lambda: leveret.sliced(np.ones(30)),
        lambda: np.ones(3, "f4"),
        lambda: None,
        lambda: 1 << 70,
        lambda: NULL,
        lambda: [1.0],
    ]
    with leveret.Runtime(machine, workers=2, tickets=16) as runtime:
        for i in range(300):
            procedure = rng.choice(procedures)
            args = [rng.choice(values)() for _ in range(rng.randrange(4))]
            if rng.randrange(20) != 0:
                args.insert(0, procedure)
            quick = _outcome(runtime.submit, *args)
            long = _outcome(LONG["Runtime.submit"], runtime, *args)
            assert quick == long, f"seed {seed}, call {i}: {args}"


def test_ways_to_call_that_are_not_plain(threads: leveret.Runtime) -> None:
    first: Any = threads.submit(NULL)
    submit: Any = threads.submit
    assert threads.submit(procedure=NULL, after=first).result(timeout=60) is None
    threads.submit(NULL, priority=3, key=1).wait(60)
    for call in (
        submit,
        lambda: submit(NULL, nothing=1),
        lambda: first.wait(1, "help", 3),
        lambda: first.result(nothing=1),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.filterwarnings("ignore")  # nanobind tells of each such call
def test_what_was_not_made_is_refused() -> None:
    bare = leveret.Runtime.__new__(leveret.Runtime)
    ticket = _core.Ticket.__new__(_core.Ticket)
    for call in (lambda: bare.submit(NULL), ticket.wait, ticket.result):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pytest.raises(TypeError):
        leveret.Runtime.submit(3, NULL)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _core.Ticket.wait(NULL)  # type: ignore[arg-type]


def test_without_a_free_ticket_others_go_on() -> None:
    """Who waits for a ticket has given up the GIL."""
    with leveret.Runtime(workers=1, tickets=16, full="wait") as runtime:

        def stream() -> None:
            leveret.wait_all([runtime.submit(NULL) for _ in range(10)])
            for _ in range(3_000):
                runtime.submit(NULL)

        both = [threading.Thread(target=stream) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join(300)
        assert not any(each.is_alive() for each in both)


def test_after_close_and_with_filters(machine: str) -> None:
    runtime = leveret.Runtime(machine, workers=1)
    runtime.set_filters("fifo")
    assert runtime.submit(NULL).result() is None
    runtime.close()
    with pytest.raises(leveret.Closed):
        runtime.submit(NULL)


def test_a_ticket_counts_once_whatever_iterates(threads: leveret.Runtime) -> None:
    tickets = [threads.submit(NULL) for _ in range(5)]

    def twice() -> Iterator[leveret.Ticket]:
        for each in tickets:
            yield each
            leveret.wait_all([tickets[0], each, each])  # in the middle of another such call
            yield each
            yield tickets[0]

    leveret.wait_all(twice())
    assert leveret.wait_any(twice()) in tickets
    threads.submit(NULL, after=twice()).wait()


def test_a_failure_counts_once_whatever_iterates(threads: leveret.Runtime, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    tickets = [threads.submit(fail, 7) for _ in range(3)]

    def again() -> Iterator[leveret.Ticket]:
        for each in (*tickets, *tickets):
            yield each
            leveret.wait_any([each, each])

    with pytest.raises(leveret.TaskFailed) as caught:
        leveret.wait_all(again())
    assert caught.value.failures == 3
