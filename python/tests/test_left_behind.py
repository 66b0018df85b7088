"""What a call leaves in its process: later calls there are not ended by it, nor led astray."""

from __future__ import annotations

import functools
import importlib
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes

LONG = 3600


def process() -> str:
    return str(Path("/proc/self").readlink())


def set_alarm(_: object = None) -> int:
    """The seconds that were left of an earlier one."""
    return signal.alarm(LONG)


def set_alarm_and_fail() -> None:
    signal.setitimer(signal.ITIMER_REAL, LONG, LONG)
    raise ValueError("with a timer")


def alarm_left() -> bool:
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def test_a_timer_ends_with_its_call() -> None:
    with ProcessExecutor(1, preload=()) as executor:
        assert executor.submit(set_alarm).result() == 0
        assert not executor.submit(alarm_left).result()
        assert isinstance(executor.submit(set_alarm_and_fail).exception(), ValueError)
        assert not executor.submit(alarm_left).result()
        assert list(executor.map(set_alarm, range(8), chunksize=4)) == [0] * 8
        assert list(executor.map(functools.partial(set_alarm), range(8), chunksize=4)) == [0] * 8


def test_a_timer_of_the_initializer_is_for_all_calls() -> None:
    with ProcessExecutor(1, preload=(), initializer=signal.alarm, initargs=(LONG,)) as executor:
        assert all(executor.submit(alarm_left).result() for _ in range(2))


# What code in a worker calls for each call, from modules that a program may change.
NAMES = (
    ("_thread", ("_count",)),
    ("mmap", ("mmap",)),
    ("os", ("close", "fstat", "ftruncate", "getpid", "memfd_create", "open", "read", "write")),
    ("pickle", ("dumps", "loads", "Pickler", "Unpickler")),
    ("struct", ("Struct", "pack", "unpack")),
    ("time", ("monotonic", "perf_counter", "perf_counter_ns", "sleep", "time")),
    ("zlib", ("crc32",)),
)


def replace(module: str, names: tuple[str, ...]) -> str:
    for name in names:
        setattr(importlib.import_module(module), name, None)
    return process()


def hide_modules() -> str:
    sys.path.clear()
    sys.path_importer_cache.clear()
    return process()


def test_a_large_result_where_no_module_is_found() -> None:
    with ProcessExecutor(1, preload=(), max_attempts=1) as executor:
        where = executor.submit(hide_modules).result()
        large: Any = executor.submit(bytearray, 3 << 20).result()
        assert len(large) == 3 << 20
        assert executor.submit(process).result() == where


def fail() -> None:
    raise KeyError("mine")


def take_memory() -> None:
    def reply(*_: object) -> None:
        raise MemoryError

    calls: Any = importlib.import_module("leveret.worker.calls")
    calls._reply = reply


def test_a_process_without_memory_is_said_to_be_one() -> None:
    with ProcessExecutor(1, preload=(), max_attempts=1) as executor:
        error = executor.submit(take_memory).exception()
        assert isinstance(error, leveret.TaskFailed)
        assert "no memory left" in str(error) and "worker_memory" in str(error)
        assert executor.submit(abs, -1).result() == 1


@pytest.mark.parametrize(("module", "names"), NAMES, ids=[module for module, _ in NAMES])
def test_what_a_call_puts_into_modules_is_nothing_to_others(
    module: str, names: tuple[str, ...]
) -> None:
    with ProcessExecutor(1, preload=(), max_attempts=1) as executor:
        where = executor.submit(replace, module, names).result()
        assert executor.submit(process).result() == where
        offset = 3
        assert list(executor.map(lambda i: i + offset, range(100), chunksize=50)) == [
            i + offset for i in range(100)
        ]
        assert executor.submit(len, bytearray(1 << 20)).result() == 1 << 20
        large: Any = executor.submit(bytearray, 3 << 20).result()
        assert len(large) == 3 << 20
        assert isinstance(executor.submit(fail).exception(), KeyError)
        assert executor.submit(process).result() == where
