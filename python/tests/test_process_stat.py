"""What the system tells of any process."""

from __future__ import annotations

import os
import subprocess
import sys

from leveret.process_stat import STATE, parent_of, stat_of

NAMED = r"""
with open("/proc/self/comm", "wb") as file:
    file.write(b"\xfc) Z (1 \xc3")
print(flush=True)
input()
"""


def test_a_process_may_have_any_name() -> None:
    """Linux cuts a long one off after 15 bytes, also in the middle of a character."""
    command = [sys.executable, "-c", NAMED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        assert parent_of(process.pid) == os.getpid() and stat_of(process.pid)[STATE] in "RSD"
        process.communicate(b"\n")
    assert parent_of(process.pid) == 0
