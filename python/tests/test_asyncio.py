"""ProcessExecutor on an event loop: run() and its cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, rest

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


def never_end(mark: str) -> None:
    Path(mark).touch()
    while True:
        signal.pause()


def fail(text: str) -> None:
    raise ValueError(text)


async def begun(mark: Path) -> None:
    while not mark.exists():
        await asyncio.get_running_loop().run_in_executor(None, rest, 0.001)


def test_results_and_errors(tmp_path: Path) -> None:
    async def check() -> None:
        with ProcessExecutor(2) as executor:
            results = await asyncio.gather(*(executor.run(pow, 2, i) for i in range(20)))
            assert results == [2**i for i in range(20)]
            with pytest.raises(ValueError, match="of the call"):
                await executor.run(fail, "of the call")
            with pytest.raises(leveret.Poison):
                await executor.run(os.abort)
            with pytest.raises(leveret.Overran):
                await executor.options(timeout=0.05).run(never_end, str(tmp_path / "mark"))

    asyncio.run(check())


def test_a_call_is_ended_with_the_task_that_awaits_it(tmp_path: Path) -> None:
    async def check() -> Any:
        with ProcessExecutor(1) as executor:
            mark = tmp_path / "begun"
            running = asyncio.ensure_future(executor.run(never_end, str(mark)))
            await begun(mark)
            waiting = asyncio.ensure_future(executor.run(pow, 2, 3))
            for each in (waiting, running):
                each.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await each
            return await executor.run(pow, 2, 5)  # on the process that replaces it

    assert asyncio.run(check()) == 32
