"""ProcessExecutor: every call gets its own copies, and nothing is kept that can change."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from conftest import DEEP, descriptors, needs_processes, pid_of, rest

import leveret
from leveret import ProcessExecutor
from leveret.executor.future import Future
from leveret.executor.work import Work
from leveret.wire.pickling import CHUNK

pytestmark = needs_processes


@pytest.fixture
def one() -> Any:
    with ProcessExecutor(1) as executor:
        yield executor


# What an earlier call changed is not seen by a later one.


class Account:
    def __init__(self) -> None:
        self.n = 0

    def add(self, i: int) -> int:
        self.n += i
        return self.n

    def __call__(self, i: int) -> int:
        return self.add(i)


def take(config: dict[str, int], i: int) -> tuple[int, int]:
    return config.pop("limit"), i


def append(given: list[int]) -> int:
    given.append(1)
    return len(given)


def stateful() -> list[tuple[Any, Any]]:
    """Functions that change themselves, with what they return for i."""
    count = [0]

    def closure(i: int) -> int:
        count[0] += 1
        return count[0]

    def default(i: int, seen: list[int] = []) -> int:  # noqa: B006
        seen.append(i)
        return len(seen)

    def by_name(i: int, *, seen: dict[str, int] = {"n": 0}) -> int:  # noqa: B006
        seen["n"] += 1
        return seen["n"]

    def attribute(i: int) -> int:
        attribute.n = getattr(attribute, "n", 0) + 1  # type: ignore[attr-defined]
        return int(attribute.n)  # type: ignore[attr-defined]

    space: dict[str, Any] = {"__name__": "__main__"}
    exec(
        "def sets_attribute(i):\n"
        " sets_attribute.n = getattr(sets_attribute, 'n', 0) + 1\n return sets_attribute.n\n",
        space,
    )
    ones = [closure, default, by_name, attribute, space["sets_attribute"]]
    account = Account()
    return [
        *((f, lambda i: 1) for f in ones),
        (account.add, lambda i: i),
        (account, lambda i: i),
        (functools.partial(take, {"limit": 3}), lambda i: (3, i)),
        (functools.partial(lambda made, i: append(made), [0]), lambda i: 2),
    ]


@pytest.mark.parametrize("which", range(len(stateful())))
def test_calls_do_not_see_each_other(one: ProcessExecutor, which: int) -> None:
    function, expected = stateful()[which]
    assert [one.submit(function, i).result(30) for i in range(3)] == [expected(i) for i in range(3)]
    for chunksize in (None, 1, 7):
        got = list(one.map(function, range(40), chunksize=chunksize))
        assert got == [expected(i) for i in range(40)]


def test_items_of_a_chunk_do_not_share_their_arguments(one: ProcessExecutor) -> None:
    shared = [0]
    assert list(one.map(append, [shared] * 5, chunksize=5)) == [2] * 5
    x = np.zeros(5000)

    def fill(a: Any) -> float:
        a += 1
        return float(a.sum())

    assert list(one.map(fill, [x] * 5, chunksize=5)) == [5000.0] * 5


def test_classes_go_once_for_all_items_of_a_chunk(one: ProcessExecutor) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    methods = "".join(f" def method_{i}(self): return {i}\n" for i in range(30))
    exec(
        f"class Base:\n{methods}"
        "class Point(Base):\n count = 0\n def __init__(self, x): self.x = x\n"
        "def counts(point):\n type(point).count += 1\n return point.x, point.count\n",
        space,
    )
    points = [space["Point"](i) for i in range(50)]
    alone, several = (
        Work(Future(), space["counts"], CHUNK, [(p,) for p in points[:n]]).size() for n in (1, 50)
    )
    assert several < 2 * alone
    assert list(one.map(space["counts"], points, chunksize=50)) == [(i, 1) for i in range(50)]
    came = list(one.map(lambda point: point, points, chunksize=50))
    assert {type(each) for each in came} == {space["Point"]}
    assert [each.x for each in came] == list(range(50))


def test_objects_that_items_share_with_their_class_are_shared_in_a_chunk(
    one: ProcessExecutor,
) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(
        "class Empty: pass\n"
        "class Base:\n EMPTY = Empty()\n def default(self, x=[Empty()]): return x\n"
        "class Node(Base):\n def __init__(self): self.left, self.own = self.EMPTY, self.default()\n"
        "def same(node): return node.left is type(node).EMPTY and node.own is node.default()\n",
        space,
    )
    nodes = [space["Node"]() for _ in range(20)]
    for size in (1, 2, 20):
        assert all(one.map(space["same"], nodes, chunksize=size)), size


def test_a_chunk_may_have_objects_of_many_classes(one: ProcessExecutor) -> None:
    items = [type(f"Kind{i}", (), {"__module__": "__main__", "n": i})() for i in range(40)]
    assert list(one.map(lambda each: type(each).n, items, chunksize=40)) == list(range(40))


def grows(i: int) -> Any:
    kept = vars(sys.modules[grows.__module__]).setdefault("_grown", [])
    kept.append(i)
    return kept


def test_results_of_a_chunk_are_what_each_call_returned() -> None:
    with ProcessExecutor(1) as executor:
        got = list(executor.map(grows, range(4), chunksize=4))
    assert got == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    got[0].append(9)
    assert got[1] == [0, 1]


def first_number(seed: np.random.SeedSequence) -> float:
    return float(np.random.default_rng(seed).random())


def test_arguments_of_classes_that_c_code_has_made(one: ProcessExecutor) -> None:
    """Their reducers may be of a module that is made at run time, as Cython's are."""
    seeds = np.random.SeedSequence(5).spawn(3)
    assert list(one.map(first_number, seeds)) == [first_number(each) for each in seeds]


def test_function_and_arguments_that_are_one_object_stay_one(one: ProcessExecutor) -> None:
    class Holder:
        def is_same(self, other: object) -> bool:
            return self is other

    holder = Holder()
    assert one.submit(holder.is_same, holder).result(30)


def _counting() -> tuple[Callable[[], None], Callable[[int], int]]:
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    def work(times: int) -> int:
        for _ in range(times):
            add()
        return count

    return add, work


def _run_both(add: Callable[[], None], work: Callable[[int], int]) -> int:
    add()
    return work(1)


def test_functions_that_share_a_nonlocal_variable_share_it_there(one: ProcessExecutor) -> None:
    _, work = _counting()
    assert one.submit(work, 5).result() == 5
    assert list(one.map(work, [1, 2, 3, 4], chunksize=2)) == [1, 2, 3, 4]
    assert work(1) == 1  # none of that was here
    assert one.submit(_run_both, *_counting()).result() == 2
    add, work = one.submit(_counting).result()
    add()
    assert work(1) == 2


def test_joblib_batches_do_not_see_each_other() -> None:
    joblib = pytest.importorskip("joblib")
    leveret.register_joblib()
    with joblib.parallel_config(backend="leveret", n_jobs=1):
        got = joblib.Parallel(batch_size=1)(joblib.delayed(append)([]) for _ in range(6))
    assert got == [1] * 6


# What is constant is kept, until it changes.


def main_like(code: str, **names: Any) -> Any:
    """The function f of a module that workers do not have."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(code, space)
    return space


def test_a_function_is_sent_again_when_its_globals_change(one: ProcessExecutor) -> None:
    space = main_like("def f(x): return math.sqrt(x) * K + g()\ndef g(): return OFFSET")
    f = space["f"]
    assert isinstance(one.submit(f, 4.0).exception(30), NameError)
    import math

    space.update(math=math, K=3, OFFSET=1)
    assert one.submit(f, 4.0).result(30) == 7.0
    space["OFFSET"] = 2
    assert one.submit(f, 4.0).result(30) == 8.0
    exec("def g(): return 100", space)
    assert one.submit(f, 4.0).result(30) == 106.0
    space["g"].__defaults__ = ()
    space["K"] = [3]
    assert one.submit(f, 4.0).exception(30) is not None
    space["K"] = 2
    assert one.submit(f, 4.0).result(30) == 104.0
    f.__code__ = (lambda x: x).__code__
    assert one.submit(f, 4.0).result(30) == 4.0
    exec("def f(x): return len(x)", space)
    assert one.submit(space["f"], "abc").result(30) == 3
    space["len"] = sum
    assert one.submit(space["f"], [1, 2]).result(30) == 3


def test_what_is_kept_by_the_host() -> None:
    from leveret.wire.functions import known_function

    space = main_like(
        "def f(x): return np.sqrt(x) * K * g(x)\ndef g(x): return len(K)", np=np, K=()
    )
    known = known_function(space["f"])
    assert known is not None and known_function(space["f"]) is known
    for value in ([1], {}, object(), np.zeros(3), Account(), (1, [2]), lambda: space):
        space["K"] = value
        assert known_function(space["f"]) is None
    space["K"] = (1, "two", (3.0, None), frozenset({4}), len, np, np.sqrt, Account, append, ...)
    assert known_function(space["f"]) is not None
    space["K"] = b"x" * (1 << 20)
    assert known_function(space["f"]) is None
    for function in (len, int, append, Account, np.sum, functools.reduce):
        assert known_function(function) is known_function(function) is not None
    changing: list[Any] = [Account().add, Account(), functools.partial(append), [].append, "".join]
    for function in changing:
        assert known_function(function) is None


def test_what_the_host_keeps_goes_with_the_function() -> None:
    from leveret.wire import functions

    known_function = functions.known_function
    before = len(functions._kept.functions), functions._kept.bytes
    for i in range(50):
        assert known_function(main_like(f"def f(): return {i}")["f"]) is not None
    gc.collect()
    assert len(functions._kept.functions) <= before[0] + 1
    assert functions._kept.bytes <= before[1] + 1000


def resident_bytes(_: object = None) -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) << 12


def test_nothing_is_kept_of_what_functions_carry(one: ProcessExecutor) -> None:
    """Closures of 8 MB each: 40 of them would be 320 MB."""

    def sent(i: int) -> float:
        weights = np.full(1_000_000, float(i))
        return float(one.submit(lambda: float(weights[-1])).result(60))

    assert [sent(i) for i in range(8)] == list(range(8))
    before = resident_bytes(), one.submit(resident_bytes).result(30)
    assert [sent(i) for i in range(40)] == list(range(40))
    after = resident_bytes(), one.submit(resident_bytes).result(30)
    assert after[0] - before[0] < 100 << 20 and after[1] - before[1] < 100 << 20


def test_a_worker_keeps_no_more_than_its_limit() -> None:
    from leveret.wire.functions import known_function
    from leveret.worker.functions import KEPT_BYTES_MAX, Functions

    functions = Functions()
    for i in range(200):
        known = known_function(main_like(f"def f(): return '{'x' * 60_000}', {i}")["f"])
        assert known is not None
        assert functions.keep(known.pickled).function()[1] == i
        assert functions.bytes <= KEPT_BYTES_MAX
    assert functions.bytes == sum(map(len, functions.kept)) and len(functions.kept) < 100


# Initializers and the module's globals.


def test_what_an_initializer_sets_is_there_for_functions_of_its_module() -> None:
    space = main_like(
        "def init(v):\n global G\n G = v\ndef use(x): return G + x\ndef other(): return use(1)",
        G=None,
    )
    with ProcessExecutor(1, initializer=space["init"], initargs=(5,)) as executor:
        assert executor.submit(space["use"], 2).result(30) == 7
        assert executor.submit(space["use"], 3).result(30) == 8
        assert executor.submit(functools.partial(space["other"])).result(30) == 6
        assert executor.submit(lambda f: f(3), space["use"]).result(30) == 8


def test_a_changed_search_path_reaches_workers(one: ProcessExecutor, tmp_path: Path) -> None:
    (tmp_path / "leveret_late_module.py").write_text("def f(x): return x + 1\n")
    assert one.submit(pid_of).result(30)
    sys.path.insert(0, str(tmp_path))
    try:
        import leveret_late_module  # type: ignore[import-not-found]

        assert one.submit(leveret_late_module.f, 1).result(30) == 2
    finally:
        sys.path.remove(str(tmp_path))
    # Nobody finds it now: it goes by value.
    assert one.submit(leveret_late_module.f, 2).result(30) == 3
    del sys.modules["leveret_late_module"]


# Shared arrays are the same memory wherever they are.


def fill(a: Any, v: float) -> None:
    a[:] = v


class Job:
    def __init__(self, a: Any) -> None:
        self.a = a

    def run(self, v: float) -> None:
        self.a[:] = v


def test_shared_arrays_inside_of_anything(one: ProcessExecutor) -> None:
    def filled(make: Any) -> None:
        a = leveret.shared_array((40, 25))
        make(a).result(30)
        assert (a == 1.0).all()

    filled(lambda a: one.submit(functools.partial(fill, a), 1.0))
    filled(lambda a: one.submit(lambda v: fill(a, v), 1.0))
    filled(lambda a: one.submit(Job(a).run, 1.0))
    filled(lambda a: one.submit(lambda d: fill(d["a"][0], 1.0), {"a": [a]}))
    filled(lambda a: one.submit(lambda x=a: fill(x, 1.0)))  # type: ignore[misc]
    filled(lambda a: one.submit(fill, a[::-1], 1.0))
    filled(lambda a: one.submit(fill, a[::-1, ::-1].T, 1.0))
    filled(lambda a: one.submit(fill, a.view(np.recarray), 1.0))
    kind = type("Subclass", (np.ndarray,), {"__module__": "__main__"})  # it goes by value
    filled(lambda a: one.submit(fill, a.view(kind), 1.0))
    for chunksize in (1, 2):
        b = leveret.shared_array((2, 10))
        list(one.map(functools.partial(fill, b), [1.0, 2.0], chunksize=chunksize))
        list(one.map(fill, [b[0], b[1, ::-2]], [3.0, 4.0], chunksize=chunksize))
        assert (b[0] == 3).all() and (b[1, 1::2] == 4).all() and (b[1, ::2] == 2).all()
    c = leveret.shared_array(10)
    c[:] = range(10)
    got = one.submit(lambda a: (a[::-1], a[7:2:-2]), c).result(30)
    assert list(got[0]) == list(range(9, -1, -1)) and list(got[1]) == [7, 5, 3]
    c[9] = 100
    assert got[0][0] == 100


def test_a_shared_array_of_initargs_lives_as_long_as_the_executor() -> None:
    a = leveret.shared_array(1000)
    address = a.ctypes.data
    with ProcessExecutor(1, initializer=fill, initargs=(a, 1.0)) as executor:
        del a
        others = [leveret.shared_array(1000) for _ in range(4)]
        assert address not in [each.ctypes.data for each in others]
        assert executor.submit(abs, -1).result(30) == 1
        assert not any(each.any() for each in others)


# What cannot be pickled or unpickled.


class Hostile:
    """Raises what nobody expects while it is pickled or unpickled."""

    def __init__(self, when: str) -> None:
        self.when = when

    def __reduce__(self) -> Any:
        if self.when == "dump":
            sys.exit(3)
        return sys.exit, (4,)


def make_hostile(when: str) -> Any:
    return Hostile(when)


def make_lock(i: int) -> Any:
    return threading.Lock() if i == 3 else [i]


def test_an_argument_that_ends_the_program_ends_its_call(one: ProcessExecutor) -> None:
    future = one.submit(str, Hostile("dump"))
    assert isinstance(future.exception(30), SystemExit)
    assert isinstance(one.submit(str, Hostile("load")).exception(30), SystemExit)
    got = one.map(abs, [Hostile("load")], chunksize=1)
    with pytest.raises(SystemExit):
        next(got)
    assert one.submit(abs, -1).result(30) == 1


def test_a_result_that_cannot_be_unpickled_names_its_call(one: ProcessExecutor) -> None:
    what = r"make_hostile\('load'\): its result cannot be unpickled: SystemExit: 4"
    with pytest.raises(leveret.TaskFailed, match=what) as caught:
        one.submit(make_hostile, "load").result(30)
    assert isinstance(caught.value.__cause__, SystemExit)
    got = one.map(make_hostile, ["load"] * 3, chunksize=3)
    with pytest.raises(leveret.TaskFailed, match=what):
        next(got)
    assert one.submit(abs, -1).result(30) == 1


def test_results_before_one_that_cannot_be_pickled(one: ProcessExecutor) -> None:
    got = one.map(make_lock, range(10), chunksize=10)
    assert [next(got) for _ in range(3)] == [[0], [1], [2]]
    with pytest.raises(TypeError, match="pickle") as caught:
        next(got)
    assert type(caught.value.__cause__) is leveret.executor.RemoteTraceback


# What is over leaves nothing.


def test_executors_that_were_closed_leave_nothing() -> None:
    """Without the cyclic collector; their futures are kept."""
    futures = []

    def use(count: int) -> None:
        for _ in range(count):
            with ProcessExecutor(1) as executor:
                futures.append(executor.submit(abs, -1))

    use(1)  # what the process has once for all
    gc.collect()
    gc.disable()
    try:
        before = descriptors()
        use(300 if DEEP else 6)
        end = time.monotonic() + 30  # the thread that closes an executor may be at its last lines
        while descriptors() > before and time.monotonic() < end:
            rest(0.01)
        assert descriptors() <= before
    finally:
        gc.enable()
    assert all(future.result(0) == 1 for future in futures)
