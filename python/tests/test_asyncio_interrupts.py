"""One Ctrl-C under asyncio.run(), which cancels its main task, ends what a `with` block runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import end_by_interrupt, needs_processes, run_program

pytestmark = [
    needs_processes,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.run() leaves signals alone"),
]

BEGIN = """
import asyncio, os, select, signal, sys
import leveret

def hang():
    os.write(1, b"begun\\n")
    while True:
        signal.pause()

def begin_one_that_hangs(runtime):
    begun = leveret.shared_array(1, "i4")
    ticket = runtime.submit(leveret.load(sys.argv[1], "never_end", "out i4"), begun)
    while not begun[0]:
        select.select([], [], [], 0.001)
    print("begun", flush=True)
    return ticket

async def one_that_hangs():
    with leveret.ProcessExecutor(1, preload=()) as executor:
        await asyncio.wrap_future(executor.submit(hang))
"""
BODIES = {
    "run_in_executor": """
    with leveret.ProcessExecutor(1, preload=()) as executor:
        await asyncio.get_running_loop().run_in_executor(executor, hang)
""",
    "a_view": """
    executor = leveret.ProcessExecutor(1, preload=())
    with executor.options(name="a call") as view:
        await asyncio.wrap_future(view.submit(hang))
""",
    "a_call_that_nobody_awaits": """
    with leveret.ProcessExecutor(1, preload=()) as executor:
        future = executor.submit(hang)
        await asyncio.Event().wait()
""",
    "a_thread_that_waits": """
    with leveret.ProcessExecutor(1, preload=()) as executor:
        await asyncio.to_thread(executor.submit(hang).exception)
""",
    "a_task_of_a_group": """
    async with asyncio.TaskGroup() as group:
        group.create_task(one_that_hangs())
""",
    "a_task_that_the_end_cancels": """
    task = asyncio.ensure_future(one_that_hangs())
    await asyncio.Event().wait()
""",
    "the_end_of_the_block": """
    with leveret.ProcessExecutor(1, preload=()) as executor:
        executor.submit(hang)
""",
    "the_end_of_the_block_in_a_task": """
    async def task():
        with leveret.ProcessExecutor(1, preload=()) as executor:
            executor.submit(hang)
    await asyncio.gather(task(), asyncio.Event().wait())
""",
    "in_the_block_without_an_await": """
    with leveret.ProcessExecutor(1, preload=()) as executor:
        executor.submit(hang)
        while asyncio.current_task().cancelling() == 0:
            select.select([], [], [], 0.001)
""",
    "a_runtime": """
    with leveret.Runtime("processes", workers=1) as runtime:
        ticket = begin_one_that_hangs(runtime)
        await asyncio.Event().wait()
""",
    "the_end_of_a_runtime": """
    with leveret.Runtime("processes", workers=1) as runtime:
        ticket = begin_one_that_hangs(runtime)
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_one_is_enough(name: str, library: Path) -> None:
    text = f"{BEGIN}\nasync def main():{BODIES[name]}\nasyncio.run(main())"
    said = end_by_interrupt(text, str(library))
    assert said.endswith("KeyboardInterrupt\n"), said


OTHERS = """
import asyncio, contextlib, select, signal, sys, threading
from pathlib import Path
import leveret

folder = Path(sys.argv[0]).parent

def wait_for(happens):
    while not happens():
        select.select([], [], [], 0.001)

def slow(folder):
    (folder / "begun").touch()
    wait_for((folder / "is_left").exists)
    return "over"

def note_end(executor):
    wait_for(lambda: " open" not in repr(executor))
    (folder / "is_left").touch()

async def interrupted():
    with contextlib.suppress(asyncio.CancelledError):
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

async def is_cancelled(is_interrupted=False):
    global future
    with leveret.ProcessExecutor(1, preload=()) as executor:
        future = executor.submit(slow, folder)
        threading.Thread(target=note_end, args=(executor,)).start()
        await asyncio.to_thread(wait_for, (folder / "begun").exists)
        if is_interrupted:
            await interrupted()
            asyncio.current_task().uncancel()
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task
"""
CANCELLED = {
    "without_a_ctrl_c": "await is_cancelled()",
    "after_one_that_was_taken_back": "await is_cancelled(True)",
    "after_one_before_the_block": "await interrupted(); await is_cancelled()",
}


@pytest.mark.parametrize("name", CANCELLED)
def test_other_cancellations_leave_calls_alone(name: str, tmp_path: Path) -> None:
    text = f"""{OTHERS}
async def main():
    with contextlib.suppress(asyncio.CancelledError):
        {CANCELLED[name]}
    print(future.result(0))
asyncio.run(main())
"""
    assert run_program(tmp_path, text) == "over\n"
