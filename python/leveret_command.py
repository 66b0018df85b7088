"""What the command `leveret` starts: loads the command line so that Ctrl-C meanwhile is quiet.

It stands beside the package and not in it: the package itself takes time to load.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


def _leave(*_: object) -> None:
    os.write(2, b"leveret: interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """While modules are loaded, Ctrl-C ends the process with one line in place of a traceback.

    A KeyboardInterrupt would not do: what is being loaded may take it for a module that is missing.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, or somebody else's
        return
    try:
        signal.signal(signal.SIGINT, _leave)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Entry point of the console script."""
    with quiet_interrupts():
        from leveret.cli import main as run
    run()
