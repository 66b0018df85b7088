"""What a worker process does with a Python call: read it, run it, write its reply."""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from typing import Any

from .. import _core
from ..wire import by_value, chunks
from ..wire.errors import dump_error
from ..wire.pickling import (
    APART,
    BROKEN,
    CHUNK,
    ERROR,
    IN_FILE,
    REQUEST,
    VALUE,
    dump_result,
    reply_size,
    write_reply,
)
from ..wire.setup import About, WorkerSetup
from . import multiprocess
from .functions import functions
from .large_replies import make_file

_HERE = __name__.rpartition(".")[0]  # the package


class _Process:
    """What is known of this worker process."""

    is_set_up = False
    calls_left = -1  # until it is replaced; below 0: for ever
    about = About(0, b"")
    path = b""  # the host's search path, as it was sent last


class Broken(Exception):
    """The initializer failed."""


def _set_up(file: int, size: int) -> None:
    """Runs the executor's initializer, once in this process."""
    given = WorkerSetup(file, size)
    given.mark(True)
    try:
        about, setup = pickle.loads(given.pickled)
        _Process.about = about
        multiprocess.set_up(about)  # before what it may have to do with is loaded
        (initializer, initargs, _Process.calls_left), made = functions.load(setup)
        if initializer is not None:
            functions.set_up(initializer, initargs, made)
    except BaseException as error:
        raise Broken(describe(error)) from error
    finally:
        given.mark(False)
    _Process.is_set_up = True


def describe(error: BaseException) -> str:
    """The traceback as text, without the frames of this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_HERE):
        trace = trace.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except BaseException as other:  # a __str__ may raise what it likes
        return f"{type(error).__qualname__} (its traceback cannot be written: {other!r})\n"


def _call_kept(pickled: bytes, args: Any, kwargs: Any) -> Any:
    kept = functions.keep(pickled)
    try:
        return kept.function(*args, **kwargs)
    finally:
        functions.look_after(pickled, kept)


def _run_chunk(
    pickled: bytes, carried: chunks.Apart | None, items: list[Any], is_apart: bool
) -> tuple[list[Any], dict[int, list[Any]], bytes | None]:
    """The results up to the first error, and that."""
    results = chunks.Results()
    try:
        for each in items:
            args = functions.load(*_own(each))[0] if is_apart else each
            if carried is None:
                results.add(_call_kept(pickled, args, {}))
            else:
                results.add(functions.load(*_own(carried))[0](*args))
    except BaseException as error:
        results.error = dump_error(error, describe(error))
    return results.parts()


def _own(part: tuple[Any, list[Any]]) -> tuple[Any, Any]:
    """Private copies of buffers: the function may change them, and keep them."""
    data, buffers = part
    return data, [bytearray(each) for each in buffers] if buffers else None


def _follow(path: bytes) -> None:
    """Searches for modules where the host does."""
    if path != _Process.path:
        _Process.path = path
        sys.path[:] = pickle.loads(path)
        by_value.forget_searches()


def _call(request: memoryview, buffers: list[memoryview]) -> Any:
    flags, length, path_length = REQUEST.unpack_from(request)
    at = REQUEST.size + length
    if path_length:
        _follow(bytes(request[at : at + path_length]))
    data = request[at + path_length :]
    pickled = bytes(request[REQUEST.size : at])
    if flags & CHUNK:
        given = pickle.loads(data, buffers=buffers)
        carried, items = given if flags & APART else (None, given)
        return _run_chunk(pickled, carried, items, bool(flags & APART))
    given = functions.load(*_own((data, buffers)))[0]
    if length:
        return _call_kept(pickled, *given)
    function, args, kwargs = given
    return function(*args, **kwargs)


def _dump_error(error: BaseException) -> bytes:
    if isinstance(error, Broken):
        return pickle.dumps((None, str(error)), 5)
    return dump_error(error, describe(error))


def _reply(
    reply: memoryview, kind: int, pickled: bytes, buffers: list[memoryview], ns: int
) -> None:
    size = reply_size(len(pickled), buffers)
    if size > len(reply):
        where = make_file(_Process.about.replies, kind, pickled, buffers, ns, size)
        write_reply(reply, IN_FILE, where, [], ns, size)
    else:
        write_reply(reply, kind, pickled, buffers, ns, size)


def _flush() -> None:
    """What a function printed must not wait for the end of the process, which may be sudden."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # closed, or replaced by something else: the function's business
        return


def run(
    setup: int,
    setup_bytes: int,
    request: memoryview,
    reply: memoryview,
    buffers: list[memoryview],
) -> None:
    """Runs one call; what goes wrong in it is part of the reply."""
    begin = time.perf_counter_ns()
    views: list[memoryview] = []
    value: Any = None
    try:
        if not _Process.is_set_up:
            _set_up(setup, setup_bytes)
        value = _call(request, buffers)
        pickled, views = dump_result(value)
        kind = VALUE
    except BaseException as error:
        kind = BROKEN if isinstance(error, Broken) else ERROR
        pickled, views = _dump_error(error), []
    try:
        _reply(reply, kind, pickled, views, time.perf_counter_ns() - begin)
    except BaseException as error:  # no memory for it, say
        _reply(reply, ERROR, _dump_error(error), [], time.perf_counter_ns() - begin)
    if _Process.calls_left > 0:
        _Process.calls_left -= 1
        if _Process.calls_left == 0:
            _core.retire_worker()
    _flush()
