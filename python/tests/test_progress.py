"""ProcessExecutor: on_progress, whose numbers meet when nothing is left to be done."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from conftest import LIMIT, needs_processes, wait_until

from leveret import ProcessExecutor
from leveret.executor import counting as counting_of_executors

pytestmark = needs_processes

Told = list[tuple[int, int, int]]


@contextlib.contextmanager
def counting(workers: int = 1, **options: Any) -> Iterator[tuple[ProcessExecutor, Told]]:
    """An executor, and what its callback is told, to the last when the block is over."""
    told: Told = []
    with ProcessExecutor(workers, on_progress=lambda *a: told.append(a), **options) as pool:
        yield pool, told
    assert all(failed <= done <= total for done, failed, total in told)


class Held:
    """Calls that have the only worker until they are let go."""

    def __init__(self, folder: Path) -> None:
        self.began, self.go = folder / "began", folder / "go"

    def __call__(self, _: object = None) -> None:
        self.began.touch()
        wait_until(self.go.exists)

    def submit(self, pool: ProcessExecutor) -> futures.Future[None]:
        future = pool.submit(self)
        wait_until(self.began.exists)
        return future


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def test_calls_that_were_cancelled_while_they_waited(held: Held) -> None:
    with counting() as (pool, told):
        first = held.submit(pool)
        waiting = [pool.submit(abs, -i) for i in range(50)]
        cancelled = [each for each in waiting[::-1] if each.cancel()]  # some are handed over
        assert cancelled and all(each.cancel() for each in cancelled)  # again: nothing more
        held.go.touch()
        first.result(LIMIT)
    left = 51 - len(cancelled)
    assert told[-1] == (left, 0, left)


def test_when_all_that_waits_is_cancelled_that_is_told(held: Held) -> None:
    with counting() as (pool, told):
        held.submit(pool)
        waiting = [pool.submit(abs, -i) for i in range(50)]
        for each in waiting:
            each.cancel()
        left = 1 + sum(not each.cancelled() for each in waiting)
        wait_until(lambda: told and told[-1] == (0, 0, left))
        held.go.touch()


def test_a_call_that_was_ended_is_done_and_failed(held: Held) -> None:
    with counting() as (pool, told):
        future = pool.options(cancel="kill").submit(held)
        wait_until(held.began.exists)
        assert future.cancel() and future.cancel()
        assert pool.submit(abs, -1).result(LIMIT) == 1
    assert told[-1] == (2, 1, 2)


@pytest.mark.parametrize("chunksize", [None, 1, 3])
def test_what_cannot_be_pickled_has_failed(chunksize: int | None) -> None:
    with counting() as (pool, told):
        lock: Any = threading.Lock()
        assert isinstance(pool.submit(abs, lock).exception(LIMIT), TypeError)
        items = [1, lock, 3]
        got = list(pool.map(abs, items, chunksize=chunksize, return_exceptions=True))
        assert got[::2] == [1, 3] and isinstance(got[1], TypeError)
    assert told[-1] == (4, 2, 4)


def test_a_map_that_is_left(held: Held) -> None:
    def stay(item: int) -> int:
        if item:
            held()
        return item

    with counting() as (pool, told):
        results = pool.map(stay, range(1000))
        assert next(results) == 0  # the others stay
        with pytest.raises(futures.TimeoutError):
            list(pool.map(abs, range(1000), timeout=0))
        del results
        held.go.touch()
        assert pool.submit(abs, -1).result(LIMIT) == 1
    done, failed, total = told[-1]
    assert 2 < done == total < 1000 and not failed


@pytest.mark.parametrize("items", [range(50_000), itertools.count()])
def test_submit_many_and_stream_that_are_left(items: Any) -> None:
    async def look(pool: ProcessExecutor) -> None:
        found = pool.stream(abs, items)
        async for _ in found:
            break
        await found.aclose()  # type: ignore[attr-defined]

    with counting(2) as (pool, told):
        for index, _ in pool.submit_many(abs, items):
            if index == 10:
                break
        asyncio.run(look(pool))
    done, _, total = told[-1]  # what stream() has ended failed
    assert 0 < done == total  # the eleventh item may be the first that is done


def test_items_that_nobody_has_told_of_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may have them before the thread that took them goes on."""
    monkeypatch.setattr(counting_of_executors, "note_items", lambda mapping: None)
    with counting(2) as (pool, told):
        list(pool.submit_many(abs, iter(range(1000))))
    assert told[-1] == (1000, 0, 1000)


def test_shutdown_that_cancels(held: Held) -> None:
    with counting() as (pool, told):
        held.submit(pool)
        for i in range(50):
            pool.submit(abs, -i)
        results = pool.map(abs, range(1000))
        pool.shutdown(wait=False, cancel_futures=True)
        held.go.touch()
        with pytest.raises(futures.CancelledError):
            list(results)
    done, failed, total = told[-1]
    assert 1 <= done == total < 1000 and not failed


def test_an_executor_that_breaks() -> None:
    def fail() -> None:
        raise OSError("not here")

    with counting(initializer=fail) as (pool, told):
        given = []
        with contextlib.suppress(futures.BrokenExecutor):
            given += [pool.submit(abs, -i) for i in range(20)]
        assert all(each.exception(LIMIT) for each in given)
    done, failed, total = told[-1]
    assert 1 <= done == failed == total


def random_step(pool: ProcessExecutor, dice: random.Random) -> Callable[[], object]:
    """Gives the executor something; what is to be done later with it."""
    n, chunksize = dice.randrange(1, 300), dice.choice([None, 1, 7])
    what = dice.randrange(4)
    if what == 0:
        item: Any = dice.choice([-1, "no number"])
        return pool.submit(abs, item).cancel
    if what == 1:
        left = itertools.islice(pool.map(abs, range(n), chunksize=chunksize), dice.randrange(n))
        return lambda: list(left)
    if what == 2:
        items = [dice.choice([1, 1, 1, "no number", threading.Lock()]) for _ in range(n)]
        results = pool.map(abs, items, chunksize=chunksize, return_exceptions=dice.random() < 0.5)
        return lambda: list(results)
    many = pool.submit_many(abs, range(n), chunksize=chunksize)
    return lambda: list(itertools.islice(many, dice.randrange(n)))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_the_numbers_meet(seed: int) -> None:
    dice = random.Random(seed)
    with counting(dice.choice([1, 2])) as (pool, told):
        steps = []
        for _ in range(40):
            steps.append(random_step(pool, dice))
            if dice.random() < 0.6:
                with contextlib.suppress(TypeError):
                    steps.pop(dice.randrange(len(steps)))()
        pool.shutdown(cancel_futures=dice.random() < 0.5)
        del steps
    done, _, total = told[-1]
    assert done == total
