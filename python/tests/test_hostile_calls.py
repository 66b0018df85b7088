"""Each kind of bad call among good ones: all good results, and who was at fault."""

from __future__ import annotations

import hostile_calls as hostile
import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes

GOOD_PER_BAD = 5
Ends = dict[str, "BaseException | None"]


# What a call needs is loaded before its time begins to run.
LOADED = ("hostile_calls", "numpy")


def run(executor: ProcessExecutor, bodies: list[hostile.Body]) -> Ends:
    """How each of the bodies ended, by name; the calls between them must come back right."""
    right = executor.options(timeout=60)  # a full machine may be slow
    good, bad = [], {}
    for i, body in enumerate(bodies):
        first = i * GOOD_PER_BAD
        good += [right.submit(hostile.square, n) for n in range(first, first + GOOD_PER_BAD)]
        bad[body.__name__] = executor.submit(body)
    more = range(len(good), len(good) + GOOD_PER_BAD)
    good += [right.submit(hostile.square, n) for n in more]
    ends = {name: future.exception(60) for name, future in bad.items()}
    assert [future.result(60) for future in good] == [n * n for n in range(len(good))]
    return ends


def test_calls_that_end_their_process() -> None:
    with ProcessExecutor(2, max_attempts=1, timeout=20, preload=LOADED) as executor:
        ends = run(executor, hostile.CRASHES)
    wrong = {name: error for name, error in ends.items() if type(error) is not leveret.Poison}
    assert not wrong
    for name, error in ends.items():
        assert f"{name}()" in str(error)


def test_calls_without_an_end() -> None:
    with ProcessExecutor(2, max_attempts=1, timeout=1.5, preload=LOADED) as executor:
        ends = run(executor, hostile.HANGS)
    wrong = {name: error for name, error in ends.items() if type(error) is not leveret.Overran}
    assert not wrong
    for name, error in ends.items():
        assert f"{name}()" in str(error)


def test_calls_that_leave_their_process_odd() -> None:
    with ProcessExecutor(2, timeout=20, preload=LOADED) as executor:
        ends = run(executor, hostile.HARMLESS * 2)
    assert not {name: error for name, error in ends.items() if error is not None}


@pytest.mark.parametrize("body", hostile.LATE, ids=[b.__name__ for b in hostile.LATE])
def test_processes_that_end_between_calls(body: hostile.Body) -> None:
    with ProcessExecutor(2, timeout=20, preload=LOADED) as executor:
        for _ in range(2):
            ends = run(executor, [body])
            error = ends[body.__name__]
            assert error is None or isinstance(error, leveret.WorkerDied)


def test_calls_that_take_memory_without_end() -> None:
    """A limit on memory, or one on time, ends them; the host has its own memory."""
    with ProcessExecutor(
        2, max_attempts=1, timeout=5, worker_memory=256 << 20, preload=LOADED
    ) as executor:
        ends = run(executor, hostile.GREEDY)
    # Without memory for an exception the interpreter says SystemError.
    expected = (MemoryError, RecursionError, SystemError, leveret.Poison, leveret.Overran)
    wrong = {name: error for name, error in ends.items() if not isinstance(error, expected)}
    assert not wrong
