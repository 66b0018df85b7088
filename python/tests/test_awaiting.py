"""Tickets of native tasks on an event loop: `await ticket`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Gate, descriptors, needs_processes, wait_until

import leveret
from leveret import Runtime, builtin


async def awaited(ticket: leveret.Ticket) -> object:
    return await ticket


async def turn() -> None:
    """Lets everything that is ready go on."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


def test_results_on_every_machine(runtime: Runtime) -> None:
    async def check() -> None:
        array = np.arange(1000.0)
        assert await runtime.submit(builtin("sum"), array) == array.sum()
        tickets = [runtime.submit(builtin("sum"), array[:n]) for n in range(1, 40)]
        assert await asyncio.gather(*tickets) == [array[:n].sum() for n in range(1, 40)]
        again = runtime.submit(builtin("null"))
        assert await again is None
        assert await again is None  # it remembers
        many = runtime.submit_bulk(builtin("null"), count=100)
        assert await many is None

    asyncio.run(check())
    asyncio.run(check())  # on another loop


def test_the_loop_goes_on_meanwhile(threads: Runtime, gate: Gate) -> None:
    async def check() -> None:
        held = gate.submit(threads)
        null = threads.submit(builtin("null"), after=held)  # without memory of its own
        waiting = [asyncio.ensure_future(awaited(each)) for each in (held, null) * 3]
        for _ in range(10):
            await turn()
        assert not any(each.done() for each in waiting)
        gate.open()
        await asyncio.wait_for(asyncio.gather(*waiting), 60)

    asyncio.run(check())


def test_failures_are_raised(library: Path, threads: Runtime) -> None:
    fails = leveret.load(library, "fail_with", "i4 -> int")

    async def check() -> None:
        with pytest.raises(leveret.TaskFailed, match="fail_with"):
            await threads.submit(fails, 7)
        with pytest.raises(leveret.DependencyFailed):
            await threads.submit(builtin("null"), after=threads.submit(fails, 7))

    asyncio.run(check())


def test_a_cancelled_await_takes_the_task_back(threads: Runtime, gate: Gate) -> None:
    async def check() -> None:
        held = [gate.submit(threads) for _ in range(2)]
        waiting = threads.submit(builtin("null"), after=held[1])
        for ticket in (waiting, held[0]):
            task = asyncio.ensure_future(awaited(ticket))
            await turn()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        kept = asyncio.ensure_future(awaited(held[1]))
        await turn()
        shielded = asyncio.ensure_future(asyncio.shield(kept))
        await turn()
        shielded.cancel()
        gate.open()
        assert await kept is None
        with pytest.raises(leveret.Cancelled):
            await waiting
        with contextlib.suppress(
            leveret.Cancelled
        ):  # it had begun, or not; threads cannot be ended
            assert await held[0] is None

    asyncio.run(check())


@needs_processes
def test_a_cancelled_await_ends_a_process() -> None:
    with Runtime("processes", workers=1) as runtime:

        async def check() -> None:
            endless = runtime.submit(builtin("spin"), 1 << 62)
            task = asyncio.ensure_future(awaited(endless))
            await turn()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(leveret.Cancelled):
                await endless
            assert await runtime.submit(builtin("null")) is None

        asyncio.run(check())


async def give_up(ticket: leveret.Ticket) -> None:
    task = asyncio.ensure_future(awaited(ticket))
    await turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_await_that_was_cancelled_is_no_failure_at_the_end(threads: Runtime, gate: Gate) -> None:
    held = gate.submit(threads)
    for _ in range(50):
        asyncio.run(give_up(threads.submit(builtin("null"), after=held)))  # its ticket is dropped
    gate.open()
    held.wait()
    threads.wait_for_completion()


def test_another_failure_of_a_task_that_was_given_up_is_told(
    threads: Runtime, library: Path
) -> None:
    flags = np.zeros(2, np.int32)
    fails = threads.submit(leveret.load(library, "fail_when_told", "inout i4 -> int"), flags)
    wait_until(lambda: flags[1] == 1)
    asyncio.run(give_up(fails))  # it runs to its end
    del fails
    flags[0] = 1
    with pytest.raises(leveret.TaskFailed, match="dropped"):
        threads.wait_for_completion()


@needs_processes
def test_an_await_that_ended_a_process_is_no_failure_at_the_end() -> None:
    with Runtime("processes", workers=1) as runtime:
        asyncio.run(give_up(runtime.submit(builtin("spin"), 1 << 62)))


def test_loops_that_end_leave_nothing(threads: Runtime, gate: Gate) -> None:
    def give_up() -> None:
        """As a program does that closes a loop in which something waits."""
        loop = asyncio.new_event_loop()
        task: Any = loop.create_task(awaited(held))
        task._log_destroy_pending = False
        loop.run_until_complete(turn())
        assert not task.done()
        loop.close()

    held = gate.submit(threads)
    give_up()
    gc.collect()
    before = descriptors()
    for _ in range(20):
        give_up()
    gc.collect()
    assert descriptors() <= before + 20  # bells that the task will ring
    gate.open()
    held.wait(60)
    threads.wait_for_completion(60)
    gc.collect()
    wait_until(lambda: descriptors() <= before)
