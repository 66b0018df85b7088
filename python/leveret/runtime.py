"""Runtime: the extension's class with Python's manners: options by keyword, `with`, warnings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Literal

from . import _core


class Runtime(_core.Runtime):
    __doc__ = _core.Runtime.__doc__
    _is_open = False  # until the constructor succeeded

    def __init__(
        self,
        machine: str = "threads",
        workers: int = 0,
        staging: Literal["auto", "in_place", "copy"] = "auto",
        depth: int = 0,
        tickets: int = 4096,
        local_store_bytes: int = 256 << 10,
        trace_events: int = 0,
        seed: int = 1,
        wait: Literal["help", "park", "spin"] = "help",
        pin: bool = False,
        *,
        full: Literal["help", "wait", "fail"] = "help",
        dice_threshold: int = 16,
        host_threads: int = 64,
        nest_max: int = 256,
        spin_ns: int = 50_000,
    ) -> None:
        if not isinstance(machine, str):
            raise TypeError(f"machine must be a name such as 'threads', not {machine!r}")
        super().__init__(
            machine,
            workers=workers,
            staging=staging,
            depth=depth,
            tickets=tickets,
            local_store_bytes=local_store_bytes,
            trace_events=trace_events,
            seed=seed,
            wait=wait,
            pin=pin,
            full=full,
            dice_threshold=dice_threshold,
            host_threads=host_threads,
            nest_max=nest_max,
            spin_ns=spin_ns,
        )
        self._is_open = True

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.closed:
            return
        if error is not None:
            self.close(cancel_waiting=True)
            return
        try:
            self.wait_for_completion()
        finally:
            self.close()

    def __del__(self, warn: type[Warning] = ResourceWarning) -> None:
        if self._is_open and not self.closed:
            text = f"{self!r} was not closed; use it in a `with` block"
            warnings.warn(text, warn, stacklevel=2, source=self)

    def __repr__(self) -> str:
        if not self._is_open:
            return "<leveret.Runtime, not opened>"
        if self.closed:
            return "<leveret.Runtime, closed>"
        return f"<leveret.Runtime on '{self.machine}', {self.workers} workers>"

    def set_filters(self, names: str | Iterable[str]) -> None:
        super().set_filters([names] if isinstance(names, str) else list(names))

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        super().write_trace(os.fspath(path))
