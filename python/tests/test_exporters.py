"""Arguments whose classes are told, in Python, when their memory is given back."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from conftest import wait_until

import leveret

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="classes export no buffers before Python 3.12"
)


class Memory:
    """Calls its runtime when its export ends."""

    def __init__(self, runtime: leveret.Runtime) -> None:
        self.runtime = runtime
        self.place = bytearray(64)
        self.exports = 0

    def __buffer__(self, flags: int) -> Any:
        self.exports += 1
        return memoryview(self.place).cast("d")

    def __release_buffer__(self, view: memoryview) -> None:
        self.exports -= 1
        self.runtime.submit(leveret.builtin("null")).wait()
        view.release()


def test_an_export_ends_once_though_its_end_calls_the_runtime() -> None:
    scale = leveret.builtin("scale")
    with leveret.Runtime(workers=1) as runtime:
        given: list[Any] = [Memory(runtime) for _ in range(20)]
        for each in given:
            ticket = runtime.submit(scale, 2.0, each)
            wait_until(ticket.done)
            ticket.wait()
        assert [each.exports for each in given] == [0] * len(given)
