"""ProcessExecutor: map() and submit_many() lose nothing, and take what they need."""

from __future__ import annotations

import concurrent.futures as cf
import datetime
import functools
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import hold, needs_processes, wait_until
from mapped import mark, rest, trouble

import leveret
from leveret import Overran, Poison, ProcessExecutor, WorkerDied
from leveret.wire import by_value
from leveret.worker.functions import Carried

pytestmark = needs_processes


def check(item: int, outcome: Any) -> None:
    if item % 10 == 3:
        assert isinstance(outcome, ValueError) and outcome.args == (item,)
    elif item % 10 == 7:
        assert isinstance(outcome, Poison) and f"trouble({item})" in str(outcome)
    else:
        assert outcome == -item


class Counted:
    """An endless iterable that knows how many items were taken."""

    def __init__(self, most: int | None = None) -> None:
        self.taken = 0
        self.most = most

    def __iter__(self) -> Iterator[int]:
        while self.most is None or self.taken < self.most:
            self.taken += 1
            yield self.taken - 1


# buffersize, as in Python 3.14.


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_buffersize(pool: ProcessExecutor, size: int) -> None:
    assert list(pool.map(str, range(4), buffersize=size)) == ["0", "1", "2", "3"]
    assert list(pool.map(pow, range(4), range(4), buffersize=size)) == [1, 1, 4, 27]
    assert next(pool.map(str, itertools.count(), buffersize=size)) == "0"
    assert next(pool.map(str, [], buffersize=size), None) is None
    assert next(pool.map(str, buffersize=size), None) is None


def test_buffersize_is_kept(pool: ProcessExecutor) -> None:
    items = Counted()
    results = pool.map(abs, items, buffersize=4)
    assert items.taken == 4
    for given in range(1, 30):
        next(results)
        assert given <= items.taken <= given + 4
    items = Counted()
    results = pool.map(abs, items, buffersize=2, chunksize=3)
    assert items.taken == 6 and next(results) == 0


def test_sizes_that_make_no_sense(pool: ProcessExecutor) -> None:
    for size in ("foo", 2.0):
        with pytest.raises(TypeError, match="buffersize must be an integer or None"):
            pool.map(str, range(4), buffersize=size)  # type: ignore[call-overload]
    for number in (0, -1):
        with pytest.raises(ValueError, match="buffersize must be None or > 0"):
            pool.map(str, range(4), buffersize=number)
        with pytest.raises(ValueError, match="chunksize must be >= 1"):
            pool.submit_many(str, range(4), chunksize=number)
    with pytest.raises(ValueError, match="did you mean 'return'"):
        pool.map(str, range(4), on_poison="returns")  # type: ignore[call-overload]


# What is taken, and when.


def test_endless_iterables_are_taken_as_far_as_needed(pool: ProcessExecutor) -> None:
    items = Counted()
    results = pool.map(abs, items)
    assert 8 <= items.taken <= 16_384
    assert list(itertools.islice(results, 20_000)) == list(range(20_000))
    assert items.taken <= 20_000 + 16_384 + 256
    results.close()  # type: ignore[attr-defined]


def test_large_arguments_are_taken_by_their_size(pool: ProcessExecutor) -> None:
    items = Counted()
    results = pool.map(len, (bytes(32 << 20) for _ in items))
    assert items.taken <= 16
    assert list(itertools.islice(results, 4)) == [32 << 20] * 4
    assert items.taken <= 20


def test_everything_is_done_though_nobody_asks(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.touch()
    with ProcessExecutor(2) as pool:
        pool.map(mark, itertools.repeat(str(marks)), list(range(2000)))
    assert marks.read_bytes() == b"x" * 2000
    with ProcessExecutor(2) as pool:
        pool.map(mark, iter([str(marks)] * 20_000), iter(range(20_000)))
    assert marks.read_bytes() == b"x" * 20_000


def test_a_list_may_change_afterwards(pool: ProcessExecutor) -> None:
    items = list(range(1000))
    results = pool.map(abs, items)
    items.clear()
    assert list(results) == list(range(1000))


def test_what_the_iterable_raises(pool: ProcessExecutor) -> None:
    def failing(good: int) -> Iterator[int]:
        yield from range(good)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pool.map(abs, failing(10))
    results = pool.map(abs, failing(10), buffersize=4)
    got: list[int] = []
    with pytest.raises(KeyError, match="mine"):
        got.extend(results)
    assert list(itertools.islice(pool.map(abs, failing(10), buffersize=4), 10)) == list(range(10))
    outcomes: dict[int, Any] = {}
    with pytest.raises(KeyError, match="mine"):
        for index, outcome in pool.submit_many(abs, failing(10), buffersize=4):
            outcomes |= {index: outcome}
    assert outcomes == {i: i for i in range(10)}


def test_submits_and_maps_take_turns(pool: ProcessExecutor) -> None:
    results = pool.map(abs, itertools.count())
    assert [pool.submit(abs, -i).result(60) for i in range(200)] == list(range(200))
    other = pool.map(abs, range(500))
    assert list(itertools.islice(results, 500)) == list(other)
    results.close()  # type: ignore[attr-defined]


def test_closing_takes_back_what_was_not_begun(pool: ProcessExecutor) -> None:
    items = Counted()
    results = pool.map(rest, (0.01 for _ in items), buffersize=100)
    next(results)
    results.close()  # type: ignore[attr-defined]
    begin = time.monotonic()
    assert pool.submit(abs, -1).result(60) == 1
    assert items.taken <= 102 and time.monotonic() - begin < 30


# Errors.


@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_every_exception_in_its_place(pool: ProcessExecutor, chunksize: int | None) -> None:
    got = list(pool.map(trouble, range(20), chunksize=chunksize, return_exceptions=True))
    assert len(got) == 20
    for item, outcome in enumerate(got):
        check(item, outcome)


def test_poison_in_its_place(pool: ProcessExecutor) -> None:
    items = [0, 1, 7, 4, 17, 5]
    got = list(pool.map(trouble, items, on_poison="return"))
    assert [type(each) for each in got] == [int, int, Poison, int, Poison, int]
    results = pool.map(trouble, [7, 0, 3, 1], on_poison="return")
    assert isinstance(next(results), Poison) and next(results) == 0
    with pytest.raises(ValueError, match="3"):
        next(results)
    with pytest.raises(Poison):
        list(pool.map(trouble, items))


def test_deaths_and_time_limits_in_their_place() -> None:
    with ProcessExecutor(2, retry=False) as pool:
        got = list(pool.map(trouble, [0, 7, 1], chunksize=3, on_poison="return"))
        assert isinstance(got[1], WorkerDied) and got[::2] == [0, -1]
    with ProcessExecutor(2, timeout=4) as pool:
        rested = list(pool.map(rest, [0, 60, 0], on_poison="return"))
        assert isinstance(rested[1], Overran) and rested[::2] == [None, None]


def test_no_item_runs_again_for_its_neighbour(tmp_path: Path) -> None:
    def mark(item: int) -> int:
        with (tmp_path / str(item)).open("a") as file:
            file.write("x")
        if item == 5:
            os.abort()
        return item

    with ProcessExecutor(2, max_attempts=1) as pool:
        got = list(pool.map(mark, range(20), chunksize=10, on_poison="return"))
    assert isinstance(got.pop(5), Poison) and len(got) == 19
    assert [len(p.read_text()) for p in tmp_path.iterdir()] == [1] * 20


def test_results_and_arguments_that_do_not_travel(pool: ProcessExecutor) -> None:
    def odd(item: Any) -> Any:
        return threading.Lock() if item == 3 else item

    items: list[Any] = list(range(6))
    items[4] = threading.Lock()
    for chunksize in (1, 6):
        got = list(pool.map(odd, items, chunksize=chunksize, return_exceptions=True))
        assert [type(each) for each in got[3:5]] == [TypeError, TypeError]
        assert got[:3] == [0, 1, 2] and got[5] == 5


# submit_many().


def test_submit_many(pool: ProcessExecutor) -> None:
    got = list(pool.submit_many(trouble, range(20)))
    assert sorted(index for index, _ in got) == list(range(20))
    for index, outcome in got:
        check(index, outcome)


def test_submit_many_gives_what_is_done(pool: ProcessExecutor, tmp_path: Path) -> None:
    until = [tmp_path / "until", *[tmp_path] * 3]  # the others find theirs there
    outcomes = pool.submit_many(hold, [tmp_path / "begun"] * 4, until, chunksize=1)
    assert sorted(index for index, _ in itertools.islice(outcomes, 3)) == [1, 2, 3]
    until[0].touch()
    assert [index for index, _ in outcomes] == [0]


def test_submit_many_without_an_end(pool: ProcessExecutor, tmp_path: Path) -> None:
    items = Counted()
    for seen, (index, outcome) in enumerate(pool.submit_many(abs, items, buffersize=10)):
        assert index == outcome and items.taken <= seen + 11
        if seen == 500:
            break
    assert pool.submit(abs, -1).result(60) == 1
    until = tmp_path / "until"
    with pytest.raises(cf.TimeoutError):
        list(pool.submit_many(hold, [tmp_path / "begun"], [until], timeout=0.05))
    until.touch()


# Pace.


def test_long_calls_are_not_put_together(pool: ProcessExecutor) -> None:
    assert list(pool.map(lambda i: os.getpid(), range(64)))  # short, and known to be
    for _ in range(10):  # one of the workers may have no core at first

        def slow(i: int) -> int:
            rest(0.02)
            return os.getpid()

        pids = list(pool.map(slow, range(20)))
        if len(set(pids[:4])) == 2:
            return
    pytest.fail("one worker had the first four: with chunks it has the first six")


def test_a_chunk_gives_what_it_has(pool: ProcessExecutor, tmp_path: Path) -> None:
    """Results do not wait for calls behind them, once their chunk has taken its time."""
    flag = tmp_path / "flag"

    def meet(item: int) -> bool:
        if item == 0:
            rest(0.05)
            return True
        end = time.monotonic() + 60
        while not flag.exists() and time.monotonic() < end:
            rest(0.001)
        return flag.exists()

    results = pool.map(meet, range(4), chunksize=4)
    assert next(results) and not flag.exists()
    flag.touch()
    assert list(results) == [True] * 3


def test_shutdown_and_maps(tmp_path: Path) -> None:
    until = tmp_path / "until"
    pool = ProcessExecutor(1)
    started = pool.map(abs, itertools.count())
    next(started)
    waiting = pool.map(hold, [tmp_path / "begun"] * 20, [until] * 20)
    pool.shutdown(wait=False, cancel_futures=True)
    until.touch()
    with pytest.raises(cf.CancelledError):
        list(waiting)
    with pytest.raises((cf.CancelledError, RuntimeError)):
        list(started)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.map(abs, [1])
    pool.shutdown()


def left_with_a_closed_map(pool: ProcessExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A map is closed that has items left, and the pool has not noticed when its calls end."""
    inner = pool._pool
    items = pool.map(abs, range(100_000), chunksize=1)  # this thread may stand still
    next(items)
    with monkeypatch.context() as patch:
        patch.setattr(inner.sources, "feed", lambda: None)
        items.close()  # type: ignore[attr-defined]
        wait_until(lambda: not inner.running)
    assert inner.sources.queue
    inner.sources.is_due = True  # as after a call that was submitted


def test_a_call_after_a_closed_map(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessExecutor(1) as pool:
        left_with_a_closed_map(pool, monkeypatch)
        assert pool.submit(abs, -3).result(60) == 3
        wait_until(lambda: not pool._pool.sources.queue)  # by the thread that has told the result


def test_the_end_after_a_closed_map(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ProcessExecutor(1)
    left_with_a_closed_map(pool, monkeypatch)
    ends = threading.Thread(target=pool.shutdown, daemon=True)
    ends.start()
    ends.join(60)
    assert not ends.is_alive()


def test_a_broken_executor_ends_maps() -> None:
    def fail() -> None:
        raise OSError("no")

    with ProcessExecutor(1, initializer=fail) as pool:
        with pytest.raises(leveret.executor.BrokenExecutor):
            list(pool.map(abs, range(10), return_exceptions=True))
        with pytest.raises(leveret.executor.BrokenExecutor):
            list(pool.submit_many(abs, range(10)))


def test_an_executor_that_breaks_in_a_call_is_the_calls_own_failure() -> None:
    def fail() -> None:
        raise OSError("no")

    def open_another(i: int) -> int:
        if i % 2:
            with ProcessExecutor(1, initializer=fail) as inner:
                return inner.submit(abs, i).result()
        return i

    class Odd:
        """What of an argument breaks an executor where it arrives: of a chunk, for all items."""

        def __reduce__(self) -> tuple[Any, ...]:
            return open_another, (1,)

    def name(item: object) -> str:
        return str(item)

    broken = leveret.executor.BrokenExecutor
    with ProcessExecutor(2) as pool:
        for size in (None, 4):
            results = list(pool.map(open_another, range(4), chunksize=size, return_exceptions=True))
            assert [type(each) for each in results] == [int, broken, int, broken]
            several = dict(pool.submit_many(open_another, range(4), chunksize=size))
            assert [type(several[i]) for i in range(4)] == [int, broken, int, broken]
            items = [1, Odd(), 3, 4]
            names = list(pool.map(name, items, chunksize=size, return_exceptions=True))
            assert [type(each) for each in names] == [str, broken, str, str]


def test_what_ends_while_calls_are_handed_over_is_delivered() -> None:
    """A wait delivers a call, and so hands over more, which may end before that is done."""

    def fail_early(item: int) -> None:
        if item == 1:
            raise ValueError(item)

    for _ in range(6):
        pool = ProcessExecutor(2)
        for size in (1, 2, 3) * 7:
            results = pool.map(fail_early, range(10), chunksize=size)
            with pytest.raises(ValueError):
                list(results)  # the others are left to whoever is there
        pool.shutdown(wait=False)
        assert pool._pool.idle.wait(30)


def test_an_endless_map_keeps_no_other_call_waiting(tmp_path: Path) -> None:
    path = tmp_path / "calls"

    def note(_: int) -> None:
        with path.open("ab") as file:
            file.write(b"1")

    with ProcessExecutor(1, preload=(), max_tasks_per_child=1) as executor:
        endless = executor.map(note, itertools.count())
        calls = [executor.submit(abs, -i) for i in range(5)]
        assert [each.result(60) for each in calls] == list(range(5))
        assert list(executor.map(abs, range(5), timeout=60)) == list(range(5))
        next(endless)
        assert path.stat().st_size < 100, "calls waited for an iterable without an end"
        executor.terminate_workers()


@pytest.mark.parametrize("chunksize", [4, 1])
def test_a_call_that_cannot_be_handed_over(
    pool: ProcessExecutor, monkeypatch: pytest.MonkeyPatch, chunksize: int
) -> None:
    """A chunk's items go one by one then, and may find room; each has an outcome in any case."""
    inner = pool._pool
    start, left = inner.start, [leveret.OutOfMemory("no room", leveret.Status.OUT_OF_MEMORY)]

    def starts(work: Any) -> bool:
        if work.count == chunksize and left:
            raise left.pop()
        return start(work)

    monkeypatch.setattr(inner, "start", starts)
    got = list(pool.map(abs, range(12), chunksize=chunksize, return_exceptions=True))
    assert not left
    if chunksize == 1:
        assert isinstance(got.pop(0), leveret.OutOfMemory)
    assert got == list(range(12))[-len(got) :]
    left.append(leveret.OutOfMemory("no room", leveret.Status.OUT_OF_MEMORY))
    several = dict(pool.submit_many(abs, range(12), chunksize=chunksize))
    assert not left
    assert sorted(several) == list(range(12))


def grow(given: tuple[list[int], datetime.date, Any]) -> int:
    shared, when, add = given
    shared.append(when.day)
    count: int = add(len(shared))
    return count


def test_items_of_a_chunk_share_nothing(pool: ProcessExecutor) -> None:
    """Though one pickler writes them all, and they name the same list, date and functions."""
    shared: list[int] = []
    when = datetime.date(2026, 11, 26)
    amount = 10
    items = [(shared, when, lambda count: count + amount) for _ in range(3)]
    items += [items[0]] * 3
    assert list(pool.map(grow, items, chunksize=6)) == [11] * 6
    assert shared == []


# A table that a chunk's function brings along is loaded once, and is each call's own all the same.


class Table:
    def __init__(self) -> None:
        self.rows = {"a": [1], "b": [2]}

    def look(self, i: int) -> tuple[int, int]:
        return look(self.rows, self, i)


def look(rows: dict[str, list[int]], whole: Any, i: int) -> tuple[int, int]:
    """Every third call changes it, and every fifth keeps a part that the next one changes."""
    left = vars(sys).setdefault("_leveret_left", [])
    while left:
        left.pop().append(7)
    seen = sum(rows["a"]), len(rows)
    if i % 3 == 0:
        rows["a"].append(i)
        rows["c"] = []
    if i % 5 == 0:
        left.append(rows["a"])
    if i % 7 == 0 and whole is not None:
        whole.rows = {}
    return seen


def test_a_table_that_the_function_brings_along_is_each_calls_own() -> None:
    table = Table()
    with ProcessExecutor(1) as pool:
        for function in (table.look, functools.partial(look, table.rows, None)):
            assert list(pool.map(function, range(100), chunksize=50)) == [(1, 2)] * 100


@pytest.mark.parametrize(
    "make", [lambda t: t.look, lambda t: functools.partial(look, t.rows, None)]
)
def test_what_shows_that_it_may_be_used_again(make: Any) -> None:
    table = Table()
    carried = Carried(make(table), by_value.Made())
    assert carried.is_as_loaded() and carried.is_as_loaded()
    kept = table.rows["b"]
    assert not carried.is_as_loaded()
    del kept
    assert carried.is_as_loaded()
    table.rows["b"].append(3)
    assert not carried.is_as_loaded()
    assert not Carried(len, by_value.Made()).is_as_loaded()
