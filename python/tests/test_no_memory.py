"""Where there is no memory, nothing is lost: whatever allocation of a call it is that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("no_memory.cpp")

PROGRAM = """
import array, ctypes, sys
import leveret

preloaded = ctypes.CDLL(sys.argv[1])
failed = 0


def without_memory(call, at):
    # True: it failed.
    preloaded.fail_at(at)
    try:
        call()
    except MemoryError:
        return True
    finally:
        preloaded.fail_at(0)
    return False


def is_exported(a):
    try:
        a.append(0.0)
    except BufferError:
        return True
    a.pop()
    return False


def submits(runtime, writes, submit, at):
    # Nobody writes to memory that is not exported.
    a = array.array("d", [0.0])
    before = runtime.counters()["submitted"]
    preloaded.open_gate(0)
    has_failed = without_memory(lambda: kept.append(submit(runtime, writes, a)), at)
    is_kept, is_submitted = is_exported(a), runtime.counters()["submitted"] > before
    preloaded.open_gate(1)
    runtime.wait_for_completion()
    assert is_kept == is_submitted, at
    kept.clear()
    return has_failed


def waits(runtime, writes, at):
    # A ticket gives its outcome, whatever was raised before.
    arrays = [array.array("d", [0.0]) for _ in range(3)]
    preloaded.open_gate(0)
    tickets = [runtime.submit(writes, a) for a in arrays]
    has_failed = without_memory(lambda: wait_shortly(tickets), at)
    preloaded.open_gate(1)
    leveret.wait_all(tickets, timeout=60)
    assert [a[0] for a in arrays] == [1.0] * 3
    return has_failed


def wait_shortly(tickets):
    try:
        leveret.wait_any(tickets, timeout=0)
    except leveret.TimeoutError:
        pass


kept = []
ways = {
    "quick": lambda runtime, writes, a: runtime.submit(writes, a),
    "options": lambda runtime, writes, a: runtime.submit(writes, a, priority=1),
    "bulk": lambda runtime, writes, a: runtime.submit_bulk(writes, [(a,)]),
}
with leveret.Runtime("threads", workers=2) as runtime:
    writes = leveret.procedure(preloaded.writes_later, "inout f8", name="writes_later")
    steps = {
        **{way: lambda at, way=way: submits(runtime, writes, ways[way], at) for way in ways},
        "wait_any": lambda at: waits(runtime, writes, at),
    }
    step = steps[sys.argv[2]]
    assert not step(0)
    at = 1
    while step(at):
        at += 1
    assert at > 1, "no allocation was seen"
print("passed")
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    if "LD_PRELOAD" in os.environ or sys.platform != "linux":
        pytest.skip("nothing can be preloaded here")
    path = tmp_path_factory.mktemp("no_memory") / "no_memory.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True)
    return path


@pytest.mark.parametrize("way", ["quick", "options", "bulk", "wait_any"])
def test_an_allocation_that_fails(preloaded: Path, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(preloaded), way],
        env={**os.environ, "LD_PRELOAD": str(preloaded)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "passed\n", done.stderr
