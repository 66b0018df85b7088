"""ProcessExecutor: programs that end while they use executors, or begin to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes

pytestmark = needs_processes

OPENS = """
import atexit, weakref
import leveret
kept = []
def open_one():
    try:
        kept.append(leveret.ProcessExecutor(1))
    except leveret.Closed as why:
        print("refused:", why, flush=True)
class Thing: pass
thing = Thing()
"""
WAYS = {
    "a_function_of_atexit": "atexit.register(open_one)",
    "a_finalizer": "weakref.finalize(thing, open_one)",
    "beside_another": "kept.append(leveret.ProcessExecutor(1)); atexit.register(open_one)",
}


@pytest.mark.parametrize("name", WAYS)
def test_an_executor_that_is_opened_at_the_end_is_refused(name: str) -> None:
    command = [sys.executable, "-c", OPENS + WAYS[name]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "refused: cannot open an executor after interpreter shutdown" in done.stdout


INTERRUPTED = """
import os, signal, sys, threading
import leveret
def wait_long(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    os.rename(path, path + ".pid")
    threading.Event().wait(60)
    open(path + ".done", "w").close()
executors = [leveret.ProcessExecutor(1) for _ in range(2)]
calls = [each.submit(wait_long, sys.argv[1] + str(i)) for i, each in enumerate(executors)]
while not all(os.path.exists(f"{sys.argv[1]}{i}.pid") for i in range(2)):
    threading.Event().wait(0.01)
def interrupt():
    while not any(each._pool.is_shut_down for each in executors):
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
"""


def test_an_interrupt_at_the_end_ends_what_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "call")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode >= 0 and "KeyboardInterrupt" in done.stderr, done.stderr
    assert len(list(tmp_path.glob("*.pid"))) == 2 and not list(tmp_path.glob("*.done"))
    for path in tmp_path.glob("*.pid"):
        assert not Path("/proc", path.read_text()).exists(), "a worker outlives the program"
