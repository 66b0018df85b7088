"""Options whose names are not known: an error that says which one may be meant."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor

Called = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_worker", "max_workers"),
        ("time_out", "timeout"),
        ("initialiser", "initializer"),
        ("preloads", "preload"),
        ("worker_memoy", "worker_memory"),
    ],
)
def test_of_an_executor(name: str, meant: str) -> None:
    text = rf"ProcessExecutor\(\) has no option '{name}'; did you mean '{meant}'\?"
    with pytest.raises(TypeError, match=text):
        ProcessExecutor(**{name: 1})  # type: ignore[arg-type]


def test_of_a_runtime() -> None:
    with pytest.raises(TypeError, match=r"Runtime\(\) has no option 'worker'; did you mean 'work"):
        leveret.Runtime("threads", worker=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option 'zzz'; there are machine, workers, staging"):
        leveret.Runtime(zzz=2)  # type: ignore[call-arg]


def test_of_submit() -> None:
    x = leveret.shared_array(2)
    with leveret.Runtime("threads", workers=1) as runtime:
        with pytest.raises(
            TypeError, match=r"no option 'priorty'; did you mean 'priority'\? \(the task"
        ):
            runtime.submit(leveret.builtin("sum"), x, priorty=1)  # type: ignore[call-arg]
        assert runtime.submit(leveret.builtin("sum"), x).result() == 0


@needs_processes
def test_of_maps_and_views(pool: ProcessExecutor) -> None:
    view = pool.options(name="one")
    for each in (pool, view):
        for method in ("map", "submit_many", "stream"):
            text = rf"{method}\(\) has no option 'chunk_size'; did you mean 'chunksize'\?"
            with pytest.raises(TypeError, match=text):
                getattr(each, method)(abs, [1], chunk_size=2)
        with pytest.raises(TypeError, match="no option 'cancel_future'; did you mean 'cancel_fu"):
            each.shutdown(cancel_future=True)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"options\(\) has no option 'time'; did you mean 'tim"):
            each.options(time=1)  # type: ignore[call-arg]
    assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize(
    ("function", "option"),
    [
        (ProcessExecutor, "idle_worker_timeout"),
        (leveret.Runtime, "task_timeout"),
        (ProcessExecutor.map, "on_poison"),
        (ProcessExecutor.stream, "chunksize"),
    ],
)
def test_signatures_stay_readable(function: Called, option: str) -> None:
    assert option in inspect.signature(function).parameters
    assert "given" not in inspect.signature(function).parameters
    assert function.__doc__
