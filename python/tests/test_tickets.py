"""Tickets: waits of every kind, time-outs, cancelling, dependencies, other threads, signals."""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import Gate, needs_processes

import leveret

NULL, SPIN, SUM = (leveret.builtin(name) for name in ("null", "spin", "sum"))


def test_a_ticket_may_be_waited_for_again(runtime: leveret.Runtime) -> None:
    ticket = runtime.submit(SUM, np.ones(3))
    for _ in range(3):
        ticket.wait()
        assert ticket.result() == 3
        assert ticket.done()
    assert ticket.status_code == leveret.Status.OK
    assert repr(ticket) == "<leveret.Ticket of 'leveret.sum', ok>"
    assert ticket.procedure.id == SUM.id


@pytest.mark.parametrize("timeout", [-1, -1e-9, math.nan, -math.inf])
def test_bad_time_outs(threads: leveret.Runtime, timeout: float) -> None:
    ticket = threads.submit(NULL)
    for wait in (ticket.wait, ticket.result, threads.wait_for_completion, threads.close):
        with pytest.raises(ValueError, match="timeout"):
            wait(timeout)
    for wait_many in (leveret.wait_any, leveret.wait_all, leveret.as_completed):
        with pytest.raises(ValueError, match="timeout"):
            wait_many([ticket], timeout)
    with pytest.raises(TypeError):
        ticket.wait("soon")  # type: ignore[arg-type]
    ticket.wait()


@pytest.mark.parametrize("timeout", [None, 1e6, 1e300, math.inf, 2**80])
def test_long_time_outs(threads: leveret.Runtime, timeout: float | None) -> None:
    threads.submit(NULL).wait(timeout)
    threads.wait_for_completion(timeout)


def test_time_outs(threads: leveret.Runtime, gate: Gate) -> None:
    ticket = gate.submit(threads)
    for timeout in (0, 0.01, 0.12):
        start = time.monotonic()
        with pytest.raises(leveret.TimeoutError) as caught:
            ticket.wait(timeout)
        assert time.monotonic() - start >= timeout
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status == leveret.Status.TIMED_OUT
    for wait in (leveret.wait_any, leveret.wait_all):
        with pytest.raises(leveret.TimeoutError):
            wait([ticket], 0.01)
    with pytest.raises(leveret.TimeoutError):
        list(leveret.as_completed([ticket], 0.01))
    with pytest.raises(leveret.TimeoutError):
        threads.wait_for_completion(0.01)
    assert not ticket.done()
    gate.open()
    ticket.wait(30)


def test_wait_any_and_as_completed(runtime: leveret.Runtime) -> None:
    tickets = [runtime.submit(SUM, np.full(4, i, np.float64)) for i in range(20)]
    first = leveret.wait_any(tickets, 60)
    assert first in tickets
    assert first.result() == 4 * tickets.index(first)
    seen = list(leveret.as_completed([*tickets, *tickets], 60))
    assert len(seen) == 20
    assert set(seen) == set(tickets)
    leveret.wait_all(tickets, 60)
    assert leveret.wait_any(iter(tickets)) in tickets


def test_waiting_for_nothing(threads: leveret.Runtime) -> None:
    leveret.wait_all([])
    assert list(leveret.as_completed([])) == []
    with pytest.raises(ValueError, match="at least one"):
        leveret.wait_any([])
    with pytest.raises(TypeError, match="Ticket"):
        leveret.wait_any([3])  # type: ignore[list-item]
    with leveret.Runtime(workers=1) as other:
        both = [threads.submit(NULL), other.submit(NULL)]
        with pytest.raises(ValueError, match="different runtimes"):
            leveret.wait_any(both)
        leveret.wait_all(both, 60)


def test_wait_all_raises_the_first_by_position(runtime: leveret.Runtime, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    tickets = [runtime.submit(fail, code) for code in (0, 4, 0, 9)]
    with pytest.raises(leveret.TaskFailed, match="first of 2") as caught:
        leveret.wait_all(tickets, 60)
    assert (caught.value.code, caught.value.failures) == (4, 2)
    tickets[0].wait()
    with pytest.raises(leveret.TaskFailed) as again:
        tickets[3].result()
    assert again.value.code == 9


def test_after(runtime: leveret.Runtime, library: Path) -> None:
    increment = leveret.load(library, "increment", "inout i8")
    counter = np.zeros(1, np.int64)
    last = runtime.submit(increment, counter)
    for _ in range(50):
        last = runtime.submit(increment, counter, after=last)
    last.wait(60)
    assert counter[0] == 51


@pytest.mark.parametrize("count", [1, 32, 33, 64, 200])
def test_after_many(runtime: leveret.Runtime, library: Path, count: int) -> None:
    fill = leveret.load(library, "fill_block", "f8, out f8, rows(1), count(1), stride(1)")
    x = np.zeros(count)
    tickets = [runtime.submit(fill, 1.0, x[i : i + 1]) for i in range(count)]
    assert runtime.submit(SUM, x, after=[*tickets, *tickets]).result(60) == count


def test_dependency_failed(runtime: leveret.Runtime, library: Path) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    first = runtime.submit(fail, 1)
    second = runtime.submit(NULL, after=first)
    third = runtime.submit(NULL, after=[second])
    for ticket in (second, third):
        with pytest.raises(leveret.DependencyFailed):
            ticket.wait(60)
    with pytest.raises(leveret.TaskFailed):
        first.wait(60)
    late = runtime.submit(NULL, after=first)  # its outcome is known already
    with pytest.raises(leveret.DependencyFailed):
        late.wait(60)
    assert late.done()


def test_after_of_another_runtime(threads: leveret.Runtime) -> None:
    with leveret.Runtime(workers=1) as other:
        with pytest.raises(ValueError, match="another runtime"):
            threads.submit(NULL, after=other.submit(NULL))
        with pytest.raises(ValueError, match="another runtime"):
            threads.submit(NULL, locks=other.mutex())
    with pytest.raises(TypeError):
        threads.submit(NULL, locks=[3])  # type: ignore[list-item]


def test_locks_exclude(threads: leveret.Runtime, library: Path) -> None:
    increment = leveret.load(library, "increment", "inout i8")
    counter = np.zeros(1, np.int64)
    mutex = threads.mutex()
    tickets = [threads.submit(increment, counter, locks=mutex) for _ in range(500)]
    leveret.wait_all(tickets, 60)
    assert counter[0] == 500


def test_cancel(library: Path, gate: Gate) -> None:
    with leveret.Runtime(workers=1, wait="park") as runtime:
        running = gate.submit(runtime)
        waiting = runtime.submit(NULL, after=running)
        assert waiting.cancel()
        gate.open()  # the request is looked at when the task's turn comes
        with pytest.raises(leveret.Cancelled):
            waiting.wait(30)
        assert waiting.cancel()
        running.wait(30)
        assert not running.cancel()


def test_a_dropped_failure_is_reported(threads: leveret.Runtime, library: Path, gate: Gate) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    held = gate.submit(threads)
    threads.submit(fail, 6, after=held)
    gate.open()
    with pytest.raises(leveret.TaskFailed) as caught:
        threads.wait_for_completion(60)
    assert caught.value.code == 6
    assert "a task whose Ticket was dropped: returned 6" in str(caught.value)
    threads.wait_for_completion(60)


def test_a_failure_that_is_dropped_afterwards_is_reported(
    runtime: leveret.Runtime, library: Path
) -> None:
    ticket = runtime.submit(leveret.load(library, "fail_with", "i4 -> int"), 6)
    while not ticket.done():
        pass
    del ticket
    with pytest.raises(leveret.TaskFailed):
        runtime.wait_for_completion(60)


def test_the_end_of_the_block_reports_a_dropped_failure(library: Path, gate: Gate) -> None:
    fail = leveret.load(library, "fail_with", "i4 -> int")
    runtime = leveret.Runtime(workers=1, wait="park")
    with pytest.raises(leveret.TaskFailed), runtime:
        runtime.submit(fail, 6, after=gate.submit(runtime))
        gate.open()
    assert runtime.closed


def test_many_threads_wait_for_one_ticket(threads: leveret.Runtime, gate: Gate) -> None:
    ticket = gate.submit(threads)
    results: list[str] = []

    def wait(how: int) -> None:
        if how % 3 == 0:
            ticket.wait(30)
        elif how % 3 == 1:
            leveret.wait_any([ticket], 30)
        else:
            leveret.wait_all([ticket], 30)
        results.append("done")

    waiters = [threading.Thread(target=wait, args=(i,)) for i in range(9)]
    for waiter in waiters:
        waiter.start()
    with pytest.raises(leveret.TimeoutError):
        ticket.wait(0)
    gate.open()
    for waiter in waiters:
        waiter.join(30)
    assert results == ["done"] * 9


def test_submit_after_a_ticket_that_another_thread_waits_for(
    threads: leveret.Runtime, library: Path
) -> None:
    for _ in range(30):
        gate = Gate(library)
        first = gate.submit(threads)
        waiter = threading.Thread(target=first.wait, args=(30,))
        waiter.start()
        opener = threading.Thread(target=gate.open)
        opener.start()
        threads.submit(NULL, after=first).wait(30)
        waiter.join(30)
        opener.join(30)


def test_submit_after_tickets_that_another_thread_consumes(threads: leveret.Runtime) -> None:
    """It runs, or the ticket's outcome is known: the other thread's wait makes it no failure."""
    boxes: queue.SimpleQueue[leveret.Ticket | None] = queue.SimpleQueue()

    def wait() -> None:
        while (ticket := boxes.get()) is not None:
            ticket.wait(60)

    waiter = threading.Thread(target=wait)
    waiter.start()
    try:
        for _ in range(3000):
            first = threads.submit(NULL)
            boxes.put(first)
            threads.submit(NULL, after=iter([first])).wait(60)
    finally:
        boxes.put(None)
        waiter.join(60)


def test_many_threads_submit(threads: leveret.Runtime) -> None:
    totals: list[float] = []

    def work() -> None:
        tickets = [threads.submit(SUM, np.ones(5)) for _ in range(200)]
        totals.append(sum(t.result(60) for t in leveret.as_completed(tickets, 60)))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert totals == [1000.0] * 6


def test_tickets_outlive_their_runtime(machine: str) -> None:
    with leveret.Runtime(machine, workers=1) as runtime:
        waited = runtime.submit(SUM, np.ones(2))
        left = runtime.submit(SUM, np.ones(3))
        waited.wait(60)
    del runtime
    assert waited.result() == 2
    assert left.done()
    assert left.result(60) == 3


def test_a_busy_python_thread_does_not_stop_tasks(threads: leveret.Runtime) -> None:
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(100))

    burner = threading.Thread(target=burn)
    burner.start()
    try:
        threads.submit_bulk(NULL, count=10_000).wait(60)
    finally:
        stop.set()
        burner.join(30)


def run_python(code: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    "wait",
    [
        "ticket.wait()",
        "ticket.result(1000)",
        "leveret.wait_any([ticket])",
        "leveret.wait_all([ticket])",
        "runtime.wait_for_completion()",
        "runtime.close()",
    ],
)
def test_ctrl_c_ends_a_wait(library: Path, wait: str) -> None:
    code = f"""
import leveret, numpy as np, signal, threading, os, time
runtime = leveret.Runtime(workers=1, wait="park")
flag = np.zeros(1, np.int32)
ticket = runtime.submit(leveret.load({str(library)!r}, "wait_for_flag", "in i4 -> int"), flag)
start = time.monotonic()
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    {wait}
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start < 60)
flag[0] = 1
ticket.wait(30)
runtime.close(30)
"""
    done = run_python(code)
    assert done.stdout == "interrupted True\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_a_signal_handler_that_does_not_raise_lets_the_wait_go_on(
    threads: leveret.Runtime, gate: Gate
) -> None:
    calls: list[int] = []

    def handle(number: int, frame: object) -> None:
        calls.append(number)
        gate.open()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        ticket = gate.submit(threads)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        ticket.wait(30)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [signal.SIGUSR1]


def test_a_forked_child_is_told(library: Path) -> None:
    code = """
import leveret, os, warnings
warnings.simplefilter("ignore")
runtime = leveret.Runtime(workers=1)
ticket = runtime.submit(leveret.builtin("null"))
while runtime.counters()["parks"] == 0:  # no thread is in the middle of something
    pass
child = os.fork()
if child == 0:
    for call in (lambda: runtime.submit(leveret.builtin("null")), ticket.wait, runtime.counters):
        try:
            call()
        except leveret.Closed as error:
            assert "fork" in str(error), error
        else:
            os._exit(1)
    assert runtime.closed
    runtime.close()
    with leveret.Runtime(workers=1) as own:
        own.submit(leveret.builtin("null")).wait(30)
    del runtime, ticket
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ticket.wait(30)
runtime.close()
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("machine", ["threads", pytest.param("processes", marks=needs_processes)])
def test_a_child_of_multiprocessing_works_for_itself(machine: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""
import multiprocessing, os, sys
import numpy as np
import leveret
total = leveret.builtin("sum")
def child(runtime, said):
    try:
        runtime.submit(total, np.ones(10))
    except leveret.Closed:
        with leveret.Runtime({machine!r}, workers=2) as own:
            said.put(own.submit(total, np.ones(10)).result())
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with leveret.Runtime({machine!r}, workers=2) as runtime:
        first = runtime.submit(total, np.ones(10))
        said = context.Queue()
        process = context.Process(target=child, args=(runtime, said))
        process.start()
        assert said.get(timeout=60) == 10
        process.join(60)
        assert process.exitcode == 0
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # through the `with` block, and the interpreter's end
        assert os.waitpid(pid, 0)[1] == 0
        assert first.result() == runtime.submit(total, np.ones(10)).result() == 10
        assert runtime.counters()["deaths"] == 0
""")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_leaving_without_closing(library: Path) -> None:
    done = run_python(
        "import leveret, numpy as np\n"
        "runtime = leveret.Runtime(workers=2)\n"
        "tickets = [runtime.submit(leveret.builtin('sum'), np.ones(10)) for _ in range(100)]\n"
        "bulk = runtime.submit_bulk(leveret.builtin('null'), count=100000)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_deadlocks_are_refused() -> None:
    """A task that waits for itself, through a Python callback."""
    code = """
import ctypes, leveret
runtime = leveret.Runtime(workers=1)
box, seen = [], []
def body():
    while not box:
        pass
    try:
        box[0].wait()
    except leveret.WouldDeadlock as error:
        seen.append(error.status)
callback = ctypes.CFUNCTYPE(None)(body)
box.append(runtime.submit(leveret.procedure(callback, "")))
box[0].wait(30)
runtime.close()
assert seen == [leveret.Status.WOULD_DEADLOCK], seen
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("outer", ["ticket.wait(30)", "leveret.wait_any([ticket], 30)"])
@pytest.mark.parametrize("others", ["", ", runtime.submit(leveret.builtin('null'), after=ticket)"])
def test_a_handler_that_waits_for_the_ticket_of_the_wait_below(outer: str, others: str) -> None:
    code = f"""
import leveret, signal, sys
def handle(number, frame):
    tickets = [ticket{others}]
    for wait in (leveret.wait_any, lambda some: next(leveret.as_completed(some))):
        try:
            found.append(wait(tickets) in tickets)
        except leveret.WouldDeadlock:
            found.append(len(tickets) == 1)
found = []
signal.signal(signal.SIGALRM, handle)
with leveret.Runtime(workers=1, wait="park") as runtime:
    ticket = runtime.submit(leveret.builtin("spin"), 500_000_000)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    {outer}
    assert found == [True, True], found
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
