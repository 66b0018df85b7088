"""The joblib backend: processes that stay, calls that crash, joblib's options."""

from __future__ import annotations

import functools
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from pickle import PicklingError
from typing import Any

import pytest
from conftest import needs_processes, pid_of, rest, wait_until

import leveret
from leveret import _core
from leveret.cli import demo_kill
from leveret.executor.joblib_pools import Kept, is_down, pools
from leveret.executor.names import call_name

joblib = pytest.importorskip("joblib")
pytestmark = needs_processes

from joblib import Parallel, delayed, parallel_config  # noqa: E402

SECONDS_MAX = 60.0


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    leveret.register_joblib()
    with parallel_config(backend="leveret", n_jobs=2):
        yield


def pids(**options: Any) -> set[int]:
    return set(Parallel(**options)(delayed(pid_of)() for _ in range(8)))


def latest() -> Kept:
    """The executor that was used last."""
    return max(pools.all.values(), key=lambda each: each.idle_since)


def grow(values: list[int]) -> int:
    values.append(1)
    return len(values)


def solve(i: int) -> int:
    if i in (3, 7):
        os.abort()
    return i * i


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(processes: set[int]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while any(map(is_alive, processes)):
        assert time.monotonic() < end, "processes that nobody needs are still there"
        rest(0.01)


# Processes that stay.


def test_processes_stay_from_call_to_call() -> None:
    first = pids()
    assert len(first) <= 2
    for _ in range(3):
        assert len(first | pids()) <= 2
    with Parallel() as parallel:
        assert len(first | set(parallel(delayed(pid_of)() for _ in range(4)))) <= 2


def test_processes_that_were_killed_while_idle_are_no_loss() -> None:
    """So often that their executor starts no others."""
    assert Parallel()(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]
    runtime = latest().executor._pool.runtime

    def are_gone() -> bool:
        for _ in range(20):
            for pool in _core.look_at_pools(os.getpid()):
                for each in pool["workers"]:
                    demo_kill.kill_worker(each["pid"])
            rest(0.005)
        return is_down(runtime)

    wait_until(are_gone)
    assert Parallel()(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]


def test_what_workers_are_made_of_opens_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pids()
    other = pids(n_jobs=3)
    assert not first & other
    wait_until_gone(first)  # nobody keeps two sets of idle processes
    monkeypatch.setenv("LEVERET_TEST_WORD", "new")
    assert (
        Parallel(n_jobs=3)(delayed(os.getenv)("LEVERET_TEST_WORD") for _ in range(3)) == ["new"] * 3
    )
    monkeypatch.syspath_prepend("/nowhere")
    found = Parallel(n_jobs=3)([delayed(eval)("__import__('sys').path[0]")] * 3)
    assert found == ["/nowhere"] * 3


def test_idle_processes_end() -> None:
    here = pids(idle_worker_timeout=0.05)
    wait_until_gone(here)
    assert not here & pids(idle_worker_timeout=0.05)


def test_the_latest_call_says_how_long_idle_processes_stay() -> None:
    first = pids()
    kept = latest()
    here = pids(idle_worker_timeout=0.05)
    assert latest().executor is kept.executor
    wait_until_gone(first | here)


def test_a_fork_opens_its_own() -> None:
    script = (
        "import os, joblib, leveret; leveret.register_joblib()\n"
        "def run():\n"
        "    return joblib.Parallel(2, 'leveret')(joblib.delayed(os.getpid)() for _ in 'ab')\n"
        "mine = set(run()); child = os.fork()\n"
        "if child == 0: os._exit(len(mine & set(run())))\n"
        "assert os.waitpid(child, 0)[1] == 0; assert len(mine | set(run())) <= 2"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=SECONDS_MAX)


# Calls.


def test_batches_that_look_alike_get_fresh_arguments() -> None:
    assert Parallel(batch_size=1)(delayed(grow)([]) for _ in range(10)) == [1] * 10


def test_the_call_at_fault_is_named() -> None:
    with pytest.raises(leveret.Poison, match=r"^solve\(3\) ended its worker process on each of"):
        Parallel(n_jobs=2, batch_size=5)(delayed(solve)(i) for i in range(5))


def fork_into_python() -> int:
    """How the child has ended, which returns from the call, too."""
    child = os.fork()
    return 0 if child == 0 else os.waitpid(child, 0)[1]


def test_what_a_call_leaves_is_nothing_to_the_next_of_its_batch() -> None:
    assert Parallel(batch_size=4)(delayed(signal.alarm)(3600) for _ in range(8)) == [0] * 8
    assert Parallel(batch_size=4)(delayed(fork_into_python)() for _ in range(8)) == [0] * 8


@pytest.mark.parametrize("batch_size", [1, 10])
def test_the_others_are_returned(batch_size: int) -> None:
    calls = [delayed(solve)(i) for i in range(10)]
    got = Parallel(batch_size=batch_size, on_poison="return", max_attempts=1)(calls)
    assert [i for i in range(10) if isinstance(got[i], leveret.Poison)] == [3, 7]
    assert [str(got[i]).split(" ")[0] for i in (3, 7)] == ["solve(3)", "solve(7)"]
    assert [each for i, each in enumerate(got) if i not in (3, 7)] == [
        i * i for i in range(10) if i not in (3, 7)
    ]


def test_a_time_limit_is_for_each_call() -> None:
    with parallel_config(backend="leveret", n_jobs=2, timeout=3, on_poison="return"):
        # A function that needs no imports: they would count.
        wait = delayed(select.select)
        got = Parallel(batch_size=4)(wait([], [], [], 60 if i == 1 else 0) for i in range(4))
    assert isinstance(got[1], leveret.Overran)
    assert str(got[1]).startswith("select([], [], [], 60) ran longer")
    assert got[:1] + got[2:] == [([], [], [])] * 3


def test_calls_that_must_not_run_twice(tmp_path: Path) -> None:
    def once(i: int) -> int:
        with (tmp_path / "log").open("a") as file:
            file.write(f"{i}\n")
        return solve(i)

    got = Parallel(batch_size=5, retry=False, on_poison="return")(
        delayed(once)(i) for i in range(5)
    )
    assert type(got[3]) is leveret.WorkerDied
    assert got[:3] + got[4:] == [0, 1, 4, 16]
    assert sorted((tmp_path / "log").read_text().split()) == list("01234")


def test_an_exception_ends_the_call_and_nothing_else() -> None:
    with Parallel() as parallel:
        for _ in range(10):
            with pytest.raises(ZeroDivisionError):
                parallel(delayed(divmod)(1, i) for i in (1, 0, 1))
            assert parallel(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]


class Errors(Exception):
    """A list of errors, which may have none."""

    def __len__(self) -> int:
        return len(self.args[1:])


def fail_with_none() -> None:
    raise Errors("none")


def test_an_exception_that_is_false() -> None:
    with pytest.raises(Errors):
        Parallel()(delayed(fail_with_none)() for _ in range(4))


def test_what_still_runs_after_an_exception_is_not_waited_for(tmp_path: Path) -> None:
    begin, until = time.monotonic(), tmp_path / "until"
    with pytest.raises(ZeroDivisionError):
        Parallel(batch_size=1)([delayed(wait_until)(until.exists, 120), delayed(divmod)(1, 0)])
    assert Parallel()(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]
    assert time.monotonic() - begin < 60
    until.touch()


def test_generators() -> None:
    for how in ("generator", "generator_unordered"):
        got = Parallel(return_as=how)(delayed(abs)(-i) for i in range(20))
        assert sorted(got) == list(range(20))


def test_a_generator_gives_what_came_before_the_crash() -> None:
    generator = Parallel(return_as="generator", batch_size=1)(delayed(solve)(i) for i in range(20))
    assert [next(generator) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(leveret.Poison, match=r"solve\([37]\)"):  # whichever is told first
        list(generator)


# joblib's options.


def test_threads_of_libraries_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    share = str(max(1, joblib.cpu_count() // 2))
    ask = [delayed(os.getenv)("OMP_NUM_THREADS")] * 2
    assert Parallel()(ask) == [share] * 2
    assert Parallel(threads_per_worker=2)(ask) == ["2"] * 2
    with parallel_config(backend="leveret", n_jobs=2, inner_max_num_threads=3):
        assert Parallel()(ask) == ["3"] * 2


def test_callbacks_of_the_executor() -> None:
    lock, told = threading.Lock(), []  # nothing that could be pickled

    def on_death(*_: Any) -> None:
        with lock:
            told.append(1)

    for _ in range(2):
        got = Parallel(on_death=on_death, on_poison="return", max_attempts=1, batch_size=1)(
            delayed(solve)(i) for i in range(6)
        )
        assert isinstance(got[3], leveret.Poison)
    end = time.monotonic() + SECONDS_MAX
    while len(told) < 2:
        assert time.monotonic() < end
        rest(0.01)


def set_word(word: str) -> None:
    os.environ["LEVERET_TEST_WORD"] = word


def test_initializer() -> None:
    ask = [delayed(os.getenv)("LEVERET_TEST_WORD")] * 4
    assert Parallel(initializer=set_word, initargs=("a",))(ask) == ["a"] * 4
    with parallel_config(backend="leveret", n_jobs=2, initializer=set_word, initargs=("b",)):
        assert Parallel()(ask) == ["b"] * 4
    assert Parallel()(ask) == [None] * 4


def fail_at_start() -> None:
    raise ValueError("no licence")


def test_an_initializer_that_fails_breaks_only_its_own() -> None:
    for _ in range(2):
        with pytest.raises(leveret.executor.BrokenExecutor, match="initializer"):
            Parallel(initializer=fail_at_start)(delayed(abs)(i) for i in range(4))
    assert Parallel()(delayed(abs)(-i) for i in range(3)) == [0, 1, 2]


def test_bad_options_are_told() -> None:
    with pytest.raises(TypeError, match="no option 'initialiser'; did you mean 'initializer'"):
        leveret.register_joblib("other", initialiser=abs)
    with pytest.raises(TypeError, match="name must be a str, not 3"):
        leveret.register_joblib(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="joblib's n_jobs"):
        leveret.register_joblib("other", max_workers=3)
    with pytest.raises(ValueError, match="'raise' or 'return', not 'ignore'"):
        Parallel(on_poison="ignore")(delayed(abs)(i) for i in range(4))
    with pytest.raises(ValueError, match="seconds > 0, not -1"):
        Parallel(idle_worker_timeout=-1)(delayed(abs)(i) for i in range(4))
    with pytest.raises(ValueError, match="n_jobs == 0 in Parallel has no meaning"):
        Parallel(n_jobs=0)(delayed(abs)(i) for i in range(4))


def test_one_job_runs_here() -> None:
    assert pids(n_jobs=1) == {os.getpid()}


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("not this one")


def test_what_cannot_be_pickled_is_told_as_joblib_does() -> None:
    with pytest.raises(PicklingError, match=r"the task to send.*not this one"):
        Parallel()(delayed(id)(Unpicklable() if i == 6 else i) for i in range(8))


def test_the_variable_that_cannot_be_pickled_is_named() -> None:
    items = (i for i in range(3))

    def step(_: int) -> int:
        return next(items)

    with pytest.raises(PicklingError, match=r"the variable 'items' of the function .*step"):
        Parallel()(delayed(step)(i) for i in range(3))


def inner(name: str | None) -> list[int]:
    got: list[int] = Parallel(n_jobs=2, backend=name)(delayed(abs)(-i) for i in range(3))
    return got


def warned(name: str) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        inner(name)
    return [str(each.message) for each in seen]


@pytest.mark.filterwarnings("ignore:a leveret worker has no workers")  # they come here, too
def test_nested() -> None:
    for name in (None, "leveret", "threading"):
        assert Parallel()(delayed(inner)(name) for _ in range(2)) == [[0, 1, 2]] * 2
    told = Parallel()(delayed(warned)("leveret") for _ in range(2))
    assert told == [["a leveret worker has no workers of its own, setting n_jobs=1"]] * 2


# Names.


def apply(function: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    return function(*args, **(kwargs or {}))


def run_task(task: Any, data: Any = None) -> None:
    """As Dask's."""


class Task:
    """As Dask's."""

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs


def test_messages_name_the_function_inside_of_wrappers() -> None:
    wrapped = functools.partial(functools.partial(solve, 1), 2, a=3)
    assert call_name(wrapped, (4,), {"b": 5}) == "solve(1, 2, 4, a=3, b=5)"
    assert call_name(Unpicklable().__reduce__, (), {}) == "Unpicklable.__reduce__()"
    batch = joblib.parallel.BatchedCalls([(solve, (1,), {"x": 2})], (None, 1))
    assert call_name(batch, (), {}) == "solve(1, x=2)"
    for each in (apply, run_task):
        each.__module__ = "distributed.worker"
    assert call_name(apply, (solve, (7,), {"x": 2}), {}) == "solve(7, x=2)"
    assert call_name(run_task, (Task(solve, 7, x=2), {"key": "data"}), {}) == "solve(7, x=2)"
    assert call_name(run_task, ((solve, 7),), {}) == "solve(7)"
    assert call_name(run_task, (7,), {}) == "run_task(7)"
    with leveret.ProcessExecutor(1, max_attempts=1) as executor:
        error = executor.submit(functools.partial(solve, 3)).exception()
    assert str(error).startswith("solve(3) ended its worker process")


# A part of joblib's own tests that takes seconds; joblib_suite.py says how to run all of them.
OWN_TESTS = (
    "test_parallel_pickling or test_error_in_task_iterator and loky"
    " or test_backend_batch_statistics_reset and loky or test_invalid_njobs"
    " or test_parallel_unordered_generator_returns_fastest_first and loky-2"
)


def test_joblib_s_own_tests() -> None:
    own = Path(joblib.__file__).parent / "test" / "test_parallel.py"
    if not own.exists():
        pytest.skip("joblib is installed without its tests")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "joblib_suite", "-p", "no:cacheprovider"]
    folders = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [*command, "-W", "ignore", "--rootdir", str(own.parent), "-k", OWN_TESTS, str(own)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
