"""What tasks and runtimes report: once each, in Python's words, and never lost."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

import pytest
from conftest import needs_processes

import leveret

NULL = leveret.builtin("null")


@pytest.fixture
def failed(threads: leveret.Runtime, library: Path) -> leveret.Ticket:
    """A ticket whose failure was collected."""
    ticket = threads.submit(leveret.load(library, "fail_with", "i4 -> int"), 3)
    with pytest.raises(leveret.TaskFailed):
        ticket.wait(30)
    return ticket


def test_a_dropped_task_that_failed_at_once_is_reported(
    threads: leveret.Runtime, failed: leveret.Ticket
) -> None:
    for _ in range(2):
        threads.submit(NULL, after=failed)
    gc.collect()
    with pytest.raises(leveret.DependencyFailed, match="dropped") as caught:
        threads.wait_for_completion(30)
    assert caught.value.failures == 2
    threads.wait_for_completion(30)  # once


def test_a_task_that_failed_at_once_and_was_waited_for_is_not(
    threads: leveret.Runtime, failed: leveret.Ticket
) -> None:
    ticket = threads.submit(NULL, after=failed)
    with pytest.raises(leveret.DependencyFailed):
        ticket.wait(30)
    assert leveret.wait_any(threads.submit(NULL, after=failed)).status_code
    with pytest.raises(leveret.DependencyFailed):
        leveret.wait_all([threads.submit(NULL, after=failed)])
    del ticket
    gc.collect()
    threads.wait_for_completion(30)


def test_it_counts_with_others_that_failed(
    threads: leveret.Runtime, failed: leveret.Ticket, library: Path
) -> None:
    threads.submit(leveret.load(library, "fail_with", "i4 -> int"), 5)
    threads.submit(NULL, after=failed)
    with pytest.raises(leveret.TaskFailed) as caught:
        threads.wait_for_completion(30)
    assert caught.value.failures == 2 and caught.value.code == 5


@needs_processes
def test_the_end_of_a_worker_is_told_in_pythons_words() -> None:
    abort = leveret.procedure(ctypes.CDLL(None).abort, "", name="abort")
    spin = leveret.builtin("spin")
    with leveret.Runtime("processes", workers=1, max_attempts=1, task_timeout=3) as runtime:
        with pytest.raises(leveret.Poison) as died:
            runtime.submit(abort).wait(30)
        with pytest.raises(leveret.Overran) as overran:
            runtime.submit(spin, 60 * 10**9).wait(50)
    assert str(died.value).count("procedure 'abort'") == 1 and "SIGABRT" in str(died.value)
    assert str(overran.value).count("procedure 'leveret.spin'") == 1
    assert "task_timeout" in str(overran.value) and "task_ns_max" not in str(overran.value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_attempts": 2000}, "max_attempts"),
        ({"tickets": 0}, "tickets"),
        ({"depth": 99}, "depth"),
    ],
)
def test_options_are_named_as_python_has_them(options: dict[str, int], name: str) -> None:
    with pytest.raises(leveret.LeveretError, match=f"^{name} = ") as caught:
        leveret.Runtime("threads", workers=1, **options)  # type: ignore[arg-type]
    assert "config" not in str(caught.value)


@needs_processes
def test_what_a_pool_refuses_is_no_shortage_of_memory() -> None:
    name = f"reports-{os.getpid()}"
    try:
        first = leveret.Runtime("processes", workers=1, pool=name)
    except leveret.Unavailable as error:
        pytest.skip(f"shared pools do not work here: {error}")
    with (
        first,
        pytest.raises(leveret.InvalidArgument, match="worker_memory is not that of the pool"),
    ):
        leveret.Runtime("processes", workers=1, pool=name, worker_memory=1 << 30)
