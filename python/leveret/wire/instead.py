"""What is pickled in the place of something: where it is read, a call makes what it stands for."""

from __future__ import annotations

from typing import Any, Callable


class Instead:
    """Becomes what make(*about) gives."""

    def __init__(self, make: Callable[..., Any], *about: Any) -> None:
        self.call = make, about

    def __reduce__(self) -> Any:
        return self.call
