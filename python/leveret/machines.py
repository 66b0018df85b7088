"""The machines built into the library."""

# No annotation here is a text: the first one that typing compiles has the interpreter make its
# types for syntax trees, which takes as long as the other modules of `import leveret` together.
from typing import NamedTuple, Optional

from . import _core


class Machine(NamedTuple):
    """A machine. unavailable: why it does not work here, or None when it does."""

    name: str
    unavailable: Optional[str]


def machines() -> list[Machine]:
    """All machines of this build. Cost: may probe for devices."""
    return [Machine(*each) for each in _core.machines()]
