"""The command `leveret`: info, demo, run, top, bench, trace.

Exit codes: 0 done, 1 a task failed or a result was wrong, 2 wrong usage, 3 something is missing
here (a machine, a file that cannot be written, a module), 124 the time was over, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Callable

from .missing import CLI, is_missing


def main() -> None:
    """Runs the command line; without what it is made of, one sentence says what to install."""
    if is_missing("typer", "rich"):
        sys.stderr.write(f"leveret: {CLI}\n")
        sys.exit(3)
    from leveret_command import quiet_interrupts

    with quiet_interrupts():
        from .commands import app
    _run(app)


def _run(app: Callable[..., object]) -> None:
    """Runs it; where its output can go nowhere a sentence says so, and no traceback."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (until the end)
    if sys.stdout is None:
        sys.exit(cannot_write("it is closed"))
    for stream in (sys.stdout, sys.stderr):  # what they cannot say is written as \\u and a number
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="leveret")
        sys.stdout.flush()
    except SystemExit:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            raise
        sys.exit(cannot_write("no space is left, or nobody reads it"))
    except OSError as error:
        sys.exit(cannot_write(error.strerror or str(error)))
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):  # or it fails again at the end, where the code becomes 120
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123


def cannot_write(why: str) -> int:
    """What is left to be written must not fail again at the end of the process."""
    with contextlib.suppress(OSError):  # where nobody can be told, the code says it
        sys.stderr.write(f"leveret: cannot write to standard output: {why}\n")
        sys.stderr.flush()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
    return 3


__all__ = ["cannot_write", "main"]
