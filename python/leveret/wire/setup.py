"""The block of memory by which an executor tells its workers how to set themselves up."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

SETUP_MARKS = 4096  # bytes at its beginning: not 0 while an initializer runs in a process


class About(NamedTuple):
    """What workers know of the host."""

    pid: int
    replies: bytes  # the address of the socket for large replies; empty: none
    name: str = "MainProcess"  # as multiprocessing has it
    authkey: bytes = b""  # of multiprocessing, if it is imported


def about_this_process(replies: bytes) -> About:
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return About(os.getpid(), replies)
    me = process.current_process()
    return About(os.getpid(), replies, me.name, bytes(me.authkey))
