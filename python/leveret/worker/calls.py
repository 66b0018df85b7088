"""What a worker process does with a Python call: read it, run it, write its reply."""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import sys
import time
import traceback
from collections import deque
from typing import Any

from .. import _core
from ..wire.pickling import (
    BROKEN,
    CHUNK,
    ERROR,
    FILE,
    IN_FILE,
    REQUEST,
    VALUE,
    dumps,
    reply_size,
    write_reply,
)
from ..wire.setup import SETUP_MARKS

_FUNCTIONS_MAX = 256
_FILES_MAX = 32  # more than the replies that are on their way from one worker
_REPLY_BUFFERS_MAX = 4096

_functions: dict[bytes, Any] = {}
_files: deque[int] = deque()


class _Process:
    """What is known of this worker process."""

    is_set_up = False
    calls_left = -1  # until it is replaced; below 0: for ever


class Broken(Exception):
    """The initializer failed."""


def _set_up(address: int, size: int) -> None:
    """Runs the executor's initializer, once in this process."""
    block = _core.memory_at(address, size)
    mark = os.getpid() % SETUP_MARKS
    block[mark] = 1
    length = int.from_bytes(block[SETUP_MARKS : SETUP_MARKS + 8], "little")
    start = SETUP_MARKS + 8
    try:
        initializer, initargs, _Process.calls_left = pickle.loads(block[start : start + length])
        if initializer is not None:
            initializer(*initargs)
    except BaseException as error:
        raise Broken(describe(error)) from error
    finally:
        block[mark] = 0
    _Process.is_set_up = True


def describe(error: BaseException) -> str:
    """The traceback as text, without this module's frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _load_function(pickled: bytes) -> Any:
    function = _functions.get(pickled)
    if function is None:
        function = pickle.loads(pickled)
        if len(_functions) >= _FUNCTIONS_MAX:
            _functions.clear()
        _functions[pickled] = function
    return function


def _run_chunk(function: Any, items: list[tuple[Any, ...]]) -> Any:
    """The results up to the first error, and that."""
    done: list[Any] = []
    for each in items:
        try:
            done.append(function(*each))
        except BaseException as error:  # noqa: PERF203
            return done, error, describe(error)
    return done, None, ""


def _call(request: memoryview, buffers: list[memoryview]) -> Any:
    flags, length = REQUEST.unpack_from(request)
    at = REQUEST.size
    function = _load_function(bytes(request[at : at + length]))
    # Private copies: the function may change them, and keep them.
    own = [bytearray(each) for each in buffers] if buffers else None
    given = pickle.loads(request[at + length :], buffers=own)
    if flags & CHUNK:
        return _run_chunk(function, given)
    args, kwargs = given
    return function(*args, **kwargs)


def _dump_error(error: BaseException) -> bytes:
    text = describe(error)
    if isinstance(error, Broken):
        return pickle.dumps((None, str(error)), 5)
    error.__traceback__ = None
    try:
        pickled = dumps((error, text), 0)[0]
        pickle.loads(pickled)  # an exception that cannot be read back would be the host's trouble
    except Exception:
        kind = type(error).__qualname__
        other = RuntimeError(f"{kind}: {error} (an exception that cannot be pickled)")
        pickled = dumps((other, text), 0)[0]
    return pickled


def _make_file(kind: int, pickled: bytes, buffers: list[memoryview], ns: int, size: int) -> bytes:
    """Writes a reply into a memory file, and says where it is."""
    file = os.memfd_create("leveret-reply", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, size)
    with mmap.mmap(file, size) as place, memoryview(place) as view:
        write_reply(view, kind, pickled, buffers, ns, size)
    # Nobody changes it any more: what the host reads stays as it is.
    fcntl.fcntl(file, 1033, 1 | 2 | 4 | 8)  # F_ADD_SEALS: SEAL, SHRINK, GROW, WRITE
    _files.append(file)
    while len(_files) > _FILES_MAX:
        os.close(_files.popleft())
    return FILE.pack(os.getpid(), file, os.fstat(file).st_ino)


def _reply(
    reply: memoryview, kind: int, pickled: bytes, buffers: list[memoryview], ns: int
) -> None:
    size = reply_size(len(pickled), buffers)
    if size > len(reply):
        where = _make_file(kind, pickled, buffers, ns, size)
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
        pickled, views = dumps(value, _REPLY_BUFFERS_MAX)
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
