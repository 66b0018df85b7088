"""What a call on a node has raised, as it travels to the driver."""

from __future__ import annotations

from ..errors import TaskFailed
from ..said import shown, text_of
from ..wire.errors import dump_error, load_error


class Raised:
    """An exception on its way to the driver, with the text of its cause."""

    def __init__(self, error: BaseException, node: str) -> None:
        if isinstance(error, TaskFailed):
            error.node = node
            error.args = (f"{text_of(error)} (on {node})", *error.args[1:])
        cause = error.__cause__
        self.pickled = dump_error(error, "" if cause is None else text_of(cause).strip('\n"'))

    def error(self) -> BaseException:
        try:
            return load_error(self.pickled)
        except BaseException as why:  # an unpickler may raise what it likes
            return TaskFailed(f"an exception of a call cannot be unpickled here: {shown(why)}")
