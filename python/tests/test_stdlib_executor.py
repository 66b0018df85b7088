"""The standard library's own tests of executors, where its test package is installed (3.12 on)."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import works

import leveret

try:
    from test.test_concurrent_futures.executor import (  # type: ignore[import-not-found]
        ExecutorTest,
    )
    from test.test_concurrent_futures.test_as_completed import (  # type: ignore[import-not-found]
        AsCompletedTests,
    )
    from test.test_concurrent_futures.test_wait import (  # type: ignore[import-not-found]
        WaitTests,
    )
    from test.test_concurrent_futures.util import (  # type: ignore[import-not-found]
        BaseTestCase,
        ExecutorMixin,
    )
except ImportError:
    pytest.skip("Python's own tests are not installed", allow_module_level=True)

if not works("processes"):
    pytest.skip("processes do not work here", allow_module_level=True)


class Mixin(ExecutorMixin):  # type: ignore[misc]
    executor_type: Any = leveret.ProcessExecutor


class TestExecutor(Mixin, ExecutorTest, BaseTestCase):  # type: ignore[misc]
    pass


class TestWait(Mixin, WaitTests, BaseTestCase):  # type: ignore[misc]
    pass


class TestAsCompleted(Mixin, AsCompletedTests, BaseTestCase):  # type: ignore[misc]
    pass
