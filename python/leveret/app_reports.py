"""What the reports of all applications have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """What all applications report. tasks counts pieces of diced tasks too."""

    app: str
    seconds: float
    serial_seconds: float
    error: float
    correct: bool
    tasks: int

    @property
    def speed_up(self) -> float:
        """Serial time over the runtime's time; 0 when the reference was not run."""
        return self.serial_seconds / self.seconds if self.seconds > 0 else 0.0


def at_least(low: int, **values: int) -> None:
    """ValueError for the first value below `low`, or of more than 32 bits."""
    for name, value in values.items():
        if not low <= value < 2**32:
            raise ValueError(f"{name} must be {low} to {2**32 - 1}, not {value}")
