"""ProcessExecutor in calls of a ProcessExecutor: possible, but not without an end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import needs_processes

pytestmark = needs_processes

# As a program that has no `if __name__`, imported by another: its workers import it for f.
LIBRARY = """
import leveret

def f(i):
    return i + 1

with leveret.ProcessExecutor(1, preload=()) as executor:
    print(executor.submit(f, 1).result(), flush=True)
"""


def test_a_module_that_opens_an_executor_when_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    run = [sys.executable, "-c", "import library"]
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.strip().splitlines()
    last = [each for each in lines if each.startswith("leveret.errors.Unavailable: ")][-1]
    assert "8 deep" in last and "if __name__ == '__main__':" in last
    assert last in lines[-2:]  # from Python 3.11 on a note says where it was raised


def test_executors_in_calls_work() -> None:
    program = """
import leveret

def deep(n):
    if n == 0:
        return 0
    with leveret.ProcessExecutor(1, preload=()) as executor:
        return 1 + executor.submit(deep, n - 1).result()

print(deep(3))
"""
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "3\n", done.stderr
