"""Python functions as native procedures: tasks that call the runtime, and wait."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

import pytest
from conftest import wait_until

import leveret
from leveret import Runtime, WouldDeadlock

spin = leveret.builtin("spin")
Body = ctypes.CFUNCTYPE(None, ctypes.c_int64)


def task(body: Callable[[int], None]) -> tuple[Any, leveret.Procedure]:
    """What must live as long as the procedure is used, and the procedure."""
    kept = Body(body)
    return kept, leveret.procedure(kept, "i8")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("wait", ["help", "park"])
def test_tasks_that_wait_find_their_calls_as_they_were(
    workers: int, wait: Literal["help", "park"]
) -> None:
    done: list[int] = []

    def body(i: int) -> None:
        mine = [i] * 20
        if i % 5:
            runtime.submit(procedure, i - 1).wait()
        runtime.submit_bulk(spin, [5000] * 4).wait()
        leveret.wait_all([runtime.submit(spin, 1000) for _ in range(3)])
        assert mine == [i] * 20
        done.append(i)

    kept, procedure = task(body)
    with Runtime(workers=workers, wait=wait) as runtime:
        for _ in range(20):
            runtime.submit_bulk(procedure, list(range(20))).wait()
    assert len(done) == 20 * 20 * 3
    assert kept


@pytest.mark.parametrize("wait", ["help", "park"])
def test_tasks_that_await_run_what_they_await(wait: Literal["help", "park"]) -> None:
    done: list[int] = []

    async def awaits() -> None:
        await runtime.submit(spin, 1000)
        tickets = [runtime.submit(spin, 1000) for _ in range(3)]
        assert await asyncio.gather(*tickets) == [None] * 3

    def body(i: int) -> None:
        asyncio.run(asyncio.wait_for(awaits(), 60))
        done.append(i)

    kept, procedure = task(body)
    with Runtime(workers=1, wait=wait) as runtime:
        leveret.wait_all([runtime.submit(procedure, i) for i in range(4)])
    assert sorted(done) == [0, 1, 2, 3]
    assert kept


def test_on_sim_they_are_refused() -> None:
    told: list[str] = []

    def body(i: int) -> None:
        with pytest.raises(WouldDeadlock, match="the interpreter cannot be left") as refused:
            runtime.submit(spin, i)
        told.append(str(refused.value))

    kept, procedure = task(body)
    with Runtime("sim", workers=2) as runtime:
        runtime.submit_bulk(procedure, [1] * 8).wait()
    assert len(told) == 8
    assert kept


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.002])
def test_one_that_runs_while_the_interpreter_ends(seconds: float) -> None:
    code = f"""
import ctypes, select, threading, leveret
has_begun = threading.Event()
@ctypes.CFUNCTYPE(None)
def body():
    has_begun.set()
    select.select([], [], [], {seconds})  # and then it needs the interpreter again
runtime = leveret.Runtime(workers=1)
ticket = runtime.submit(leveret.procedure(body, ""))
assert has_begun.wait(30)
"""
    command = [sys.executable, "-W", "ignore::ResourceWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_runtime_that_its_own_task_drops() -> None:
    code = """
import ctypes, os, select, threading, leveret
has_begun, may_drop, is_over = threading.Event(), threading.Event(), threading.Event()
@ctypes.CFUNCTYPE(None)
def body():
    has_begun.set()
    may_drop.wait(30)
    box.clear()  # as the collector does, when it finds a runtime in a cycle
    is_over.set()
box = [leveret.Runtime(workers=1)]
box[0].submit(leveret.procedure(body, ""))
assert has_begun.wait(30)
may_drop.set()
assert is_over.wait(30)
with leveret.Runtime(workers=1) as another:
    another.submit(leveret.builtin("null")).wait(30)
while len(os.listdir("/proc/self/task")) > 1:  # until the main thread has closed it
    select.select([], [], [], 0.01)
"""
    command = [sys.executable, "-W", "ignore::ResourceWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("helps", [False, True])
def test_a_task_that_closes_its_runtime_is_refused_beside_a_close(helps: bool) -> None:
    """helps: the thread that closes runs the task meanwhile."""
    is_kept, is_closing, is_told = (threading.Event() for _ in range(3))
    told: list[BaseException] = []

    def body(which: int) -> None:
        if which == 0:  # keeps the only worker
            is_kept.set()
            assert is_told.wait(60)
            return
        if not helps:
            assert is_closing.wait(60)
        try:
            runtime.close(timeout=20)
        except leveret.LeveretError as error:
            told.append(error)
        is_told.set()

    def closes() -> None:
        with contextlib.suppress(leveret.TimeoutError):
            runtime.close(timeout=60)

    kept, procedure = task(body)
    runtime = Runtime(workers=1, wait="help")
    tickets = []
    if helps:
        tickets.append(runtime.submit(procedure, 0))
        assert is_kept.wait(60)
    tickets.append(runtime.submit(procedure, 1))
    thread = threading.Thread(target=closes)
    thread.start()
    wait_until(lambda: refuses(runtime))
    is_closing.set()
    thread.join()
    assert runtime.closed
    assert [type(each) for each in told] == [WouldDeadlock]
    leveret.wait_all(tickets)
    assert kept


def refuses(runtime: Runtime) -> bool:
    try:
        runtime.submit(spin, 0)
    except leveret.Closed:
        return True
    return False
