"""Runtime: whole programs that are interrupted, or end while their threads use it."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import Gate, end_by_interrupt, needs_processes

import leveret

BEGIN = """
import signal, sys, threading
import numpy as np
import leveret
wait_for_flag = leveret.load(sys.argv[1], "wait_for_flag", "in i4 -> int")
add = leveret.load(sys.argv[1], "add_one", "inout f8, count(0)")
never = np.zeros(1, np.int32)
def told():
    print("begun", flush=True)
"""
INTERRUPTED = {
    "a_wait_in_a_block": """
with leveret.Runtime("processes", workers=1) as runtime:
    ticket = runtime.submit(wait_for_flag, never)
    told()
    ticket.wait()
""",
    "the_end_of_a_block": """
with leveret.Runtime("processes", workers=1) as runtime:
    runtime.submit(wait_for_flag, never)
    told()
""",
    "a_wait_without_a_block": """
runtime = leveret.Runtime("processes", workers=1)
ticket = runtime.submit(wait_for_flag, never)
told()
ticket.wait()
""",
    "beside_a_thread_that_waits": """
runtime = leveret.Runtime("processes", workers=1)
ticket = runtime.submit(wait_for_flag, never)
def waits():
    try:
        ticket.wait()
    except leveret.Cancelled:
        pass
threading.Thread(target=waits).start()
told()
while True:  # Python may take a signal just before a wait, which goes on then
    threading.Event().wait(0.1)
""",
    "beside_an_executor": """
executor = leveret.ProcessExecutor(1)
runtime = leveret.Runtime("processes", workers=1)
runtime.submit(wait_for_flag, never)
future = executor.submit(signal.pause)
told()
future.result()
""",
    "a_submit_without_a_ticket": """
with leveret.Runtime("processes", workers=1, tickets=1) as runtime:
    runtime.submit(wait_for_flag, never)
    told()
    runtime.submit(wait_for_flag, never)
""",
}


@needs_processes
@pytest.mark.parametrize("name", INTERRUPTED)
def test_one_interrupt_ends_it(name: str, library: Path) -> None:
    said = end_by_interrupt(BEGIN + INTERRUPTED[name], str(library))
    assert said.endswith("KeyboardInterrupt\n") and said.count("Traceback") == 1, said


def test_handlers_run_while_a_submit_waits_for_a_ticket(gate: Gate) -> None:
    with leveret.Runtime(workers=2, tickets=2, full="wait", wait="park") as runtime:
        held = [gate.submit(runtime) for _ in range(2)]
        before = signal.signal(signal.SIGALRM, lambda *_: gate.open())
        collects = threading.Thread(target=leveret.wait_all, args=(held,))
        collects.start()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            runtime.submit(leveret.builtin("null")).wait(60)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            collects.join(60)
        assert gate.flag[0] == 1


DAEMONS = {
    "submits": """
runtime = leveret.Runtime(workers=1)
def use():
    while True:
        runtime.submit(add, np.zeros(4)).wait()
""",
    "opens": """
def use():
    while True:
        with leveret.Runtime(workers=1) as runtime:
            runtime.submit(add, np.zeros(4)).wait()
""",
    "awaits": """
import asyncio
runtime = leveret.Runtime(workers=1)
async def awaits():
    while True:
        await runtime.submit(add, np.zeros(4))
def use():
    asyncio.run(awaits())
""",
}


@pytest.mark.parametrize("name", DAEMONS)
def test_daemon_threads_end_with_the_program(name: str, library: Path) -> None:
    start = """
for _ in range(4):
    threading.Thread(target=use, daemon=True).start()
threading.Event().wait(0.2)
"""
    for _ in range(3):
        command = [sys.executable, "-c", BEGIN + DAEMONS[name] + start, str(library)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)


def test_a_completion_does_not_wait_for_the_gil(library: Path) -> None:
    """The worker goes on to the next tasks while a thread keeps the GIL in a call of C."""
    wait = leveret.load(library, "wait_for_flag", "in i4 -> int")
    flag = np.zeros(1, np.int32)
    sums = np.zeros(1)

    async def check(runtime: leveret.Runtime) -> None:
        awaited = asyncio.ensure_future(asyncio.wait_for(runtime.submit(wait, flag), 60))
        behind = [runtime.submit(leveret.builtin("scale"), 2.0, sums) for _ in range(20)]
        for _ in range(3):  # until it is awaited
            turn = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turn.set_result, None)
            await turn
        flag[0] = 1
        ctypes.PyDLL(None).poll(None, 0, 300)
        assert runtime.counters()["completed"] == 1 + len(behind)
        await awaited

    with leveret.Runtime(workers=1, wait="park") as runtime:
        asyncio.run(check(runtime))


def test_loops_of_many_threads_come_and_go() -> None:
    """Each finds loops that others have closed."""
    spin = leveret.builtin("spin")
    kept: list[asyncio.AbstractEventLoop] = []
    errors: list[BaseException] = []

    async def check(runtime: leveret.Runtime) -> None:
        await runtime.submit(spin, 100_000)

    def many(runtime: leveret.Runtime) -> None:
        try:
            for _ in range(60):
                loop = asyncio.new_event_loop()
                loop.run_until_complete(check(runtime))
                loop.close()
                kept.append(loop)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with leveret.Runtime(workers=2) as runtime:
            all_of_them = [threading.Thread(target=many, args=(runtime,)) for _ in range(8)]
            for each in all_of_them:
                each.start()
            for each in all_of_them:
                each.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
