"""What a worker process does with a Python call: read it, run it, write its reply.

What this needs for each call from modules of Python's is taken as it is imported, here and in the
modules of wire/: a call may put something else there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from _thread import _count
from os import getpid
from pickle import dumps, loads
from time import perf_counter_ns
from typing import Any

from .. import _core
from ..said import said_error
from ..wire import chunks, described, page, spaces, stored, tables
from ..wire.described import DESCRIBED
from ..wire.errors import dump_error
from ..wire.page import CALL
from ..wire.pickling import APART, CHUNK, PLAIN, REQUEST, SEEDED, dump_reply
from ..wire.replies import BROKEN, ERROR, IN_FILE, NOTED, reply_size, write_reply
from ..wire.setup import Setup, WorkerSetup
from . import ending, memory, multiprocess, notes, own_page, seeding
from .classes import classes
from .functions import Carried, Kept, functions
from .hosts import Host, turn_to
from .large_replies import make_file
from .own_page import Own
from .tracebacks import describe

# The kill comes when the time is over. What is written of the call is written before, by so much
# that a busy machine finds time for it.
_OVERRUN_NS_MAX = 250_000_000

# Errors of reading a call whose own text says so; others have a note.
_READING = (
    AttributeError,
    ImportError,
    ModuleNotFoundError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
_UNREAD = "the call cannot be unpickled in the worker process"

preload_failures: list[str] = []  # of the program that this process was forked from


class _Process:
    """What is known of this worker process."""

    host: Host  # whose calls it runs now
    has_begun = False  # to be a worker, and is no more what it was forked from
    threads = 0  # beside the main one when the last call was over


def is_set_up() -> bool:
    return hasattr(_Process, "host") and _Process.host.is_set_up


class Broken(Exception):
    """The initializer failed: what it raised, and its traceback."""


def _meet(place: int, size: int) -> tuple[WorkerSetup, Setup]:
    given = WorkerSetup(place, size)
    return given, loads(given.pickled)


def _set_up(given: WorkerSetup, setup: Setup) -> None:
    """Makes this process what the executor wants, and runs its initializer; once."""
    given.mark(True)
    try:
        host = _Process.host
        host.receive(setup)
        if setup.path:
            host.follow(setup.path)
        multiprocess.set_up(setup.about)  # before what it may have to do with is loaded
        index = _core.worker_index() or 0
        own_page.watch()
        if not _Process.has_begun:
            _Process.has_begun = True
            # The start has taken it from the process, not from Python's copy: programs that a call
            # starts with that one would be told that they are to be workers.
            os.environ.pop("LEVERET_WORKER_SOCKET", None)
            own_page.watch_exit()
        host.surround()
        lives = int(Own.words[page.LIVES])
        seeding.seed_all(setup.seed, index, lives, is_given=setup.is_seed_given)
        host.notes.begin()
        for each in preload_failures:
            warnings.warn(each, RuntimeWarning, stacklevel=1)
        if setup.initializer:
            Own.words[page.IN_SETUP] = 1
            initializer, initargs = functions.load(setup.initializer)[0]
            initializer(*initargs)
            _core.keep_alarm()
            ending.leave_call()
            Own.words[page.IN_SETUP] = 0
        own_page.watch()
        _core.retire_worker_after(setup.idle_ns_max)
        _Process.threads = _count()
    except BaseException as error:
        raise Broken(_said_in_set_up(error), describe(error)) from error
    finally:
        given.mark(False)
    host.is_set_up = True


def _said_in_set_up(error: BaseException) -> str:
    """Never raises: the executor is broken, whatever comes meanwhile."""
    try:
        return said_error(error)
    except BaseException:
        return type(error).__qualname__


def _call_kept(pickled: bytes, args: Any, kwargs: Any) -> Any:
    kept = functions.kept.get(pickled) or _keep(pickled)
    if not kept.made:  # it went by its name
        return kept.function(*args, **kwargs)
    kept.refresh()
    try:
        return kept.function(*args, **kwargs)
    finally:
        functions.look_after(pickled, kept)


def _run_chunk(
    pickled: bytes, kinds: memoryview, given: Any, is_apart: bool
) -> tuple[list[Any], dict[int, list[Any]], dict[int, bytes]]:
    """The results and errors, as far as there was time.

    The host sends what is left again: so none waits behind a call that is long after all, and a
    crash takes few results along. The time begins when a function that came with the chunk has
    been loaded: otherwise a large one would be loaded for each item.
    """
    carried, fronts, items = given if is_apart else (None, [], given)
    results = chunks.Results()
    function: Carried | None = None
    end = perf_counter_ns() + chunks.CHUNK_NS_MAX
    for each in items:
        try:
            if kinds:
                _load_classes(kinds)
            while fronts:
                functions.take(fronts.pop(0))
            args = _load(*_own(each)) if is_apart else each
            if carried is None:
                results.add(_call_kept(pickled, args, {}))
            else:
                if function is None:
                    function = _load_carried(*_own(carried))
                    end = perf_counter_ns() + chunks.CHUNK_NS_MAX
                elif not function.is_as_loaded():
                    function = _load_carried(*_own(carried))
                own_page.name_call(b"", function.function)
                results.add(function.function(*args))
        except BaseException as error:
            if isinstance(error, NameError):
                spaces.explain(error)
            ending.leave_call(error)
            results.add_error(dump_error(error, describe(error)))
            if isinstance(error, MemoryError) and _gives_way():
                break
        ending.leave_call()
        if perf_counter_ns() >= end:
            break
    return results.parts()


def _gives_way() -> bool:
    """After a MemoryError: another process follows if this one is full, or all calls had that."""
    if not memory.is_nearly_full():
        return False
    _core.retire_worker()
    return True


def _own(part: tuple[Any, list[Any]]) -> tuple[Any, Any]:
    """Private copies of buffers: the function may change them, and keep them."""
    data, buffers = part
    return data, [stored.own(each) for each in buffers] if buffers else None


def _say_where(error: BaseException) -> None:
    """Has an error of reading a call say so: else it looks like one of the function's own.

    A process in which an earlier call has taken the modules away reads no more calls rightly.
    """
    if sys.modules.get("sys") is not sys:
        _core.retire_worker()
    text = error.args[0] if len(error.args) == 1 else None
    if type(error) in _READING and isinstance(text, str):
        text = f"{_UNREAD}: {text}"
        if type(error) is AttributeError and "on <module" in text:
            text += "; a new executor's processes import a module that was reloaded since"
        error.args = (text,)
        if isinstance(error, ImportError):
            error.msg = text
    elif sys.version_info >= (3, 11) and _UNREAD not in (vars(error).get("__notes__") or ()):
        BaseException.add_note(error, _UNREAD)  # its class may have another


def _load(data: Any, buffers: Any, flags: int = 0) -> Any:
    """The arguments; where the function is with them, that in front."""
    try:
        if flags & DESCRIBED:
            return described.load(data, buffers), {}
        if flags & PLAIN:
            return loads(data, buffers=buffers)
        return functions.load(data, buffers)[0]
    except BaseException as error:
        _say_where(error)
        raise


def _load_carried(data: Any, buffers: Any) -> Carried:
    try:
        return Carried(*functions.load(data, buffers))
    except BaseException as error:
        _say_where(error)
        raise


def _load_classes(kinds: memoryview) -> None:
    try:
        classes.load(kinds)
    except BaseException as error:
        _say_where(error)
        raise


def _keep(pickled: bytes) -> Kept:
    try:
        return functions.keep(pickled)
    except BaseException as error:
        _say_where(error)
        raise


def _call(head: tuple[int, ...], request: memoryview, buffers: list[memoryview]) -> Any:
    flags, length, path_length, name_length, _, _, seed, kinds_length = head
    if flags & SEEDED:
        seeding.seed_all(_Process.host.setup.seed, "call", seed, is_given=True)
    at = REQUEST.size + length
    if path_length:
        _Process.host.follow(bytes(request[at : at + path_length]))
    at += path_length
    data = request[at + name_length + kinds_length :]
    kinds = request[at + name_length : at + name_length + kinds_length]
    if kinds:
        _load_classes(kinds)
    pickled = request[REQUEST.size : REQUEST.size + length].tobytes()
    if name_length:
        own_page.name_call(b"", str(request[at : at + name_length], "utf-8", "replace"))
    elif length and Own.named != pickled:
        own_page.name_call(pickled, _keep(pickled).function)
    if flags & CHUNK:
        return _run_chunk(pickled, kinds, loads(data, buffers=buffers), bool(flags & APART))
    own = [stored.own(each) for each in buffers] if buffers else None
    given = _load(data, own, flags)
    if length:
        return _call_kept(pickled, *given)
    function, args, kwargs = given
    if not name_length:
        own_page.name_call(b"", function)
    return function(*args, **kwargs)


def _dump_error(error: BaseException) -> bytes:
    if isinstance(error, Broken):
        return dumps(error.args, 5)
    return dump_error(error, describe(error))


def _reply(
    reply: memoryview, kind: int, pickled: bytes, buffers: list[memoryview], ns: int
) -> None:
    has_notes = notes.has_any()
    if not (buffers or has_notes) and _core.write_plain_reply(reply, kind, pickled, ns):
        return
    if has_notes:
        kind |= NOTED
        buffers = [*buffers, memoryview(notes.take())]
    size = reply_size(len(pickled), buffers)
    if size > len(reply):
        where = make_file(_Process.host.setup.about.replies, kind, pickled, buffers, ns, size)
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
    """Runs one call.

    What is raised here is no error of the call's: this process is not what it was, as a call may
    have put something else into a module that all use. Another one replaces it.
    """
    try:
        _run_marked(setup, setup_bytes, request, reply, buffers)
    except BaseException:
        _core.retire_worker()
        raise


def _run_marked(
    setup: int,
    setup_bytes: int,
    request: memoryview,
    reply: memoryview,
    buffers: list[memoryview],
) -> None:
    """Runs one call, which is marked in the page from its begin until nothing is left of it."""
    if not hasattr(_Process, "host"):
        ending.Worker.pid = getpid()
    if not hasattr(_Process, "host") or (setup, setup_bytes) != _Process.host.place:
        _Process.host = turn_to((setup, setup_bytes))
    is_first = not _Process.host.is_set_up
    if is_first and Own.place is None:
        with contextlib.suppress(Exception):  # told when it is read again
            own_page.open_page(_meet(setup, setup_bytes)[1], _core.worker_index() or 0)
    head = REQUEST.unpack_from(request)
    ns_max = head[5]
    Own.words[CALL] = head[4]
    if ns_max:
        own_page.rewind()
        _core.set_timer(max(1, ns_max - min(ns_max // 4, _OVERRUN_NS_MAX)))
    _run((setup, setup_bytes), head, request, reply, buffers)
    _flush()
    if ns_max:
        _core.set_timer(0)
    threads = _count()
    if threads != _Process.threads:
        _Process.threads = threads
        own_page.note_threads(_name(bytes(request[REQUEST.size : REQUEST.size + head[1]])))
    if is_first:
        Own.words[page.HAS_RUN] = 1
    Own.words[CALL] = 0


def _name(pickled: bytes) -> str:
    """The function of a call that is over."""
    if not pickled:
        return "a function that went by value"
    return str(getattr(functions.keep(pickled).function, "__qualname__", "a callable object"))


def _run(
    place: tuple[int, int],
    head: tuple[int, ...],
    request: memoryview,
    reply: memoryview,
    buffers: list[memoryview],
) -> None:
    """Writes the reply of a call; what goes wrong in it is part of the reply."""
    begin = perf_counter_ns() - tables.Taken.ns
    views: list[memoryview] = []
    value: Any = None
    try:
        if not _Process.host.is_set_up:
            _set_up(*_meet(*place))
        value = _call(head, request, buffers)
        ending.leave_call()
        kind, pickled, views = dump_reply(value)
    except BaseException as error:
        if isinstance(error, NameError):
            spaces.explain(error)
        ending.leave_call(error)
        kind = BROKEN if isinstance(error, Broken) else ERROR
        pickled, views = _dump_error(error), []
        if isinstance(error, MemoryError):
            _gives_way()
    try:
        _reply(reply, kind, pickled, views, perf_counter_ns() - begin - tables.Taken.ns)
    except BaseException as error:  # no memory for it, say
        ns = perf_counter_ns() - begin - tables.Taken.ns
        _reply(reply, ERROR, _dump_error(error), [], ns)
    host = _Process.host
    if host.calls_left > 0:
        host.calls_left -= 1
        if host.calls_left == 0:
            _core.retire_worker()
