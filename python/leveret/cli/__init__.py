"""The command `leveret`: info, demo, run, top, bench, trace.

Exit codes: 0 done, 1 a task failed or a result was wrong, 2 wrong usage, 3 something is missing
here (a machine, a file that cannot be written), 124 the time was over, 130 interrupted.
"""

from __future__ import annotations

import typer

from .. import __version__
from . import bench, demo, info, run, top, trace

app = typer.Typer(
    name="leveret",
    help="Leveret: tasks with declared data, run by workers with small fast memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leveret {__version__}")
        raise typer.Exit


@app.callback()
def _before_any(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Leveret: tasks with declared data, run by workers with small fast memory."""


for command in (info.info, demo.demo, run.run, top.top, bench.bench, trace.trace):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="leveret")


__all__ = ["app", "main"]
