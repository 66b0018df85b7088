"""A call, from submit() to the end of its future."""

from __future__ import annotations

from typing import Any

from ..wire.pickling import REQUEST, dump_arguments
from .future import Future


class Work:
    """A call, from submit() to the end of its future."""

    __slots__ = (
        "args",
        "buffers",
        "function",
        "future",
        "pickled",
        "request",
        "reserved",
        "retries",
    )

    def __init__(
        self, future: Future, function: Any, pickled: bytes, flags: int, args: Any
    ) -> None:
        self.future = future
        self.function = function
        self.pickled = pickled  # of the function: under this, its last results' size is known
        self.args = args
        self.reserved = 0
        self.retries = 0
        data, self.buffers = dump_arguments(args)
        self.request = REQUEST.pack(flags, len(pickled)) + pickled + data

    def size(self) -> int:
        return len(self.request) + sum(each.nbytes for each in self.buffers)

    def name(self) -> str:
        """The call as messages name it."""
        function = getattr(self.function, "__qualname__", None) or repr(self.function)
        if isinstance(self.args, list):
            return f"{function} on {len(self.args)} items"
        args, kwargs = self.args
        try:
            words = [_short(each) for each in args]
            words += [f"{key}={_short(each)}" for key, each in kwargs.items()]
        except Exception:  # a repr() that fails
            words = ["..."]
        return f"{function}({', '.join(words)})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
