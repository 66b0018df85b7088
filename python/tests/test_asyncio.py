"""ProcessExecutor on an event loop: run() and its cancellation."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Iterator
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


def stop(kind: type[BaseException]) -> None:
    raise kind(7)


def test_what_an_event_loop_has_a_meaning_for_is_raised() -> None:
    """A future of asyncio's cannot have a StopIteration; as a coroutine's it is a RuntimeError."""

    async def check() -> None:
        with ProcessExecutor(1) as executor:
            with pytest.raises(RuntimeError, match="StopIteration") as caught:
                await asyncio.wait_for(executor.run(stop, StopIteration), 60)
            assert isinstance(caught.value.__cause__, StopIteration)
            assert "stop" in str(caught.value.__cause__.__cause__)
            for kind in (StopAsyncIteration, asyncio.TimeoutError, GeneratorExit):
                with pytest.raises(kind):
                    await asyncio.wait_for(executor.run(stop, kind), 60)
            assert await executor.options(retry=False).run(abs, -3) == 3

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


def test_a_stream_gives_outcomes_as_they_come(tmp_path: Path) -> None:
    async def check() -> None:
        flag = tmp_path / "flag"
        with ProcessExecutor(2) as executor:
            found: dict[int, Any] = {}
            async for index, outcome in executor.stream(held, [str(flag), "", "", "no"]):
                found[index] = outcome
                if len(found) == 3:
                    flag.touch()
            assert list(found)[-1] == 0 and found[0] == "held"
            assert found[1] == found[2] == "" and isinstance(found[3], ValueError)
            async for number, square in executor.stream(
                pow, itertools.count(), itertools.repeat(2)
            ):
                assert square == number**2
                if number == 500:
                    break
            found = {i: each async for i, each in executor.stream(os._exit, [3])}
            assert isinstance(found[0], leveret.Poison)
            view = executor.options(timeout=0.05)
            found = {i: each async for i, each in view.stream(never_end, [str(tmp_path / "mark")])}
            assert isinstance(found[0], leveret.Overran)
            assert [each async for each in executor.stream(abs, [])] == []

    asyncio.run(check())


def held(text: str) -> str:
    if text == "no":
        raise ValueError(text)
    if text:
        while not Path(text).exists():
            rest(0.001)
        return "held"
    return ""


def test_a_stream_is_ended_with_its_loop(tmp_path: Path) -> None:
    async def look(executor: ProcessExecutor, marks: list[str]) -> None:
        async for _ in executor.stream(never_end, marks):
            raise AssertionError

    async def check() -> Any:
        with ProcessExecutor(2) as executor:
            marks = [tmp_path / str(i) for i in range(50)]
            task = asyncio.ensure_future(look(executor, [str(each) for each in marks]))
            await begun(marks[0])
            await begun(marks[1])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            marks[0].unlink()
            assert await executor.run(pow, 2, 5) == 32
            stream = executor.stream(slow_first, [0] * 3, [str(marks[0])] * 3)
            async for _, outcome in stream:
                assert outcome == 0
                break
            await stream.aclose()  # type: ignore[attr-defined]
            return await executor.run(pow, 2, 6)

    assert asyncio.run(check()) == 64


def slow_first(i: int, mark: str) -> int:
    if Path(mark).exists():
        never_end(mark)
    Path(mark).touch()
    return i


def test_what_a_stream_is_given_wrongly(tmp_path: Path) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("of the iterable")

    async def check() -> None:
        with ProcessExecutor(1) as executor:
            with pytest.raises(ValueError, match="buffersize"):
                executor.stream(abs, [1], buffersize=0)
            found = []
            with pytest.raises(OSError, match="of the iterable"):
                async for _, outcome in executor.stream(abs, broken()):
                    found.append(outcome)
            assert found in ([], [1])
            with pytest.raises(TypeError):
                async for _ in executor.stream(abs, 1):  # type: ignore[arg-type]
                    pass
        with pytest.raises(leveret.Closed):
            async for _ in executor.stream(abs, [1]):
                pass

    asyncio.run(check())
