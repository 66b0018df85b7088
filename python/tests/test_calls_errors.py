"""ProcessExecutor: exceptions arrive as what they are, and large results leave nothing behind."""

from __future__ import annotations

import copyreg
import functools
import os
import pickle
import queue
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import descriptors, needs_processes, wait_until

import leveret
import leveret.wire.chunks
from leveret import ProcessExecutor

pytestmark = needs_processes


class NotConverged(Exception):
    def __init__(self, step: int, residual: float) -> None:
        super().__init__(f"step {step}: residual {residual}")
        self.step = step


class Holds(Exception):
    """Has something that cannot be pickled, beside what can."""

    def __init__(self, text: str) -> None:
        super().__init__(text, threading.Lock())
        self.lock = threading.Lock()
        self.where = "mesh"


class FromOs(OSError):
    def __init__(self, name: str) -> None:
        super().__init__(5, "broken", name)


class Refuses(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit(3)


class Unreadable(Exception):
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


RAISED: list[tuple[Any, type[BaseException], str]] = [
    (lambda: NotConverged(30, 0.5), NotConverged, "step 30: residual 0.5"),
    (lambda: Holds("bad mesh"), Holds, "bad mesh"),
    (lambda: FromOs("disk"), FromOs, "[Errno 5] broken: 'disk'"),
    (lambda: Refuses("why"), Refuses, "why"),
    (lambda: Unreadable("why"), Unreadable, "why"),
    (lambda: Mute(1), Mute, ""),
    (lambda: SystemExit(4), SystemExit, "4"),
    (KeyboardInterrupt, KeyboardInterrupt, ""),
    (lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeDecodeError, "can't decode"),
]


def raise_at(bad: int, which: int, i: int) -> int:
    if i == bad:
        raise RAISED[which][0]()
    return i


@pytest.fixture(scope="module")
def one() -> Any:
    with ProcessExecutor(1) as executor:
        yield executor


def test_an_item_that_raises_ends_no_chunk(
    one: ProcessExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    dump_chunk = leveret.wire.chunks.dump_chunk

    def counted(carried: Any, known: Any, beside: Any, items: list[Any], held: list[Any]) -> Any:
        sent.append(len(items))
        return dump_chunk(carried, known, beside, items, held)

    monkeypatch.setattr("leveret.wire.chunks.dump_chunk", counted)
    texts = ["1", "one", [2], "2", None, "3"] * 2
    got = list(one.map(int, texts, chunksize=12, return_exceptions=True))
    assert sent[0] == 12
    assert len(sent) <= 4  # not 7, though a slow machine makes some
    kinds = [int, ValueError, TypeError, int, TypeError, int] * 2
    assert list(map(type, got)) == kinds and got[-1] == 3 and "'one'" in str(got[1])


@pytest.mark.parametrize("which", range(len(RAISED)))
def test_exceptions_arrive_from_calls_and_chunks(one: ProcessExecutor, which: int) -> None:
    _, kind, text = RAISED[which]

    def check(error: BaseException | None) -> None:
        assert type(error) is kind
        if kind is not Mute:
            assert text in str(error)
        trace = error.__cause__
        assert type(trace) is leveret.executor.RemoteTraceback
        assert "in raise_at" in str(trace) and kind.__name__ in str(trace)
        assert "worker/calls.py" not in str(trace)

    check(one.submit(raise_at, 0, which, 0).exception(30))
    for chunksize in (1, 4, 50):
        got = one.map(raise_at, [30] * 50, [which] * 50, range(50), chunksize=chunksize)
        assert [next(got) for _ in range(30)] == list(range(30))
        with pytest.raises(kind) as caught:
            next(got)
        check(caught.value)


def test_what_an_exception_has_arrives(one: ProcessExecutor) -> None:
    error: Any = one.submit(raise_at, 0, 1, 0).exception(30)
    assert error.where == "mesh" and not hasattr(error, "lock") and "lock" in error.args[1]
    error = one.submit(raise_at, 0, 0, 0).exception(30)
    assert error.step == 30 and error.args == ("step 30: residual 0.5",)
    error = one.submit(raise_at, 0, 2, 0).exception(30)
    assert (error.errno, error.filename) == (5, "disk")


class Waits(Exception):
    """As errors of libraries that retry: its text is that of what it has."""

    def __init__(self, name: str) -> None:
        super().__init__(threading.Lock())
        self.lock, self.name = self.args[0], name

    def __str__(self) -> str:
        return f"{self.name} waits for a {type(self.lock).__name__}"


class InSlots(Exception):
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __str__(self) -> str:
        return f"no {self.name}"


class Final(type):
    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Final:
        if any(type(each) is Final for each in bases):
            raise TypeError("not again")
        return super().__new__(cls, name, bases, space)


class HasNoHeirs(Waits, metaclass=Final):
    pass


class NotesHeirs(Waits):
    heirs: ClassVar[list[str]] = []

    def __init_subclass__(cls) -> None:
        NotesHeirs.heirs.append(cls.__name__)


_LEFT = "it waits for a lock (left out, as it cannot be pickled: lock)"
SAYING = {Waits: _LEFT, HasNoHeirs: _LEFT, NotesHeirs: _LEFT, InSlots: "no it"}


@pytest.mark.parametrize("kind", SAYING)
def test_a_text_that_needs_what_cannot_be_pickled_arrives(
    one: ProcessExecutor, kind: type[Exception]
) -> None:
    def fail() -> None:
        raise kind("it")

    error: Any = one.submit(fail).exception(30)
    assert isinstance(error, kind)
    assert type(error).__qualname__ == kind.__qualname__
    assert str(error) == SAYING[kind] and not hasattr(error, "lock")
    again = one.submit(lambda: error).result(30)
    assert isinstance(again, kind) and str(again) == str(error)
    assert not NotesHeirs.heirs


def chain() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise NotConverged(1, 2.0) from error
    except NotConverged:
        raise ValueError("third")  # noqa: B904


def test_causes_and_contexts_arrive_as_text(one: ProcessExecutor) -> None:
    text = str(one.submit(chain).exception(30).__cause__)  # type: ignore[union-attr]
    for part in ("KeyError: 'first'", "direct cause", "NotConverged: step 1", "ValueError: third"):
        assert part in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups and notes are of Python 3.11")
def test_groups_and_notes_arrive(one: ProcessExecutor) -> None:
    def fail() -> None:
        inner: Any = NotConverged(1, 0.5)
        inner.add_note("try a smaller step")
        group: Any = getattr(__import__("builtins"), "ExceptionGroup")  # noqa: B009
        raise group("several", [inner, Holds("mesh"), ValueError("plain")])

    error: Any = one.submit(fail).exception(30)
    assert type(error).__name__ == "ExceptionGroup" and error.message == "several"
    assert [type(each) for each in error.exceptions] == [NotConverged, Holds, ValueError]
    assert error.exceptions[0].__notes__ == ["try a smaller step"]
    assert "smaller step" in str(error.__cause__)


# Large results.


def large(i: int) -> Any:
    return np.full(3_000_000, float(i))


def files_of_replies(_: object = None) -> int:
    found = Path("/proc/self/fd").iterdir()
    return sum("leveret-reply" in os.path.realpath(each) for each in found)


def test_nobody_keeps_large_results() -> None:
    with ProcessExecutor(1) as executor:
        executor.submit(large, 0).result(60)
        before = descriptors()
        kept = [executor.submit(large, i) for i in range(12)]
        assert [future.result(60)[-1] for future in kept] == list(range(12))
        del kept
        assert executor.submit(files_of_replies).result(60) == 0
        assert files_of_replies() == 0 and descriptors() <= before


def test_large_results_without_the_socket() -> None:
    """They are opened in the worker then, which closes the oldest."""
    with ProcessExecutor(1) as executor:
        socket = executor._pool.files.socket
        assert socket is not None
        socket.close()
        for i in range(40):
            assert executor.submit(large, i).result(60)[-1] == i
        assert 0 < executor.submit(files_of_replies).result(60) <= 32


def die_after_sending(pid_file: str) -> Any:
    Path(pid_file).write_text(str(os.getpid()))
    return large(7)


def test_a_large_result_outlives_its_worker(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with ProcessExecutor(1) as executor:
        future = executor.submit(die_after_sending, str(path))
        got = future.result(60)
        os.kill(int(path.read_text()), signal.SIGKILL)
        assert got[-1] == 7 and executor.submit(large, 8).result(60)[0] == 8


def test_files_whose_replies_never_came_are_dropped() -> None:
    """A worker that dies between its file and its reply leaves one behind."""
    import _socket
    import array

    with ProcessExecutor(1) as executor:
        assert executor.submit(abs, -1).result(60) == 1
        files = executor._pool.files
        way = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        way.connect(files.address)
        orphan = os.memfd_create("leveret-reply")
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [orphan]))
        way.sendmsg([b"r"], [rights])
        way.sendmsg([b"nothing"])
        way.close()
        os.close(orphan)
        assert executor.submit(large, 1).result(60)[0] == 1
        wait_until(lambda: not files.here)  # the thread that told the result drops them next
        assert files_of_replies() == 0


def test_an_attribute_of_a_class_that_cannot_be_pickled_is_named(
    pool: ProcessExecutor,
) -> None:
    class Kept:
        jobs: queue.Queue[int] = queue.Queue()
        all: ClassVar[dict[str, Any]] = {}

        def go(self) -> int:
            return len(Kept.all)

    told = "the attribute 'jobs' of class '.*Kept': cannot pickle"
    with pytest.raises(TypeError, match=told):
        pool.submit(lambda: Kept().go()).result(60)
    del Kept.jobs
    Kept.all["lock"] = threading.Lock()
    with pytest.raises(TypeError, match=told.replace("jobs", "all")):
        pool.submit(lambda: Kept().go()).result(60)


def test_what_cannot_be_pickled_is_told_apart(pool: ProcessExecutor) -> None:
    def take(lock: Any, *, at: int = 0) -> Any:
        return (i for i in range(3))

    lock = threading.Lock()
    told = str(pool.submit(take, lock, at=5).exception(30))
    assert re.search(r"take\(<unlocked .*>, at=5\): cannot pickle '_thread.lock' object", told), (
        told
    )
    with pytest.raises(TypeError, match=r"take\(<unlocked .*>\): cannot pickle '_thread.lock'"):
        list(pool.map(take, [lock]))
    result = "^the result, of type 'generator': cannot pickle 'generator' object; have the call"
    with pytest.raises(TypeError, match=result):
        pool.submit(take, 1).result(30)
    with pytest.raises(TypeError, match=result):
        list(pool.map(take, range(4), chunksize=2))


class Bound:
    """As objects of pybind11 are: their refusal to be pickled is a RuntimeError."""

    def use(self) -> None: ...

    def __repr__(self) -> str:
        return "bound"

    def __reduce__(self) -> Any:
        raise RuntimeError("<bound> is not pickleable.")


def test_objects_and_functions_of_pybind11(pool: ProcessExecutor) -> None:
    with pytest.raises(RuntimeError, match=r"^repr\(bound\): <bound> is not pickleable"):
        pool.submit(repr, Bound()).result(30)
    for owner in ("pybind11_detail_function_record_v1_abi_1.", "PyCapsule."):  # version 3; 2
        Bound.use.__qualname__ = owner + "use"
        with pytest.raises(RuntimeError, match=r"^use\(\): <bound> is not pickleable"):
            pool.submit(Bound().use).result(30)


class Disguised:
    """As proxies of web frameworks are: of another class than it says."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return dict

    def __repr__(self) -> str:
        return "<request>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return copyreg.__newobj__, (list,)  # type: ignore[attr-defined]


def test_an_argument_is_named_where_the_text_of_the_error_does_not(pool: ProcessExecutor) -> None:
    def take(number: int, *, of: Any = None) -> int:
        return number

    told = r"take\({}\): argument {}, of type 'Disguised', cannot be pickled: .* wrong class"
    with pytest.raises(pickle.PicklingError, match=told.format("<request>", 1)):
        list(pool.map(take, [Disguised()]))
    with pytest.raises(pickle.PicklingError, match=told.format("1, of=<request>", "'of'")):
        pool.submit(take, 1, of=Disguised()).result(30)


def test_what_decorates_a_function_is_named(pool: ProcessExecutor) -> None:
    lock = threading.Lock()

    def guarded(function: Any) -> Any:
        @functools.wraps(function)
        def guard(*args: Any) -> Any:
            with lock:
                return function(*args)

        return guard

    @guarded
    def step(i: int) -> int:
        return i

    def steps(i: int) -> Any:
        return step(i)

    told = r"\(1\): the variable 'lock' of what decorates the function '.*step': cannot pickle"
    for function in (step, steps):
        with pytest.raises(TypeError, match=told):
            pool.submit(function, 1).result(30)
    told = r"\(1\): the variable 'lock' of the function '.*': cannot pickle '_thread.lock' object;"
    with pytest.raises(TypeError, match=told):
        list(pool.map(lambda i: lock.locked(), [1]))


class Engine:
    """As users have it: an executor beside what calls need."""

    def __init__(self, pool: ProcessExecutor) -> None:
        self.pool = pool

    def step(self, i: int) -> int:
        return i

    def __repr__(self) -> str:
        return "<Engine>"


async def _later() -> int:
    return 1


@pytest.mark.filterwarnings("error")
def test_a_coroutine_as_the_result_says_how_to_run_it(pool: ProcessExecutor) -> None:
    future: Any = pool.submit(_later)
    said = r"of type 'coroutine': .* run it there, by asyncio.run\(\)"
    with pytest.raises(TypeError, match=said):
        future.result()


def test_executors_and_futures_that_are_sent_along(pool: ProcessExecutor) -> None:
    told = (
        r"step\(1\): cannot pickle a leveret.ProcessExecutor, which belongs to this process: leave"
    )
    with pytest.raises(TypeError, match=told):
        list(pool.map(Engine(pool).step, [1, 2]))
    with pytest.raises(TypeError, match=r"cannot pickle a future, .* send its result\(\)"):
        pool.submit(str, pool.submit(abs, -1)).result(30)


class NeedsTwo:  # no exception: packages such as tblib give those a pickle that works
    def __init__(self, a: int, b: int) -> None:
        self.a = a, b

    def __reduce__(self) -> tuple[Any, ...]:
        return NeedsTwo, self.a[:1]


def test_an_argument_that_cannot_be_unpickled_is_told_apart() -> None:
    with ProcessExecutor(1) as executor:
        error = executor.submit(repr, NeedsTwo(1, 2)).exception(60)
    assert type(error) is TypeError
    assert re.match(r"the call cannot be unpickled in the worker process: .*missing 1", str(error))


class Delegates:
    """Asks for its attribute again and again before it has it."""

    def __init__(self, other: object) -> None:
        self.other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.other, name)


class RaisesAsRead:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise state["error"]


def test_any_error_of_unpickling_an_argument_is_told_apart() -> None:
    told = "the call cannot be unpickled in the worker process"
    with ProcessExecutor(1) as executor:
        error: Any = executor.submit(repr, Delegates([1])).exception(60)
        assert type(error) is RecursionError and str(error).startswith(told)
        for given in (KeyError("k"), OSError(2, "no"), pickle.PickleError("p"), AssertionError()):
            error = executor.submit(repr, RaisesAsRead(given)).exception(60)
            assert type(error) is type(given) and str(error) == str(given)
            if sys.version_info >= (3, 11):
                assert error.__notes__ == [told] and told in str(error.__cause__)


def _spoil_the_builtins() -> None:
    import builtins

    setattr(builtins, "type", None)  # noqa: B010


def test_a_process_whose_modules_a_call_has_spoiled_is_replaced() -> None:
    with ProcessExecutor(1) as executor:
        before = executor.submit(os.getpid).result(60)
        error = executor.submit(_spoil_the_builtins).exception(60)
        assert type(error) is leveret.TaskFailed
        assert re.search("process was spoiled.*: TypeError: 'NoneType' object", str(error))
        assert executor.submit(os.getpid).result(60) != before
