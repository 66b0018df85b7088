"""Wrong calls: the error is of the right class, names what is wrong and says what to write."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret

NULL, SPIN, SUM = (leveret.builtin(name) for name in ("null", "spin", "sum"))
Call = Callable[[leveret.Runtime], Any]


def any_of(thing: Any) -> Any:
    """Hides a wrong type from the type checker."""
    return thing


WRONG_CALLS: list[tuple[Call, type[Exception], str]] = [
    (lambda r: r.submit(any_of("sum")), TypeError, r"procedure must be .* leveret\.load\(\).* str"),
    (
        lambda r: r.submit(any_of(len), [1]),
        TypeError,
        r"leveret\.load\(\).*leveret\.ProcessExecutor",
    ),
    (lambda r: any_of(r).submit(), TypeError, r"submit\(\) needs a procedure"),
    (lambda r: any_of(r).submit(NULL, prio=1), TypeError, "did you mean 'priority'"),
    (lambda r: any_of(r).parallel(NULL), TypeError, "needs a procedure and n"),
    (lambda r: r.parallel(NULL, -1), OverflowError, "n must be from 0"),
    (lambda r: any_of(r).submit_bulk(NULL, number=3), TypeError, "there are count"),
    (lambda r: r.submit_bulk(any_of(3)), TypeError, "procedure must be a Procedure"),
    (lambda r: r.submit(NULL, priority=2**31), OverflowError, "priority must be from -2147483648"),
    (lambda r: r.submit(NULL, priority=any_of(1.0)), TypeError, "priority must be an integer"),
    (lambda r: r.submit(NULL, grain=-1), OverflowError, "grain must be from 0 to 4294967295"),
    (lambda r: r.submit(NULL, key=2**32), OverflowError, "key must be from 0"),
    (lambda r: r.submit(NULL, after=any_of(3)), TypeError, "after must be a Ticket .* not int"),
    (lambda r: r.submit(NULL, after=any_of([3])), TypeError, "after must be a Ticket .* not int"),
    (lambda r: r.submit(NULL, locks=any_of(3)), TypeError, r"locks must .* Runtime\.mutex\(\)"),
    (lambda r: r.submit(NULL, locks=any_of([3])), TypeError, "locks must be .* not int"),
    (lambda r: r.submit(NULL).wait(any_of("1")), TypeError, "timeout must be .* not '1'"),
    (lambda r: leveret.as_completed([], any_of("1")), TypeError, "timeout must be .* not '1'"),
    (lambda r: leveret.as_completed([], None, any_of("x")), ValueError, "policy must be one of"),
    (lambda r: leveret.as_completed(any_of(3)), TypeError, "tickets must be .* not int"),
    (lambda r: leveret.as_completed(any_of([[]])), TypeError, "tickets must be .* not list"),
    (
        lambda r: r.submit(SUM, leveret.sliced(np.ones(4))),
        ValueError,
        r"^the parameter \(result f8.* would share its result; cut nothing",
    ),
    (lambda r: r.submit(NULL).wait(-1), ValueError, "timeout must be .* not -1$"),
    (lambda r: leveret.wait_any(any_of(3)), TypeError, "tickets must be .* not int"),
    (lambda r: leveret.wait_all(any_of([None])), TypeError, "tickets must be .* not NoneType"),
    (lambda r: leveret.as_completed(any_of([3])), TypeError, "tickets must be .* not int"),
    (lambda r: r.submit(SUM, any_of([1.0])), TypeError, r"argument 0 .* numpy\.asarray"),
]


WRONG_CALLS += [
    (lambda r: r.set_filters(any_of(3)), TypeError, "names must be the name of a filter.* not 3"),
    (lambda r: leveret.builtin(any_of(3)), TypeError, "name must be a string, .* not 3"),
    (lambda r: leveret.load("x.so", any_of(3), ""), TypeError, "symbol must be the name .* not 3"),
    (lambda r: leveret.procedure(1, "", any_of(3)), TypeError, "name must be a string or None"),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), WRONG_CALLS, ids=[m for *_, m in WRONG_CALLS]
)
def test_wrong_calls(
    threads: leveret.Runtime, call: Call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(threads)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workers": 1.5}, TypeError, "workers must be an integer, not 1.5"),
        ({"tickets": 10**12}, ValueError, "tickets must be from 0 to 4294967295"),
        ({"pin": "yes"}, TypeError, "pin must be True or False, not 'yes'"),
        ({"wait": 3}, ValueError, "wait must be a string, not 3"),
        ({"wait": "x"}, ValueError, "wait must be one of help, park, spin"),
        ({"machine": 3}, TypeError, "machine must be a name such as 'threads', not 3"),
        ({"machine": "abacus"}, leveret.Unavailable, "threads"),
        ({"worker": 1}, TypeError, "worker"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        leveret.Runtime(**options)


@pytest.mark.parametrize("signature", [None, 3, b"f8", ["f8", 3], {"f8"}])
def test_what_is_no_signature(signature: Any) -> None:
    with pytest.raises(TypeError, match="a signature is a string such as"):
        leveret.procedure(1, signature)


def test_options_may_be_numpy_integers(library: Path, threads: leveret.Runtime) -> None:
    threads.submit(NULL, priority=any_of(np.int64(-3)), grain=any_of(np.uint8(1))).wait()
    squares = leveret.load(library, "square_range", "range, out u8")
    out = np.ones(3, "u8")
    threads.parallel(squares, any_of(np.int32(3)), leveret.sliced(out)).wait()
    assert list(out) == [0, 1, 4]


def test_a_range_may_be_a_number_of_numpy(library: Path, threads: leveret.Runtime) -> None:
    squares = leveret.load(library, "square_range", "range, out u8")
    out = np.ones(3, "u8")
    threads.submit(squares, np.int64(3), out).wait()
    assert out.tolist() == [0, 1, 4]
    with pytest.raises(TypeError, match=r"expected range\(begin, end\).* got numpy.ndarray"):
        threads.submit(squares, np.array([0, 3]), out)


def test_a_thread_that_may_not_wait_is_told_so() -> None:
    """And what it was told is no failure of a task."""
    said: list[str] = []
    with leveret.Runtime("sim", workers=1) as runtime:
        ticket = runtime.submit(NULL)

        def wait() -> None:
            waits = runtime.wait_for_completion, ticket.wait, lambda: leveret.wait_any(ticket)
            for each in waits:
                with pytest.raises(leveret.WouldBlock) as caught:
                    each()
                said.append(str(caught.value))

        other = threading.Thread(target=wait)
        other.start()
        other.join()
        ticket.wait()
    assert len(said) == 3 and all("no place for this thread to wait" in text for text in said)


def test_as_completed_takes_one_ticket(threads: leveret.Runtime) -> None:
    ticket = threads.submit(NULL)
    assert list(leveret.as_completed(ticket, 60)) == [ticket]


def test_a_ticket_shows_its_state(threads: leveret.Runtime) -> None:
    ticket = threads.submit(NULL)
    while not ticket.done():
        pass
    assert repr(ticket) == "<leveret.Ticket of 'leveret.null', complete, not waited for>"
    ticket.wait()
    assert repr(ticket) == "<leveret.Ticket of 'leveret.null', ok>"


def test_a_runtime_that_could_not_be_opened_can_be_shown() -> None:
    """A debugger and a test runner show the local variables of a failure."""
    with pytest.raises(ValueError) as caught:
        leveret.Runtime(wait=any_of("x"))
    frames = [entry.locals for entry in caught.traceback]
    halves = [each["self"] for each in frames if "self" in each]
    assert [repr(half) for half in halves] == ["<leveret.Runtime, not opened>"]


def test_errors_survive_pickle() -> None:
    failed = leveret.TaskFailed("it returned 3", leveret.Status.TASK_FAILED, 2)
    failed.code, failed.failures = 3, 7
    again = pickle.loads(pickle.dumps(failed))
    assert type(again) is leveret.TaskFailed
    assert (str(again), again.status, again.argument) == ("it returned 3", failed.status, 2)
    assert (again.code, again.failures) == (3, 7)


def test_refusals_count_arguments_as_the_caller_does(
    threads: leveret.Runtime, library: Path
) -> None:
    """A count, a result and the range of parallel() are passed by nobody."""
    add = leveret.load(library, "add_range", "range, f8, in f8, out f8", name="adds")
    x = np.ones(4)
    said = r"argument 2 \(out f8\): this output overlaps argument 1 \(in f8\)"
    with pytest.raises(leveret.InvalidArgument, match="^" + said) as refused:
        threads.parallel(add, 4, 1.0, leveret.sliced(x), leveret.sliced(x))
    assert refused.value.argument == 2
    overlapping = leveret.load(library, "last_half", "in u2, count(0), out u2[1]", name="overlaps")
    halves = np.ones(4, np.uint16)
    with pytest.raises(leveret.InvalidArgument, match=r"^argument 1 \(out u2\): .* argument 0 "):
        threads.submit(overlapping, halves, halves)
    with (
        threads.ordered() as tasks,
        pytest.raises(leveret.InvalidArgument, match=r"^argument 1 \("),
    ):
        tasks.submit(overlapping, halves, halves)
    rows = np.lib.stride_tricks.as_strided(np.ones(9), (4, 2), (16, 8))
    slid = np.lib.stride_tricks.as_strided(np.ones(9), (4, 2), (8, 8))
    fill = leveret.load(library, "add_to", "in f8, out f8, count(0)", name="slides")
    with pytest.raises(leveret.InvalidArgument, match=r"^argument 1 \(out f8\): the") as refused:
        threads.submit_bulk(fill, rows, slid)
    assert refused.value.argument == 1


@needs_processes
def test_failures_without_a_ticket_say_what_failed(library: Path) -> None:
    crash = leveret.load(library, "die_or_set", "i4, out f8[any]", name="dies")
    said = r": procedure 'dies' ended its worker process: signal"
    with leveret.Runtime("processes", workers=1, max_attempts=1) as runtime:
        tasks = runtime.ordered()
        tasks.submit(crash, 1, np.ones(1))
        with pytest.raises(leveret.Poison, match="^a task of the scope" + said):
            tasks.wait()
        runtime.submit(crash, 1, np.ones(1))
        with pytest.raises(leveret.Poison, match="^a task whose Ticket was dropped" + said):
            runtime.wait_for_completion()


def test_as_completed_refuses_tickets_of_two_runtimes(threads: leveret.Runtime) -> None:
    with leveret.Runtime(workers=1) as other:
        both = [each.submit(NULL) for each in (threads, other)]
        with pytest.raises(ValueError, match="of different runtimes"):
            leveret.as_completed(both)
        leveret.wait_all(both)


def test_what_a_number_of_the_programs_raises_is_raised(threads: leveret.Runtime) -> None:
    class Odd:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    odd = any_of(Odd())
    calls: list[Callable[[], object]] = [
        lambda: threads.submit(SPIN, odd),
        lambda: threads.submit(NULL, priority=odd),
        lambda: threads.submit(NULL, task_timeout=odd),
        lambda: threads.submit(NULL).wait(odd),
        lambda: leveret.Runtime(workers=odd),
    ]
    for call in calls:
        with pytest.raises(KeyboardInterrupt):
            call()
