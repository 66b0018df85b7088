"""The command `leveret`: info, demo, run, top, bench, trace.

Exit codes: 0 done, 1 a task failed or a result was wrong, 2 wrong usage, 3 something is missing
here (a machine, a file that cannot be written, a module), 124 the time was over, 130 interrupted.
"""

from __future__ import annotations

import sys

from .missing import CLI, is_missing


def main() -> None:
    """Runs the command line; without what it is made of, one sentence says what to install."""
    if is_missing("typer", "rich"):
        sys.stderr.write(f"leveret: {CLI}\n")
        sys.exit(3)
    from leveret_command import quiet_interrupts

    with quiet_interrupts():
        from .commands import app
    app(prog_name="leveret")


__all__ = ["main"]
