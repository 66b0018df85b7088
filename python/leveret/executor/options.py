"""Options of single calls: executor.options(timeout=1).submit(f, x)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple

from ..errors import Overran, Poison, WorkerDied
from ..nearest import nearest
from ..wire.page import NAME_BYTES
from . import checking

if TYPE_CHECKING:
    from typing import TypedDict

    class GivenOptions(TypedDict, total=False):
        """What options() takes."""

        timeout: float | None
        retry: bool
        max_attempts: int
        memory: int
        name: str | None
        priority: int
        cancel: Literal["waiting", "kill"]


OnPoison = Literal["raise", "return"]

ATTEMPTS_MAX = 1000


class CallOptions(NamedTuple):
    """What a call asks for. The defaults: what its executor says."""

    timeout: float | None = None  # math.inf: none
    retry: bool | None = None
    max_attempts: int = 0
    memory: int = 0
    name: str | None = None
    priority: int = 0
    cancel: str = "waiting"

    def ns_max(self, of_executor: int) -> int:
        """The time limit as workers are told of it; 0: none."""
        if self.timeout is None:
            return of_executor
        return 0 if self.timeout > 1e9 else max(1, int(self.timeout * 1e9))

    def sent_name(self) -> bytes:
        """The name, for those who look at workers from outside."""
        return b"" if self.name is None else self.name[:NAME_BYTES].encode("utf-8", "replace")

    @property
    def kills(self) -> bool:
        """Whether cancel() of its future also ends a call that runs."""
        return self.cancel == "kill"


DEFAULTS = CallOptions()
NAMES = CallOptions._fields
CANCELS = ("waiting", "kill")


_WHOLE = {
    "max_attempts": (1, ATTEMPTS_MAX),
    "memory": (0, 2**62),
    "priority": (-(2**31), 2**31 - 1),
}


def _seconds(value: Any) -> float:
    """Of a call: infinite for None."""
    if value is None:
        return math.inf
    number = checking.seconds("timeout", value)
    if not number > 0:
        raise ValueError(f"timeout must be None or above 0, not {value!r}")
    return number


def changed(before: CallOptions, given: Mapping[str, Any]) -> CallOptions:
    """The options with some of them given anew; see ProcessExecutor.options()."""
    for key, value in given.items():
        if key not in NAMES:
            raise TypeError(f"options() has no option {key!r}{nearest(key, NAMES)}")
        if key == "timeout":
            given = {**given, key: _seconds(value)}
        elif key in _WHOLE:
            given = {**given, key: checking.whole(key, value, *_WHOLE[key])}
        elif key == "retry":
            given = {**given, key: checking.yes_or_no(key, value)}
        elif key == "name" and not (value is None or isinstance(value, str)):
            raise TypeError(f"name must be a str or None, not {value!r}")
        elif key == "cancel":
            checking.choice(key, value, CANCELS)
    return before._replace(**given)


def policy(on_poison: str, return_exceptions: bool) -> Callable[[BaseException], bool]:
    """Which errors map() gives as values; raises ValueError for a policy that there is not."""
    checking.choice("on_poison", on_poison, ("raise", "return"))
    if checking.yes_or_no("return_exceptions", return_exceptions):
        return lambda error: True
    kinds = (Poison, Overran, WorkerDied) if on_poison == "return" else ()
    return lambda error: isinstance(error, kinds)
