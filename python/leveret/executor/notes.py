"""What calls have logged, warned of and printed, told in the host as if they had run here."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from typing import Any

from .. import _core
from ..interrupts import is_of_signal
from ..wire.notes import ERRORS, LOG, OUTPUT, WARNING, WORKER, Filter, frames


def levels() -> dict[str, int]:
    """The levels of this process's loggers, which workers use as well."""
    found = {"": logging.getLogger().level}
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET:
            found[name] = logger.level
    return found


def level_names() -> dict[int, str]:
    """What this process calls levels, the standard ones included."""
    return dict(getattr(logging, "_levelToName", {}))


def filters() -> list[Filter]:
    """This process's filters of warnings, with the names of their categories."""
    return [
        (action, text, (kind.__module__, kind.__qualname__), module, line)
        for action, text, kind, module, line in list(warnings.filters)
        if isinstance(kind, type)
    ]


def tell_of_reply(data: memoryview) -> None:
    tell(data[WORKER.size :], WORKER.unpack_from(data)[0])


def tell(data: bytes | memoryview, worker: int) -> None:
    """Passes notes on: log records to their loggers' handlers, the rest to where it would go."""
    for kind, content in frames(data):
        _tell_one(kind, content, worker)


def _tell_one(kind: int, content: Any, worker: int) -> None:
    try:
        _TELLERS[kind](content, worker)
    except BaseException as error:
        if is_of_signal(error):
            raise
        # A filter that raises, a closed file: no reason to lose a result.
        report_error(error, _TELLERS.get(kind))


def report_error(error: BaseException, about: object) -> None:
    """Reports an exception of a function of the user's."""
    _core.report_unraisable(error, about)


def _tell_record(about: dict[str, Any], worker: int) -> None:
    record = logging.makeLogRecord(about)
    record.leveret_worker = worker
    logger = logging.getLogger(None if record.name == "root" else record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


# Of modules that are not here: what was shown of their warnings.
_registries: dict[str, dict[Any, Any]] = {}


def _registry_of(module: str) -> dict[Any, Any]:
    """Where warnings notes what it has shown of a module's."""
    names = vars(sys.modules[module]) if module in sys.modules else None
    if type(names) is not dict:
        return _registries.setdefault(module, {})
    registry: dict[Any, Any] = names.setdefault("__warningregistry__", {})
    return registry


def _tell_warning(about: tuple[str, tuple[str, str], str, int, str | None], worker: int) -> None:
    text, (module, name), filename, lineno, where = about
    category: Any = UserWarning
    try:
        category = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):  # of a module that is not here, or of the worker's main
        text = f"{name}: {text}"
    try:
        if where is None:
            warnings.warn_explicit(text, category, filename, lineno)
        else:
            warnings.warn_explicit(text, category, filename, lineno, where, _registry_of(where))
    except category:  # a filter makes an error of it: there is nobody here whose error it would be
        warnings.showwarning(text, category, filename, lineno)


def _tell_output(text: str, worker: int) -> None:
    sys.stdout.write(text)


def _tell_errors(text: str, worker: int) -> None:
    sys.stderr.write(text)


_TELLERS: dict[int, Any] = {
    LOG: _tell_record,
    WARNING: _tell_warning,
    OUTPUT: _tell_output,
    ERRORS: _tell_errors,
}
