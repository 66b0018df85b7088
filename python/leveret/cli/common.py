"""What the commands share: exit codes, where output goes, time-outs."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn, Optional, TypeVar

import typer
from rich.console import Console

from ..errors import Cancelled, InvalidArgument, LeveretError, TaskFailed, TimeoutError

FAILED = 1
USAGE = 2
ENVIRONMENT = 3
TIMED_OUT = 124
INTERRUPTED = 130

Result = TypeVar("Result")


def notes() -> Console:
    """For progress and messages: standard error, so that standard output is the result alone."""
    return Console(stderr=True, soft_wrap=True)


def tables() -> Console:
    """For results that people read. Wide enough for a table when nobody looks."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def print_json(result: Mapping[str, object]) -> None:
    """The one JSON object that --json prints."""
    sys.stdout.write(json.dumps(result, allow_nan=False) + "\n")


def stop(code: int, message: str) -> NoReturn:
    """Ends the command with a message on standard error."""
    notes().print(f"leveret: {message}", markup=False, highlight=False)
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


def reporting(command: Callable[..., Result]) -> Callable[..., Result]:
    """Turns the errors of a command into messages and exit codes."""

    @functools.wraps(command)
    def wrapped(*args: object, **options: object) -> Result:
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            stop(INTERRUPTED, "interrupted")
        except (LeveretError, OSError, ValueError, ImportError) as error:
            stop(exit_code_of(error), str(error))

    return wrapped


@contextmanager
def time_limit(seconds: Optional[float]) -> Iterator[None]:
    """Ends the process with 124 when the block takes longer: native code cannot be interrupted."""
    if seconds is None:
        yield
        return
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise ValueError(f"--timeout must be a number of seconds above 0, not {seconds}")

    def give_up() -> None:
        sys.stderr.write(f"leveret: not done after {seconds:g} s\n")
        sys.stderr.flush()
        os._exit(TIMED_OUT)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def share_text(share: float) -> str:
    return f"{100 * share:.0f} %"
