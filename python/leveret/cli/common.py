"""What the commands share: exit codes, where output goes, time-outs."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Optional, TypeVar

import typer

from ..errors import Cancelled, InvalidArgument, LeveretError, TaskFailed, TimeoutError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FAILED = 1
USAGE = 2
ENVIRONMENT = 3
TIMED_OUT = 124
INTERRUPTED = 130

Result = TypeVar("Result")


def _console() -> type[Console]:
    """rich's own ends the program with 1 when nobody reads its output."""
    from rich.console import Console  # takes longer to load than most commands do

    class Told(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return Told


def notes() -> Console:
    """For progress and messages: standard error, so that standard output is the result alone."""
    return _console()(stderr=True, soft_wrap=True, markup=False, highlight=False)


def tables() -> Console:
    """For results that people read. Wide enough for a table when nobody looks."""
    width = None if sys.stdout.isatty() else 120
    return _console()(width=width, markup=False, highlight=False)


def plain(text: str) -> Text:
    """A name that some program has chosen: no markup, nothing that a terminal obeys."""
    from rich.text import Text

    return Text("".join(c if c.isprintable() else "?" for c in text))


def print_json(result: Mapping[str, object]) -> None:
    """The one JSON object that --json prints."""
    sys.stdout.write(json.dumps(result, allow_nan=False) + "\n")


def stop(code: int, message: str) -> NoReturn:
    """Ends the command with a message on standard error."""
    with contextlib.suppress(OSError):  # where nobody can be told, the code says it
        sys.stderr.write(f"leveret: {message}\n")
        sys.stderr.flush()
    raise typer.Exit(code)


def exit_code_of(error: Exception) -> int:
    """Which exit code stands for an error."""
    if isinstance(error, TimeoutError):
        return TIMED_OUT
    if isinstance(error, (TaskFailed, Cancelled)):
        return FAILED
    if isinstance(error, (InvalidArgument, ValueError)):
        return USAGE
    return ENVIRONMENT


# What the runtime calls the options of commands.
_OPTIONS = {
    "local_store_bytes": "--local-store",
    "sim_machine": "--sim-machine",
    "workers": "--workers",
    "depth": "--depth",
    "contexts": "--contexts",
    "staging": "--staging",
    "pool": "--pool",
    "tasks": "--tasks",
    "species": "--species",
    "n": "--n",
    "bodies": "--n",
    "nodes": "--n",
    "sites": "--n",
    "frames": "--frames",
    "steps": "--frames",
}


def in_options(message: str) -> str:
    """A message about an argument that begins with its name, which here is an option's."""
    field = re.match(r"(\w+)(?=:| must be | = [^:]*:)", message)
    if field is None or field[0] not in _OPTIONS:
        return message
    return _OPTIONS[field[0]] + message[field.end() :]


def _is_of_output(error: OSError) -> bool:
    """Commands say themselves which file cannot be written. Where standard output is buffered its
    errors come late, when the command is over."""
    return error.filename is None and error.errno in (errno.ENOSPC, errno.EPIPE)


def reporting(command: Callable[..., Result]) -> Callable[..., Result]:
    """Turns the errors of a command into messages and exit codes."""

    @functools.wraps(command)
    def wrapped(*args: object, **options: object) -> Result:
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            stop(INTERRUPTED, "interrupted")
        except (LeveretError, OSError, ValueError, ImportError) as error:
            if isinstance(error, OSError) and _is_of_output(error):
                from . import cannot_write

                raise typer.Exit(cannot_write(str(error.strerror))) from error
            stop(exit_code_of(error), in_options(str(error)))
        except MemoryError:  # Python's own, which says nothing; OutOfMemory is one, and does
            stop(ENVIRONMENT, "there is not so much memory; ask for less")

    return wrapped


def check_timeout(seconds: Optional[float]) -> None:
    """ValueError for what is no --timeout."""
    if seconds is not None and not 0 < seconds < threading.TIMEOUT_MAX:
        most = f"{threading.TIMEOUT_MAX:.0f}"
        raise ValueError(f"--timeout must be seconds, above 0 and below {most}, not {seconds}")


def check_workers(count: Optional[int]) -> int:
    """What a runtime is told: 0 where nobody said how many. ValueError for less than 1."""
    if count is not None and count < 1:
        raise ValueError(f"--workers must be 1 to 1024, not {count}; without it Leveret chooses")
    return count or 0


def check_folder(option: str, path: Optional[Path]) -> None:
    """OSError for a file that cannot be written where it is to be: before the work, not after."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path}: this is a folder; name a file in it")
    try:
        there = path if path.exists() else Path(os.path.realpath(path)).parent
    except FileNotFoundError as error:  # of no path: it asks where the process works
        raise FileNotFoundError(
            f"{option} {path}: the working folder has been removed; name a file in another"
        ) from error
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{option} {path}: it cannot be written; name another file")


def check_out(out: Path) -> None:
    """FileExistsError, PermissionError for a folder that cannot be made or written into."""
    there = next(each for each in (out, *out.parents) if os.path.lexists(each))
    if not there.is_dir():
        kind = "a file" if there.exists() else "a link to nothing"
        raise FileExistsError(f"--out {out}: {there} is {kind}; name a folder")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"--out {out}: nothing can be written there; name another folder")


def check_apart(*files: Optional[Path]) -> None:
    """ValueError for two files to be written that are one."""
    given = [os.path.realpath(each) for each in files if each is not None]
    if len(set(given)) != len(given):
        raise ValueError(f"two options name the same file to write: {given[0]}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """OSErrors of the block say what could not be written: those of a full disk do not."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(f"{path} cannot be written: {why}; name another place") from error


def _leave(code: int, message: str) -> NoReturn:
    """Ends the process from any thread, whatever native code runs; shows the cursor again."""
    try:
        if "multiprocessing" in sys.modules:  # a rival's processes would wait for work for ever
            for process in sys.modules["multiprocessing"].active_children():
                process.kill()
        show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{show_cursor}leveret: {message}\n")
        sys.stderr.flush()
    finally:  # where nobody reads that, the code says it
        os._exit(code)


@contextmanager
def time_limit(seconds: Optional[float]) -> Iterator[None]:
    """Ends the process with 124 when the block takes longer: native code cannot be interrupted."""
    check_timeout(seconds)
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, _leave, (TIMED_OUT, f"not done after {seconds:g} s"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def interruptible() -> Iterator[None]:
    """Ends the process with 130 at Ctrl-C, also while the block is in native code.

    Python tells a handler only between its own instructions; but it writes the signal's number to
    the wake-up descriptor at once, where a thread reads it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch() -> None:
        while number := os.read(reader, 1):
            if number[0] == signal.SIGINT:
                _leave(INTERRUPTED, "interrupted")

    before = signal.set_wakeup_fd(writer)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # the thread reads the end
        thread.join()
        os.close(reader)


def share_text(share: float) -> str:
    return f"{100 * share:.0f} %"
