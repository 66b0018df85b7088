"""ProcessExecutor: locks, queues, values, proxies and shared memory of multiprocessing."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes

_given: list[Any] = []


def keep(*given: Any) -> None:
    _given[:] = given


def use_all(i: int) -> int:
    lock, queue, event, condition, value, numbers, semaphore = _given
    with lock, semaphore:
        value.value += i
    with condition:
        condition.notify_all()
    with numbers.get_lock():
        numbers[i % len(numbers)] += 1
    queue.put(i)
    event.set()
    return int(value.value)


def objects() -> tuple[Any, ...]:
    c = get_context("spawn")
    value, numbers = c.Value("i", 0), c.Array("d", 3)
    return c.Lock(), c.Queue(), c.Event(), c.Condition(), value, numbers, c.BoundedSemaphore(2)


def test_by_initargs() -> None:
    given = objects()
    with ProcessExecutor(2, initializer=keep, initargs=given) as executor:
        list(executor.map(use_all, range(1, 21), chunksize=1))
    _, queue, event, _, value, numbers, _ = given
    assert value.value == sum(range(1, 21)) and event.is_set() and sum(numbers) == 20
    assert sorted(queue.get(timeout=30) for _ in range(20)) == list(range(1, 21))


def put(queue: Any, item: object) -> object:
    queue.put(item)
    return item


def add(value: Any, lock: Any, n: int) -> None:
    with lock:
        value.value += n


def test_as_arguments() -> None:
    c = get_context("spawn")
    queue, value, lock = c.SimpleQueue(), c.RawValue("i", 0), c.RLock()
    with ProcessExecutor(2) as executor:
        assert executor.submit(put, queue, "text").result(30) == "text"
        assert queue.get() == "text"
        for future in [executor.submit(add, value, lock, i) for i in range(20)]:
            future.result(30)
        assert value.value == sum(range(20))
        reader, writer = c.Pipe(duplex=False)
        executor.submit(lambda: writer.send([1, 2])).result(30)
        assert reader.recv() == [1, 2]


def test_what_cannot_go_is_refused_at_once() -> None:
    c = get_context("fork")
    with ProcessExecutor(1) as executor:
        for each in (c.Lock(), c.Queue(), c.Event(), c.Value("i", 0), [c.Condition()]):
            error = executor.submit(id, each).exception(0)
            assert isinstance(error, pickle.PicklingError)
            assert "multiprocessing.get_context('spawn')" in str(error)
        error = executor.submit(id, get_context("spawn").Pipe()).exception(0)
        assert isinstance(error, pickle.PicklingError) and "Pipe(duplex=False)" in str(error)
        assert executor.submit(abs, -1).result(30) == 1
    with pytest.raises(pickle.PicklingError, match="get_context"):
        ProcessExecutor(1, initializer=keep, initargs=(c.Lock(),))


@pytest.fixture(scope="module")
def manager() -> Iterator[Any]:
    with get_context("spawn").Manager() as made:
        yield made


def append_to(values: Any, i: int) -> int:
    values.append(i)
    return len(values)


def test_proxies_of_a_manager(manager: Any) -> None:
    queue, values = manager.Queue(), manager.list()
    with ProcessExecutor(1, initializer=keep, initargs=(queue,)) as executor:
        assert executor.submit(put, queue, 1).result(30) == 1
        assert queue.get() == 1
        assert list(executor.map(append_to, [values] * 4, range(4))) == [1, 2, 3, 4]
        assert executor.submit(lambda: len(values)).result(30) == 4
        executor.submit(lambda: _given and None).result(30)
        back = executor.submit(lambda: values).result(30)
        assert list(back) == [0, 1, 2, 3]


def who() -> tuple[str, Any, Any]:
    parent = multiprocessing.parent_process()
    assert parent is not None
    return multiprocessing.current_process().name, parent.pid, parent.is_alive()


def test_a_worker_is_a_child_of_the_host() -> None:
    with ProcessExecutor(2) as executor:
        name, parent, is_alive = executor.submit(who).result(30)
    assert name.startswith("LeveretWorker-") and (parent, is_alive) == (os.getpid(), True)
    assert multiprocessing.current_process().name == "MainProcess"


def memory_of(segment: SharedMemory) -> Any:
    return segment.buf


def first_byte(name: str) -> int:
    segment = SharedMemory(name)
    value = memory_of(segment)[0]
    segment.close()
    return int(value)


def make_segment(value: int) -> str:
    segment = SharedMemory(create=True, size=1000)
    memory_of(segment)[0] = value
    segment.close()
    return segment.name


def test_shared_memory_is_there_after_the_worker() -> None:
    segment = SharedMemory(create=True, size=1000)
    try:
        memory_of(segment)[0] = 42
        with ProcessExecutor(1, max_tasks_per_child=1) as executor:
            for _ in range(2):
                assert executor.submit(first_byte, segment.name).result(30) == 42
            name = executor.submit(make_segment, 43).result(30)
        for found in (segment.name, name):
            assert first_byte(found) in (42, 43)
        made = SharedMemory(name)
        made.close()
        made.unlink()
    finally:
        segment.close()
        segment.unlink()
