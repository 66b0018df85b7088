"""The commands by name. One is loaded when it is called, so that `leveret --help` is quick."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from leveret_command import quiet_interrupts

from .. import __version__

# What the list of commands says: the first lines of their docstrings.
COMMANDS = {
    "info": "Show the version, machines, cores and caches.",
    "demo": "Run the papers' applications, checked, with pictures.",
    "run": "Run an application of the papers, checked.",
    "top": "Watch the worker processes of running programs.",
    "bench": "Run a benchmark; shows the goal beside each figure.",
    "repro": "Show the papers' results beside those of a simulated Cell.",
    "trace": "Sum up a trace, and draw it as an HTML page to zoom into.",
}
_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def _load(name: str) -> Any:
    one = typer.Typer(**_SETTINGS)
    with quiet_interrupts():
        one.command()(getattr(import_module(f".{name}", __package__), name))
    return typer.main.get_command(one)


class _Commands(TyperGroup):
    """A group whose commands are loaded one by one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        names: Any = dict.fromkeys(COMMANDS)  # for "did you mean"
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="leveret",
    cls=_Commands,
    help="Leveret: tasks with declared data, run by workers with small fast memory.",
    no_args_is_help=True,
    **_SETTINGS,
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
