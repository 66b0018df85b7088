"""Runtime: the extension's class with Python's manners: options by keyword, `with`, warnings."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal

from . import _core, launch
from .interrupts import LoopInterrupts
from .nearest import names_options
from .paths import path_bytes
from .waiting import WaitPolicy


def nanoseconds(timeout: float | None, name: str) -> int:
    """A time limit as the core has it: 0 is none."""
    if timeout is None:
        return 0
    try:
        if isinstance(timeout, (bool, str, bytes)):  # float() would take them
            raise TypeError
        seconds = float(timeout)
    except (TypeError, ValueError):
        text = f"{name} must be None or a number of seconds, not {timeout!r}"
        raise TypeError(text) from None
    except OverflowError:  # an int
        seconds = math.inf
    if not 0 < seconds < 9e9:
        raise ValueError(f"{name} must be None or a number of seconds > 0, not {timeout!r}")
    return max(1, int(seconds * 1e9))


def _path_or_name(option: str, value: Any) -> bytes | None:
    return None if value is None else path_bytes(option, value, "a name, a path or None")


class Runtime(_core.Runtime):
    __doc__ = _core.Runtime.__doc__
    _is_open = False  # until the constructor succeeded
    _ends_by_itself = True  # by a Ctrl-C that ends the program, if it has worker processes
    _interrupts: LoopInterrupts | None = None  # while the program is in a `with` block
    _obituaries: _core.Obituaries | None = None  # what is told of deaths of worker processes

    @names_options("Runtime")
    def __init__(
        self,
        machine: str = "threads",
        workers: int = 0,
        staging: Literal["auto", "in_place", "copy"] = "auto",
        depth: int = 0,
        tickets: int = 4096,
        local_store_bytes: int | None = None,
        trace_events: int = 0,
        seed: int = 1,
        wait: WaitPolicy = "help",
        pin: bool = False,
        *,
        full: Literal["help", "wait", "fail"] = "help",
        dice_threshold: int = 16,
        host_threads: int = 64,
        nest_max: int = 256,
        contexts: int = 0,
        spin_ns: int = 50_000,
        isolation: Literal["crash", "confined"] = "crash",
        max_attempts: int = 3,
        restarts_max: int = 8,
        task_timeout: float | None = None,
        worker_memory: int = 0,
        worker_cpu_seconds: int = 0,
        pool: str | None = None,
        sim_machine: str | os.PathLike[str] | None = None,
    ) -> None:
        if not isinstance(machine, str):
            raise TypeError(f"machine must be a name such as 'threads', not {machine!r}")
        if local_store_bytes is None:
            local_store_bytes = (64 << 20) if machine == "processes" else (256 << 10)
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
            contexts=contexts,
            spin_ns=spin_ns,
            isolation=isolation,
            max_attempts=max_attempts,
            restarts_max=restarts_max,
            task_ns_max=nanoseconds(task_timeout, "task_timeout"),
            worker_memory=worker_memory,
            worker_cpu_seconds=worker_cpu_seconds,
            pool=pool,
            sim_machine=_path_or_name("sim_machine", sim_machine),
            worker_command=self._command(machine),
            obituaries=self._obituaries,
        )
        self._is_open = True
        if machine == "processes" and self._ends_by_itself:
            from .at_exit import ends_if_interrupted  # worker processes have no use for it

            ends_if_interrupted(self)

    def _command(self, machine: str) -> list[str]:
        """What worker processes are started from."""
        return launch.worker_command() if machine == "processes" else []

    def __enter__(self) -> Runtime:
        self._interrupts = LoopInterrupts()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        interrupts = self._interrupts or LoopInterrupts()
        self._interrupts = None  # it keeps the loop's main task
        if self.closed:
            return
        if error is None:
            try:
                with interrupts.raised():
                    self.wait_for_completion()
            except KeyboardInterrupt:
                self._end()
                raise
            finally:
                self.close()
        elif interrupts.is_left_by_one(kind):
            self._end()
        else:
            self.close(cancel_waiting=True)

    def _end(self) -> None:
        """What a Ctrl-C does: worker processes end what they run; what waits is cancelled."""
        if self.closed:
            return
        has_processes = self.machine == "processes"
        self.close(0 if has_processes else None, cancel_waiting=True, end_running=has_processes)

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
        try:
            chain = [names] if isinstance(names, str) else list(names)
        except TypeError:
            text = f"names must be the name of a filter, or several, not {names!r}"
            raise TypeError(text) from None
        for each in chain:
            if not isinstance(each, str):
                raise TypeError(f"names must be names of filters, not {each!r}")
        super().set_filters(chain)

    def write_trace(self, path: str | os.PathLike[str]) -> None:  # type: ignore[override]
        super().write_trace(path_bytes("path", path))
