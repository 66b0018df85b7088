"""What the system tells of any process: /proc/PID/stat."""

from __future__ import annotations

from pathlib import Path

STATE, PARENT, GROUP, SESSION = range(4)


def stat_of(pid: int | str) -> list[str]:
    """The words behind a process's name, by STATE and so on; none when it is gone."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return told.rpartition(b")")[2].decode("ascii").split()  # the name may be any bytes


def parent_of(pid: int) -> int:
    """The number of its parent; 0 when there is no such process."""
    found = stat_of(pid)
    return int(found[PARENT]) if found else 0
