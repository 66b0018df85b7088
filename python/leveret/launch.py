"""How worker processes of a Python host are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from .errors import Status, Unavailable

# The main module of the host does not run again: workers know nothing of it.
# It collects no garbage while it imports what workers need, which makes next to none.
_PROGRAM = (
    "import gc, os, sys; gc.disable(); about = eval(sys.argv.pop()); sys.path[:] = about['path'] "
    "or [about['folder'], *filter(None, sys.path)]; "
    "[os.environ.pop(k, None) if v is None else os.environ.update({k: v}) "
    "for k, v in about['env'].items()]; "
    "[os.environ.setdefault(k, v) for k, v in about['unless_set'].items() "
    "if k not in about['env']]; "
    "from leveret.worker.program import main; main(about['preload'], about['python'])"
)


def search_path() -> list[str]:
    """Where this process searches for modules, for processes that are in other folders."""
    return [_absolute(str(each)) for each in sys.path]


def is_absolute(entry: str) -> bool:
    return entry.startswith("/")


def _absolute(entry: str) -> str:
    if is_absolute(entry):
        return entry
    # A folder is searched where it was when it was first searched, whatever folder this is now.
    known = getattr(sys.path_importer_cache.get(entry), "path", None)
    if isinstance(known, str) and is_absolute(known):
        return known
    try:
        return os.path.abspath(entry)  # noqa: PTH100 (pathlib takes long to import)
    except FileNotFoundError:  # this folder is gone
        return entry


def _is_this_program() -> bool:
    """Whether sys.executable is a program that embeds Python: that would run itself again.

    An interpreter takes its own name and options out of what it was started with. Another program
    gives all of that, as those do that Cython has made, or nothing.
    """
    given: list[str] | None = getattr(sys, "orig_argv", None)
    kept = getattr(sys, "argv", None)
    if not isinstance(kept, list):  # a program has taken it away, as what embeds Python may
        kept = []
    if given is None or given[:1] != kept[: min(len(given), 1)] or len(given) > len(kept):
        return False
    try:
        return os.path.samefile(sys.executable, "/proc/self/exe")  # noqa: PTH121
    except OSError:
        return False


# Options that say no more than their flag does.
_OPTIONS = {
    "optimize": "O",
    "debug": "d",
    "dont_write_bytecode": "B",
    "no_site": "S",
    "verbose": "v",
    "quiet": "q",
    "ignore_environment": "E",
    "no_user_site": "s",
    "safe_path": "P",
}


def interpreter_options() -> list[str]:
    """What an interpreter is started with to be as this one is."""
    flags = sys.flags
    if sys.warnoptions or sys._xoptions or flags.bytes_warning or flags.dev_mode or flags.isolated:
        import subprocess  # here: it takes longer to import than all else that is done here

        options: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return options
    counts = ((option, int(getattr(flags, name, 0))) for name, option in _OPTIONS.items())
    return ["-" + option * count for option, count in counts if count > 0]


# A text that is one in the program, too: what a subclass's shows as may be no literal.
_exactly = str.__str__


def worker_command(
    preload: Iterable[str] = (),
    runs_python: bool = False,
    env: Mapping[str, str | None] | None = None,
    unless_set: Mapping[str, str] | None = None,
    path: Iterable[str] = (),
) -> list[str]:
    """The command that config.processes.worker_command names.

    preload: modules that are imported once, before workers are forked. runs_python: whether
    workers run Python functions, besides native ones. env: variables that are set before anything
    is imported; None: not there. unless_set: others, which stay if they are there. path: where
    modules are searched for; empty: where this interpreter searches when it starts. Raises
    Unavailable in a program that embeds Python and does not tell where the interpreter is
    (sys.executable is empty, or the program), and in a frozen one.
    """
    if not sys.executable:
        text = "machine 'processes' needs a Python interpreter to start; sys.executable is empty"
        raise Unavailable(text, Status.UNAVAILABLE)
    if getattr(sys, "frozen", False):  # it would run the program's main module, and so on
        text = (
            "machine 'processes' needs a Python interpreter to start; sys.executable is this "
            "program itself, which was frozen (by PyInstaller, say): run it by a Python that has "
            "leveret installed, or use the machine 'threads' for native tasks, and "
            "concurrent.futures for Python functions"
        )
        raise Unavailable(text, Status.UNAVAILABLE)
    if _is_this_program():
        text = (
            "machine 'processes' needs a Python interpreter to start; sys.executable is this "
            "program itself, which has Python in it: set sys.executable to the interpreter of a "
            "Python that has leveret installed"
        )
        raise Unavailable(text, Status.UNAVAILABLE)
    about = {
        "path": list(map(_exactly, path)),
        "folder": os.path.dirname(os.path.dirname(__file__)),  # noqa: PTH120
        "preload": list(map(_exactly, preload)),
        "python": runs_python,
        "env": {_exactly(k): None if v is None else _exactly(v) for k, v in (env or {}).items()},
        "unless_set": dict(unless_set or {}),
    }
    return [sys.executable, *interpreter_options(), "-c", _PROGRAM, ascii(about)]
