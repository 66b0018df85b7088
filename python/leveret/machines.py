"""The machines built into the library."""

from __future__ import annotations

from typing import NamedTuple

from . import _core


class Machine(NamedTuple):
    """A machine. unavailable: why it does not work here, or None when it does."""

    name: str
    unavailable: str | None


def machines() -> list[Machine]:
    """All machines of this build. Cost: may probe for devices."""
    return [Machine(*each) for each in _core.machines()]
