"""ProcessExecutor: Ctrl-C, and handlers that end all, at each step of calls that are submitted."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DEEP, needs_processes

pytestmark = needs_processes

PROGRAM = Path(__file__).with_name("interrupted_calls.py")
BODIES = ["submits", "submits_by_options", "maps", "submits_many", "ends_a_map"]
STRIDE = 1 if DEEP else 32
STEPS_MIN = 150  # of the shortest body: a profile function that sees nothing is no test


@pytest.mark.parametrize("handler", ["interrupts", "terminates", "shuts_down"])
@pytest.mark.parametrize("body", BODIES)
def test_whatever_is_interrupted_ends(body: str, handler: str) -> None:
    first = random.randrange(STRIDE)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), body, handler, str(first), str(STRIDE)],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, (first, done.stderr)
    assert int(done.stdout) >= STEPS_MIN
