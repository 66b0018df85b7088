"""What a call on a node has raised, as it travels to the driver."""

from __future__ import annotations

from ..errors import TaskFailed
from ..said import text_of
from ..wire.errors import dump_error


def dump_raised(error: BaseException, node: str) -> bytes:
    """The pickle of an exception, with the text of its cause."""
    if isinstance(error, TaskFailed):
        error.node = node
        error.args = (f"{text_of(error)} (on {node})", *error.args[1:])
    cause = error.__cause__
    return dump_error(error, "" if cause is None else text_of(cause).strip('\n"'))
