"""What a call logs, warns of and prints, kept for its host.

Log records come here by a handler of the root logger, which makes way for a program that configures
logging itself in its workers. Notes are kept twice: for the reply, and in the page, where they are
found if the call crashes.
"""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
import threading
import warnings
from collections import deque
from typing import Any, ClassVar, TextIO

from .. import _core
from ..said import said_error, shown
from ..wire import page
from ..wire.notes import ERRORS, LOG, NOTES_BYTES_MAX, OUTPUT, WARNING, WORKER, Filter, frame
from ..wire.setup import Setup
from .own_page import Own

_TEXT_MAX = 16 << 10  # of one message; a longer one is cut


class _Kept:
    """Frames for the next reply."""

    frames: ClassVar[deque[bytes]] = deque()
    size = 0
    dropped = 0
    lock = threading.RLock()  # a destructor may log while something is kept


def keep(kind: int, content: Any) -> None:
    made = frame(kind, content)
    with _Kept.lock:
        _Kept.frames.append(made)
        _Kept.size += len(made)
        while _Kept.size > NOTES_BYTES_MAX:
            _Kept.size -= len(_Kept.frames.popleft())
            _Kept.dropped += 1
        _keep_in_page(made)


def _keep_in_page(made: bytes) -> None:
    place = Own.place
    if place is None or len(made) > page.NOTES_BYTES:
        return
    used = Own.words[page.USED]
    if used + len(made) > page.NOTES_BYTES:  # the last ones: what came before the crash
        Own.words[page.USED] = used = 0
    at = page.HEAD_BYTES + used
    place[at : at + len(made)] = made
    Own.words[page.USED] = used + len(made)


def has_any() -> bool:
    return bool(_Kept.frames)


def take() -> bytes:
    """Everything since the last reply."""
    with _Kept.lock:
        if _Kept.dropped:
            text = f"{_Kept.dropped} earlier notes of this call were dropped"
            about = {"name": "leveret", "levelno": logging.WARNING, "levelname": "WARNING"}
            _Kept.frames.append(frame(LOG, {**about, "msg": text}))
        taken = WORKER.pack(_core.worker_index() or 0) + b"".join(_Kept.frames)
        _Kept.frames.clear()
        _Kept.size = _Kept.dropped = 0
        Own.words[page.USED] = 0
    return taken


def _is_simple(value: object) -> bool:
    return value is None or type(value) in (str, int, float, bool)


class _Forwarder(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception as error:  # arguments that do not fit the message
            text = f"{shown(record.msg)} ({said_error(error)})"
        about = {}
        for key, value in vars(record).items():
            about[key] = value if _is_simple(value) else shown(value)
        if record.exc_info and not record.exc_text:
            about["exc_text"] = logging.Formatter().formatException(record.exc_info)
        # So logging says while multiprocessing is not loaded.
        if record.processName == "MainProcess":
            about["processName"] = f"LeveretWorker-{_core.worker_index()}"
        about.update(msg=text[:_TEXT_MAX], args=None, exc_info=None)
        keep(LOG, about)


def _forward_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    kind = (category.__module__, category.__qualname__)
    keep(WARNING, (str(message)[:_TEXT_MAX], kind, filename, lineno, _module_at(filename, lineno)))


def _module_at(filename: str, lineno: int) -> str | None:
    """The module that a warning is about, by which filters are chosen: it is not told."""
    place: Any = sys._getframe(2)
    while place is not None:
        if place.f_lineno == lineno and place.f_code.co_filename == filename:
            name = place.f_globals.get("__name__")
            return name if type(name) is str else None
        place = place.f_back
    return None


def _filters(given: list[Filter]) -> list[Any]:
    """The host's filters, for here.

    What is an error there is only shown: it is not this process that asked for it. Those of a
    category that nothing here has loaded are left to the host, through which all warnings pass.
    """
    made = []
    for action, text, (module, name), where, line in given:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and issubclass(kind, Warning):
            made.append(("default" if action == "error" else action, text, kind, where, line))
    return made


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # which notes that they change
    warnings.filters[:] = filters  # type: ignore[index]


class _Output(io.TextIOBase):
    """In place of sys.stdout or sys.stderr."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def write(self, text: str) -> int:
        for at in range(0, len(text), _TEXT_MAX):
            keep(self.kind, text[at : at + _TEXT_MAX])
        return len(text)

    def writable(self) -> bool:
        return True


class Forwarding:
    """What one executor wants to be told; begin() and end() take turns."""

    now: ClassVar[Forwarding | None] = None  # the one that has begun

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.forwarder = _Forwarder() if setup.forwards_logs else None

    @property
    def has_begun(self) -> bool:
        return Forwarding.now is self

    def begin(self) -> None:
        """Has notes kept, as the executor was told."""
        self.before = (warnings.showwarning, sys.stdout, sys.stderr, logging.basicConfig)
        Forwarding.now = self
        if self.forwarder is not None:
            self.forward_records(self.forwarder)
            warnings.showwarning = _forward_warning
            self.filters = list(warnings.filters)
            _set_filters(_filters(self.setup.filters))
        if self.setup.forwards_output:
            sys.stdout = _Output(OUTPUT)
            sys.stderr = _Output(ERRORS)

    def forward_records(self, forwarder: _Forwarder) -> None:
        root, configure = logging.getLogger(), logging.basicConfig

        def make_way(**options: Any) -> None:
            root.removeHandler(forwarder)
            self.forwarder = None
            configure(**options)

        for number, called in self.setup.level_names.items():
            if logging.getLevelName(number) != called:
                logging.addLevelName(number, called)
        for name, level in self.setup.levels.items():
            logging.getLogger(name or None).setLevel(level)
        root.addHandler(forwarder)
        # It does nothing if there is a handler.
        functools.update_wrapper(make_way, configure)
        logging.basicConfig = make_way

    def end(self) -> None:
        """Gives back what is still as begin() has left it."""
        Forwarding.now = None
        show, out, errors, configure = self.before
        if self.forwarder is not None:
            logging.getLogger().removeHandler(self.forwarder)
            logging.basicConfig = configure
        if self.setup.forwards_logs:
            warnings.showwarning = show
            _set_filters(self.filters)
        if isinstance(sys.stdout, _Output):
            sys.stdout = out
        if isinstance(sys.stderr, _Output):
            sys.stderr = errors


def _give_back() -> None:
    """In a process that a call has forked: nobody takes its notes."""
    if Forwarding.now is not None:
        _Kept.lock = threading.RLock()
        Forwarding.now.end()


os.register_at_fork(after_in_child=_give_back)  # once: what is registered is kept for ever
