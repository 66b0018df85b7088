"""The standard library's own tests of executors, where its test package is installed.

They ask a ProcessExecutor what they ask the executors there. Left out is what looks into those, or
starts programs that import them by name.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import works

import leveret
from leveret.executor.future import Future

PACKAGE = "test.test_concurrent_futures"
PARTS = [  # before 3.12 all of it is one module
    "executor",
    "test_as_completed",
    "test_deadlock",
    "test_future",
    "test_init",
    "test_process_pool",
    "test_shutdown",
    "test_wait",
    "util",
]
SECONDS_MAX = 60.0


def theirs() -> Any:
    package = importlib.import_module(PACKAGE)
    names = dict(vars(package))
    if hasattr(package, "__path__"):
        for part in PARTS:
            names.update(vars(importlib.import_module(f"{PACKAGE}.{part}")))
    return SimpleNamespace(**{name: each for name, each in names.items() if name[0] != "_"})


try:
    own = theirs()
except ImportError as why:
    pytest.skip(f"Python's own tests are not installed: {why}", allow_module_level=True)

if not works("processes"):
    pytest.skip("processes do not work here", allow_module_level=True)

AsCompletedTests: Any = own.AsCompletedTests
BaseTestCase: Any = own.BaseTestCase
ExecutorDeadlockTest: Any = own.ExecutorDeadlockTest
ExecutorMixin: Any = own.ExecutorMixin
ExecutorShutdownTest: Any = own.ExecutorShutdownTest
ExecutorTest: Any = own.ExecutorTest
InitializerMixin: Any = own.InitializerMixin
WaitTests: Any = own.WaitTests


class Mixin(ExecutorMixin):  # type: ignore[misc]
    executor_type: Any = leveret.ProcessExecutor

    def get_context(self) -> Any:
        return multiprocessing.get_context("spawn")


class TestExecutor(Mixin, ExecutorTest, BaseTestCase):  # type: ignore[misc]
    test_map_chunksize = own.ProcessPoolExecutorTest.test_map_chunksize
    test_max_tasks_early_shutdown = getattr(  # from 3.11 on
        own.ProcessPoolExecutorTest, "test_max_tasks_early_shutdown", None
    )


class TestWait(Mixin, WaitTests, BaseTestCase):  # type: ignore[misc]
    pass


class TestAsCompleted(Mixin, AsCompletedTests, BaseTestCase):  # type: ignore[misc]
    pass


class TestInitializer(InitializerMixin, Mixin, BaseTestCase):  # type: ignore[misc]
    pass


class TestShutdown(Mixin, ExecutorShutdownTest, BaseTestCase):  # type: ignore[misc]
    test_interpreter_shutdown = None
    test_submit_after_interpreter_shutdown = None
    test_hang_gh83386 = None
    test_hang_issue39205 = None  # the same before 3.11


class TestCrashes(Mixin, ExecutorDeadlockTest, BaseTestCase):  # type: ignore[misc]
    """A call that ends as badly as they can think of fails, and the executor goes on."""

    worker_count = 2
    test_crash_big_data = None
    test_gh105829_should_not_deadlock_if_wakeup_pipe_full = None
    test_shutdown_deadlock = None
    test_shutdown_deadlock_pickle = None

    def _check_crash(self, error: type, function: Any, *args: Any, **_: Any) -> None:
        ended = self.executor.submit(function, *args).exception(SECONDS_MAX)
        self.assertIsInstance(ended, BaseException)
        if error is not own.BrokenProcessPool:  # which ours is not for one call
            self.assertIsInstance(ended, error)
        self.assertEqual(self.executor.submit(pow, 2, 8).result(SECONDS_MAX), 256)


class TestFuture(own.FutureTests):  # type: ignore[misc, name-defined]
    """With futures of a ProcessExecutor in the place of theirs."""

    test_done_callback_raises = None  # read what is logged from stderr, which pytest keeps
    test_done_callback_raises_already_succeeded = None

    @pytest.fixture(autouse=True)
    def ours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = sys.modules[own.FutureTests.__module__]
        for module in (asked, sys.modules[own.create_future.__module__]):
            monkeypatch.setattr(module, "Future", Future)
        for name, each in list(vars(asked).items()):
            if name.endswith("_FUTURE"):
                made = own.create_future(each._state, each._exception, each._result)
                assert type(made) is Future
                monkeypatch.setattr(asked, name, made)
