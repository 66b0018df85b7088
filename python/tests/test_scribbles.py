"""Workers that write where they should not: the host goes on, and every call has an end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEEP, needs_processes
from hypothesis import given
from hypothesis import strategies as st

import leveret
from leveret import ProcessExecutor
from leveret.wire.replies import ERROR, VALUE, Overwritten, read_reply, reply_size, write_reply
from leveret.wire.setup import HostSetup, WorkerSetup

pytestmark = needs_processes

HOST = Path(__file__).with_name("scribbling_host.py")
SECONDS = 240 if DEEP else 1


@pytest.mark.parametrize("where", ["lane", "heap", "all"])
def test_workers_that_write_all_over_what_is_shared(where: str) -> None:
    seed = os.urandom(3).hex() if DEEP else "0a"
    command = [sys.executable, str(HOST), str(int(seed, 16)), str(SECONDS), where]
    run = subprocess.run(  # noqa: PLW1510
        command, capture_output=True, text=True, timeout=SECONDS + 300
    )
    assert run.returncode == 0, f"{command}\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"


def overrun(array: Any, size: int) -> None:
    """Writes behind an array's end, or before it."""
    begin = array.ctypes.data + (array.nbytes if size > 0 else size)
    ctypes.memset(begin, 0xFF, abs(size))


@pytest.mark.parametrize("size", [64, 1 << 20, -4096, -(1 << 20)])
def test_an_overrun_of_a_shared_array_breaks_no_executor(size: int) -> None:
    arrays = [leveret.shared_array(1000) for _ in range(20)]
    with ProcessExecutor(2, initializer=abs, initargs=(-1,), max_tasks_per_child=5) as executor:
        error = executor.submit(overrun, arrays[10], size).exception(60)
        assert error is None or isinstance(error, leveret.Poison)
        assert list(executor.map(abs, range(-40, 0), chunksize=1)) == list(range(40, 0, -1))
    del arrays
    with ProcessExecutor(1) as executor:
        assert executor.submit(np.sum, leveret.shared_array(5000)).result(60) == 0


def a_reply(value: bytes, buffers: list[bytes]) -> bytearray:
    views = [memoryview(each) for each in buffers]
    place = bytearray(reply_size(len(value), views))
    write_reply(memoryview(place), VALUE, value, views, 17, len(place))
    return place


NONE = b"\x80\x05N."


@given(st.data(), st.integers(0, 3))
def test_a_reply_that_was_changed_is_told(data: st.DataObject, count: int) -> None:
    place = a_reply(NONE, [b"x" * 100] * count)
    assert read_reply(memoryview(bytes(place)))[:3] == (VALUE, None, 17)
    checked = reply_size(len(NONE), []) + 8 * count
    begin = data.draw(st.integers(0, checked - 1))
    bad = data.draw(st.binary(min_size=1, max_size=checked - begin))
    if place[begin : begin + len(bad)] == bad:
        return
    place[begin : begin + len(bad)] = bad
    with pytest.raises(Overwritten):
        read_reply(memoryview(place))


@pytest.mark.parametrize("fill", [0x00, 0xFF, 0x7F, 0x01])
def test_memory_full_of_one_byte_is_no_reply(fill: int) -> None:
    with pytest.raises(Overwritten):
        read_reply(memoryview(bytes([fill]) * 1024))


def test_an_error_is_checked_as_a_value_is() -> None:
    place = bytearray(1024)
    write_reply(memoryview(place), ERROR, NONE, [], 1, 50)
    place[20] ^= 1
    with pytest.raises(Overwritten):
        read_reply(memoryview(place))


def test_marks_that_nobody_meant_are_none() -> None:
    setup = HostSetup(b"something")
    marks = memoryview(setup._marks)
    for fill in (b"\xff", b"\x00", b"\x01"):
        marks[:] = fill * len(marks)
        assert not setup.has_marks()
    worker = WorkerSetup(*setup.place)
    assert worker.pickled == b"something"
    worker.mark(True)
    assert setup.has_marks()
    worker.mark(False)
    assert not setup.has_marks()
    setup.close()


def test_setup_of_a_host_that_hides_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leveret.wire.setup.shows_files", lambda: False)
    with ProcessExecutor(1, initializer=abs, initargs=(-1,)) as executor:
        assert executor.submit(abs, -2).result(60) == 2


def test_ctrl_c_while_a_result_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is heard, and the result is there all the same."""
    times: list[int] = []
    with ProcessExecutor(1) as executor:
        pool = executor._pool
        outcome = pool.ends.outcome

        def interrupted(*args: Any) -> Any:
            times.append(1)
            if len(times) == 1:
                signal.raise_signal(signal.SIGINT)
            return outcome(*args)

        monkeypatch.setattr(pool.ends, "outcome", interrupted)
        future = executor.submit(abs, -3)
        with pytest.raises(KeyboardInterrupt):
            while not times or not future.done():
                future.exception(60)
                abs(1)  # where an interrupt may arrive
            for _ in range(1000):
                abs(1)
        monkeypatch.undo()
        assert future.result(60) == 3
        assert executor.submit(abs, -4).result(60) == 4
        assert len(pool.running) == 0
