"""What to install when a command needs more than the package does."""

from __future__ import annotations

from importlib.util import find_spec

CLI = "the command line needs typer and rich; install them with: pip install 'leveret[cli]'"
PLOT = "pictures need matplotlib; install it with: pip install 'leveret[plot]'"


def is_missing(*modules: str) -> bool:
    return any(find_spec(name) is None for name in modules)


def need_plot() -> None:
    """Raises ModuleNotFoundError where no picture can be drawn: before the work, not after."""
    if is_missing("matplotlib"):
        raise ModuleNotFoundError(PLOT, name="matplotlib")
