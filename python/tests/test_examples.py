"""The examples in Python run, and say what they should."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


@needs_processes
@pytest.mark.skipif(not EXAMPLES.exists(), reason="only the package is here")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_molecules() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "molecules.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["CCO", "3"]
    assert lines[2].startswith("CC%9") and "signal 11 (SIGSEGV)" in lines[2]
    assert lines[4].startswith("C((C") and "ran longer than" in lines[4]
    assert lines[6].startswith("CC[O]") and "signal 6 (SIGABRT)" in lines[6]
