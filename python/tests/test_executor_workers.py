"""ProcessExecutor: what workers find around them, and what they log."""

from __future__ import annotations

import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes, pid_of, run_program

import leveret
from leveret import ProcessExecutor
from leveret.executor.environment import THREAD_VARIABLES

pytestmark = needs_processes


# Number, environment, threads.


def look(names: list[str]) -> tuple[int | None, list[str | None]]:
    return leveret.worker_index(), [os.environ.get(name) for name in names]


def test_env_by_number() -> None:
    with ProcessExecutor(2, env=lambda i: {"GPU": str(i), "HOME": None}) as pool:
        found = {pool.submit(look, ["GPU", "HOME"]).result(30)[0] for _ in range(40)}
        seen = [pool.submit(look, ["GPU", "HOME"]).result(30) for _ in range(40)]
    assert found <= {0, 1}
    assert all(gpu == str(index) and home is None for index, (gpu, home) in seen)


def test_env_has_nothing_of_how_workers_are_started() -> None:
    def own() -> list[str]:
        return [name for name in os.environ if name.startswith("LEVERET_WORKER")]

    with ProcessExecutor(1) as pool:
        assert pool.submit(own).result(30) == []


def test_env_is_there_before_modules_are_preloaded(tmp_path: Path) -> None:
    (tmp_path / "reads_early.py").write_text("import os\nseen = os.environ.get('EARLY')\n")
    sys.path.insert(0, str(tmp_path))

    def what_was_seen() -> Any:
        return sys.modules["reads_early"].seen

    try:
        with ProcessExecutor(1, env={"EARLY": "bird"}, preload="reads_early") as pool:
            assert pool.submit(what_was_seen).result(30) == "bird"
    finally:
        sys.path.remove(str(tmp_path))


def test_cwd(tmp_path: Path) -> None:
    with ProcessExecutor(1, cwd=tmp_path) as pool:
        assert pool.submit(os.getcwd).result(30) == os.path.realpath(tmp_path)
    with pytest.raises(NotADirectoryError, match="cwd"):
        ProcessExecutor(1, cwd=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({"A": 1}, TypeError),
        ({1: "A"}, TypeError),
        ([("A", "B")], TypeError),
        ({"A=B": "1"}, ValueError),
        (lambda i: None, TypeError),
    ],
)
def test_env_that_makes_no_sense(env: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="env"):
        ProcessExecutor(1, env=env)


def test_threads_of_libraries_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    names = list(THREAD_VARIABLES)
    workers = 2
    share = str(max(1, leveret.available_cores() // workers))
    with ProcessExecutor(workers) as pool:
        assert pool.submit(look, names).result(30)[1] == [share] * len(names)
    with ProcessExecutor(1, threads_per_worker=3) as pool:
        assert pool.submit(look, names).result(30)[1] == ["3"] * len(names)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    with ProcessExecutor(1) as pool:
        assert pool.submit(look, ["OMP_NUM_THREADS"]).result(30)[1] == ["7"]


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_threads_per_worker_that_makes_no_sense(count: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="threads_per_worker"):
        ProcessExecutor(1, threads_per_worker=count)


def test_variables_that_are_too_long_are_told() -> None:
    with pytest.raises(leveret.Unavailable, match="shorten the variables of env"):
        ProcessExecutor(1, env={"LONG": "x" * 200_000}).submit(pid_of).result(60)


def test_too_little_memory_for_its_workers_is_told_by_its_own_options(tmp_path: Path) -> None:
    run_program(
        tmp_path,
        """
import os, resource, leveret
pages = int(open("/proc/self/statm").read().split()[0])
soft = pages * os.sysconf("SC_PAGE_SIZE") + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (soft, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    leveret.ProcessExecutor(2).submit(abs, 1).result(60)
except leveret.OutOfMemory as error:
    assert "ulimit -v" in str(error) and "local_store" not in str(error), error
else:
    raise AssertionError
""",
    )


def test_a_module_that_cannot_be_preloaded_is_told() -> None:
    with pytest.warns(RuntimeWarning, match="'nmupy'"):
        pool = ProcessExecutor(1, preload=["nmupy"])
    with pool:
        assert pool.submit(abs, -1).result(30) == 1


def test_a_module_that_fails_is_told_with_the_first_result(tmp_path: Path) -> None:
    (tmp_path / "fails_early.py").write_text("raise OSError('not today')\n")
    sys.path.insert(0, str(tmp_path))
    try:
        told = pytest.warns(RuntimeWarning, match="fails_early: OSError: not today")
        with told, ProcessExecutor(1, preload="fails_early") as pool:
            assert pool.submit(abs, -1).result(30) == 1
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "said"),
    [("raise SystemExit(3)", "SystemExit: 3"), ("import os; os.abort()", "preload")],
)
def test_a_module_that_ends_the_program_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "ends_early.py").write_text(text)
    sys.path.insert(0, str(tmp_path))
    try:
        if "Exit" in text:
            told = pytest.warns(RuntimeWarning, match=f"ends_early: {said}")
            with told, ProcessExecutor(1, preload="ends_early") as pool:
                assert pool.submit(abs, -1).result(30) == 1
        else:
            with pytest.raises(leveret.Unavailable, match=f"{said}.*ends_early"):
                ProcessExecutor(1, preload="ends_early")
    finally:
        sys.path.remove(str(tmp_path))


def test_mp_context_is_accepted() -> None:
    with ProcessExecutor(1, mp_context="whatever") as pool:
        assert pool.submit(abs, -1).result(30) == 1


def test_repr() -> None:
    pool = ProcessExecutor(2)
    text = "<leveret.ProcessExecutor on 'processes', 2 workers, {}, 0 calls waiting, 0 under way>"
    assert repr(pool) == text.format("open")
    pool.shutdown()
    assert repr(pool) == text.format("closed")
    assert "not opened" in repr(ProcessExecutor.__new__(ProcessExecutor))


def test_an_interrupt_is_the_hosts(tmp_path: Path) -> None:
    """A signal that reaches idle workers, as from a notebook, fails no later call."""
    with ProcessExecutor(1) as pool:
        pid = pool.submit(os.getpid).result(30)
        os.kill(pid, signal.SIGINT)
        assert pool.submit(os.getpid).result(30) == pid

        def child_is_interrupted() -> int:
            program = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
            command = [sys.executable, "-c", program]
            return subprocess.run(command, check=False, capture_output=True).returncode

        assert pool.submit(child_is_interrupted).result(60) != 0


# Random numbers.


def draw() -> tuple[float, float]:
    return random.random(), float(np.random.rand())


def draws(count: int, **options: Any) -> list[tuple[float, float]]:
    """What each of some processes draws first."""
    options = {"max_tasks_per_child": 1, "preload": ["numpy.random"], **options}
    with ProcessExecutor(1, **options) as pool:
        return [pool.submit(draw).result(60) for _ in range(count)]


def test_every_process_draws_other_numbers() -> None:
    got = draws(3)
    assert len({a for a, _ in got}) == len({b for _, b in got}) == 3


def test_a_seed_gives_the_same_numbers_again() -> None:
    assert draws(2, seed=1) == draws(2, seed=1) != draws(2, seed=2)
    got = draws(2, seed=1, preload=())
    assert got[0] != got[1]


def test_seeded_calls_draw_the_same_wherever_they_run() -> None:
    def all_draws(workers: int) -> list[tuple[float, float]]:
        with ProcessExecutor(workers, seed=5, seed_calls=True) as pool:
            return [*pool.map(lambda i: draw(), range(6)), pool.submit(draw).result(60)]

    first = all_draws(1)
    assert first == all_draws(2)
    assert len(set(first)) == 7


def test_a_seed_is_a_number() -> None:
    with pytest.raises(TypeError, match="seed"):
        ProcessExecutor(1, seed="x")  # type: ignore[arg-type]
    assert draws(1, seed=np.int64(3)) == draws(1, seed=3)


HASHES = """
import leveret
with leveret.ProcessExecutor(2, max_tasks_per_child=2) as pool:
    there = set(pool.map(lambda i: hash("text"), range(8), chunksize=1))
print(len(there), there == {hash("text")})
"""


def test_hashes_are_the_same_in_all_processes_and_here_where_their_seed_is_set() -> None:
    def run(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", HASHES]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True, env=env
        ).stdout

    assert run("random").startswith("1 ")
    assert run("5") == "1 True\n"


# Log records, warnings, output.


def talk(word: str) -> str:
    logging.getLogger("leveret.tests").info("said %s", word)
    logging.getLogger("leveret.tests").debug("whispered %s", word)
    return word


def test_log_records_come_to_the_host(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), ProcessExecutor(1) as pool:
        assert pool.submit(talk, "hello").result(30) == "hello"
        assert [r.getMessage() for r in caplog.records] == ["said hello"]
        record: Any = caplog.records[0]
        assert record.leveret_worker == 0 and record.name == "leveret.tests"
        assert record.funcName == "talk" and record.process != os.getpid()
        assert record.processName == "LeveretWorker-0"


def test_records_of_a_call_that_crashes(caplog: pytest.LogCaptureFixture) -> None:
    def talk_and_crash() -> None:
        for i in range(5000):
            logging.warning("step %d", i)
        os.kill(os.getpid(), signal.SIGKILL)

    with ProcessExecutor(1, max_attempts=1) as pool:
        assert pool.submit(talk_and_crash).exception(60) is not None
    messages = [r.getMessage() for r in caplog.records]
    assert messages[-1] == "step 4999"


def test_records_beyond_the_bound_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    def talk_much() -> None:
        for i in range(400):
            logging.warning("%d %s", i, "x" * 10_000)

    with ProcessExecutor(1) as pool:
        pool.submit(talk_much).result(60)
    messages = [r.getMessage() for r in caplog.records]
    dropped = int(messages[-1].split()[0])
    assert "were dropped" in messages[-1] and dropped + len(messages) - 1 == 400
    assert messages[-2].startswith("399 ")


def test_records_that_cannot_be_pickled(caplog: pytest.LogCaptureFixture) -> None:
    def odd() -> None:
        try:
            raise OSError("inner")
        except OSError:
            logging.exception("outer %s", threading.Lock(), extra={"lock": threading.Lock()})
        logging.warning("too few %s %s", *[1])

    with ProcessExecutor(1) as pool:
        pool.submit(odd).result(30)
    assert caplog.records[0].getMessage().startswith("outer <unlocked")
    assert "OSError: inner" in str(caplog.records[0].exc_text)
    assert "too few" in caplog.records[1].getMessage()


def test_logging_that_workers_configure_themselves(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def configure() -> None:
        logging.basicConfig(filename=path, level=logging.INFO)

    with ProcessExecutor(1, initializer=configure) as pool:
        pool.submit(talk, "hello").result(30)
    assert "said hello" in path.read_text()


def test_levels_that_the_host_has_named(caplog: pytest.LogCaptureFixture) -> None:
    def says() -> str:
        logging.getLogger("levels").setLevel("NOTICE")
        logging.getLogger("levels").log(25, "a notice")
        logging.getLogger("levels").warning("a warning")
        return logging.getLevelName(30)

    caplog.set_level(25)
    logging.addLevelName(25, "NOTICE")
    logging.addLevelName(30, "attention")
    try:
        with ProcessExecutor(1) as pool:
            assert pool.submit(says).result(30) == "attention"
    finally:
        logging.addLevelName(30, "WARNING")
    assert [each.levelname for each in caplog.records] == ["NOTICE", "attention"]


def test_logs_can_stay(caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    with ProcessExecutor(1, forward_logs=False) as pool:
        pool.submit(logging.warning, "stays").result(30)
    assert not caplog.records and "stays" in capfd.readouterr().err


def test_warnings_come_to_the_host() -> None:
    with ProcessExecutor(1) as pool, pytest.warns(UserWarning, match="watch out") as seen:
        pool.submit(warnings.warn, "watch out").result(30)
    assert seen[0].category is UserWarning


def test_a_warning_that_would_be_an_error_here_is_shown() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        with ProcessExecutor(1) as pool:
            assert pool.submit(warnings.warn, "watch out").exception(30) is None
    assert [str(each.message) for each in seen] == ["watch out"]


def _warns(count: int) -> None:
    for _ in range(count):
        warnings.warn("of this module", DeprecationWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("action", "module", "shown"),
    [
        ("always", __name__, [3, 3]),
        ("default", __name__, [1, 0]),
        ("ignore", __name__, [0, 0]),
        ("always", "another_module", [0, 0]),
    ],
)
def test_filters_of_the_host_apply(action: Any, module: str, shown: list[int]) -> None:
    """As for warnings of one process: by module, and once for each place where that is asked."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings(action, category=DeprecationWarning, module=module + "$")
        counts = [0]
        for _ in shown:
            with ProcessExecutor(1) as pool:
                pool.submit(_warns, 3).result(30)
            counts.append(sum(each.filename == __file__ for each in seen))
    assert [after - before for before, after in zip(counts, counts[1:])] == shown


def test_a_filter_that_raises_loses_no_result(caplog: pytest.LogCaptureFixture) -> None:
    class Fails(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise OSError("not today")

    seen: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, seen.append
    logger, filter_ = logging.getLogger("leveret.tests"), Fails()
    logger.addFilter(filter_)
    try:
        with caplog.at_level(logging.INFO), ProcessExecutor(1) as pool:
            assert pool.submit(talk, "hello").result(30) == "hello"
    finally:
        logger.removeFilter(filter_)
        sys.unraisablehook = before
    assert [str(each.exc_value) for each in seen] == ["not today"]


def test_output_is_forwarded_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def prints() -> None:
        print("out")
        print("error", file=sys.stderr)

    with ProcessExecutor(1, forward_output=True) as pool:
        pool.submit(prints).result(30)
        assert capsys.readouterr() == ("out\n", "error\n")
    with ProcessExecutor(1) as pool:
        pool.submit(prints).result(30)
        assert capsys.readouterr() == ("", "")


# Progress bars.


class FakeTqdm:
    def __init__(self, total: int, desc: str = "") -> None:
        self.total, self.desc, self.n = total, desc, 0
        self.notes: dict[str, int] = {}
        self.shown = (0, 0)
        self.is_closed = False

    def set_postfix(self, refresh: bool, **notes: int) -> None:
        self.notes = notes

    def update(self, n: int) -> None:
        self.n += n

    def refresh(self) -> None:
        self.shown = (self.n, self.total)

    def close(self) -> None:
        self.is_closed = True


def test_a_bar_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    from leveret.progress import TqdmBar

    module: Any = types.ModuleType("tqdm.auto")
    module.tqdm = FakeTqdm
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    with TqdmBar(desc="runs") as bar, ProcessExecutor(1, on_progress=bar, max_attempts=1) as pool:
        assert list(pool.map(abs, range(10))) == list(range(10))
        assert pool.submit(os._exit, 1).exception(30) is not None
    shown = bar.bar
    assert (shown.n, shown.total, shown.notes, shown.desc) == (11, 11, {"failed": 1}, "runs")
    assert shown.is_closed


def test_a_bar_of_tqdm_shows_what_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from leveret.progress import TqdmBar

    module: Any = types.ModuleType("tqdm.auto")
    module.tqdm = FakeTqdm
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    with TqdmBar() as bar:
        bar(3, 0, 10)
        bar(3, 0, 4)  # update() is told of nothing new
        assert bar.bar.shown == (3, 4)


def test_a_bar_of_rich() -> None:
    progress = pytest.importorskip("rich.progress")
    from leveret.progress import RichBar

    with progress.Progress(disable=True) as shown, RichBar("runs", shown) as bar:
        with ProcessExecutor(1, on_progress=bar, max_attempts=1) as pool:
            assert pool.submit(os._exit, 1).exception(30) is not None
        task = shown.tasks[0]
        assert (task.completed, task.total, task.description) == (1, 1, "runs (1 failed)")


@pytest.mark.parametrize(("name", "package"), [("TqdmBar", "tqdm"), ("RichBar", "rich")])
def test_a_bar_whose_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    from leveret import progress

    for module in ("tqdm", "tqdm.auto", "rich", "rich.progress"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(leveret.Unavailable, match=re.escape(f"pip install {package}")):
        getattr(progress, name)()
