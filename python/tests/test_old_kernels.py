"""Kernels, and containers, that lack a system call: what works there, and what is said.

A filter answers the call with "no such call", as an older kernel would. The table is that of
docs/how-to/install.md.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest
from conftest import needs_processes

import leveret

NUMBERS = {
    "x86_64": {"seccomp": 317, "userfaultfd": 323, "membarrier": 324},
    "aarch64": {"seccomp": 277, "userfaultfd": 282, "membarrier": 283},
}.get(platform.machine())
if NUMBERS is not None:
    NUMBERS |= {"pidfd_open": 434, "close_range": 436, "futex_waitv": 449}

pytestmark = [
    needs_processes,
    pytest.mark.skipif(NUMBERS is None, reason="numbers of system calls are not known here"),
]

PROGRAM = """
import ctypes, json, os, struct, sys
import numpy as np

number = int(sys.argv[1])
program = b"".join(struct.pack("HBBI", *each) for each in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7FFF0000)))
code = ctypes.create_string_buffer(program)

class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

libc = ctypes.CDLL(None)
given = Filter(4, ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(given), 0, 0):
    sys.exit(77)

import leveret

def outcome(machine, **options):
    y = np.ones(10)
    try:
        with leveret.Runtime(machine, workers=1, **options) as runtime:
            runtime.submit(leveret.builtin("axpy"), 2.0, np.ones(10), y).wait()
    except leveret.LeveretError as error:
        return f"{type(error).__name__}: {error}"
    return bool((y == 3).all())

def die(number):
    if number == 1:
        os.kill(os.getpid(), 11)
    return number

def crash():
    try:
        with leveret.ProcessExecutor(1, max_attempts=2) as executor:
            futures = [executor.submit(die, number) for number in range(3)]
            kinds = [type(future.exception()) for future in futures]
            return kinds == [type(None), leveret.Poison, type(None)]
    except leveret.LeveretError as error:
        return f"{type(error).__name__}: {error}"

said = {each.name: each.unavailable for each in leveret.machines()}
print(json.dumps({
    "said": said["processes"],
    "threads": outcome("threads"),
    "processes": outcome("processes"),
    "confined": outcome("processes", isolation="confined"),
    "pool": outcome("processes", pool=f"old-kernel-{os.getpid()}"),
    "executor": crash(),
}))
"""
# What is refused without a call, and which word the sentence has.
REFUSED = {
    "seccomp": {"confined": "seccomp"},
    "userfaultfd": {},
    "membarrier": {},
    "pidfd_open": dict.fromkeys(("processes", "confined", "pool", "executor"), "Linux 5.3"),
    "close_range": {},
    "futex_waitv": {},  # a worker of a shared pool sleeps on one word
}


def run_without(call: str) -> dict[str, object]:
    assert NUMBERS is not None
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(NUMBERS.get(call, 100_000))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode == 77:
        pytest.skip("this process may not set a filter")
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert isinstance(read, dict)
    return read


@pytest.fixture(scope="module")
def works_here() -> dict[str, object]:
    """What this kernel can do when nothing is hidden."""
    return run_without("nothing")


@pytest.mark.parametrize("call", sorted(REFUSED))
def test_a_kernel_without(call: str, works_here: dict[str, object]) -> None:
    read = run_without(call)
    for what, outcome in read.items():
        if what == "said":
            continue
        word = REFUSED[call].get(what)
        if word is None:
            assert outcome == works_here[what], what
        elif works_here[what] is True:
            assert str(outcome).startswith(leveret.Unavailable.__name__), what
            assert word in str(outcome), what
    assert (read["said"] is None) == ("processes" not in REFUSED[call])
