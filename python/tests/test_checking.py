"""ProcessExecutor: options that make no sense are refused by name; numbers may be NumPy's."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from conftest import needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_workers": "2"}, TypeError, "max_workers must be an int, not '2'"),
        ({"max_workers": 2.0}, TypeError, "max_workers must be an int, not 2.0"),
        ({"max_workers": 0}, ValueError, "max_workers must be greater than 0"),
        ({"max_workers": 5000}, ValueError, "max_workers must be at most 1024, not 5000"),
        ({"max_tasks_per_child": 0}, ValueError, "max_tasks_per_child must be >= 1, not 0"),
        ({"max_tasks_per_child": "9"}, TypeError, "max_tasks_per_child must be an int, not '9'"),
        ({"max_attempts": -1}, ValueError, "max_attempts must be 1 to 1000, not -1"),
        ({"retry": "no"}, TypeError, "retry must be True or False, not 'no'"),
        ({"initargs": 3}, TypeError, "initargs must be a tuple of arguments, not 3"),
        ({"initargs": "ab"}, TypeError, "initargs must be a tuple of arguments, not 'ab'"),
        ({"cwd": 3}, TypeError, "cwd must be a path or None, not 3"),
        ({"timeout": "3"}, TypeError, "timeout must be None or a number of seconds, not '3'"),
        ({"timeout": float("nan")}, ValueError, "timeout must be None or a number of seconds > 0"),
        ({"idle_worker_timeout": -1}, ValueError, "idle_worker_timeout must be None or"),
    ],
)
def test_options_of_an_executor(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ProcessExecutor(**options)


Use = Callable[[Any], object]
WRONG: list[tuple[Use, type[Exception], str]] = [
    (lambda e: e.map(abs, [1], chunksize=2.5), TypeError, "chunksize must be an int, not 2.5"),
    (lambda e: e.map(abs, [1], chunksize=0), ValueError, "chunksize must be >= 1"),
    (lambda e: e.map(abs, [1], buffersize="3"), TypeError, "buffersize must be an integer or None"),
    (lambda e: e.map(abs, [1], timeout="1"), TypeError, "timeout must be a number of seconds"),
    (lambda e: e.submit_many(abs, [1], timeout="1"), TypeError, "timeout must be a number of"),
    (lambda e: e.options(timeout="1"), TypeError, "timeout must be a number of seconds, not '1'"),
    (lambda e: e.options(timeout=0), ValueError, "timeout must be None or above 0, not 0"),
    (lambda e: e.options(max_attempts=1.0), TypeError, "max_attempts must be an int, not 1.0"),
    (lambda e: e.options(priority=2**40), ValueError, "be -2147483648 to 2147483647, not"),
    (lambda e: e.options(retry=1), TypeError, "retry must be True or False, not 1"),
]


def test_options_of_calls_and_numpy_s_numbers() -> None:
    with ProcessExecutor(
        np.int64(1), max_tasks_per_child=np.int32(50), timeout=np.float64(60)
    ) as executor:
        for use, error, message in WRONG:
            with pytest.raises(error, match=message):
                use(executor)
        given: dict[str, Any] = {"timeout": np.float32(60), "max_attempts": np.int8(2)}
        given["retry"] = np.bool_(True)
        view = executor.options(**given, memory=np.uint64(1 << 30))
        assert view.submit(abs, -1).result(60) == 1
        sizes: dict[str, Any] = {"chunksize": np.int64(2), "buffersize": np.int16(3)}
        assert list(executor.map(abs, [-1, 2, -3], **sizes)) == [1, 2, 3]
