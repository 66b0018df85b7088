"""ProcessExecutors of several programs that share their processes (pool=...)."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import LIMIT, needs_processes, rest, wait_until

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


@pytest.fixture
def name() -> str:
    return f"test-shared-{uuid.uuid4().hex[:16]}"


@pytest.fixture
def two(name: str) -> Iterator[tuple[ProcessExecutor, ProcessExecutor]]:
    with (
        ProcessExecutor(1, pool=name, preload=()) as a,
        ProcessExecutor(1, pool=name, preload=()) as b,
    ):
        yield a, b


def _pid() -> int:
    return os.getpid()


def _variable(which: str) -> tuple[str | None, str]:
    return os.environ.get(which), os.getcwd()  # noqa: PTH109


def _say(text: str) -> None:
    logging.getLogger("shared").warning(text)


def _die(file: str) -> None:
    Path(file).touch()
    os.kill(os.getpid(), signal.SIGSEGV)


def _sleep(file: str) -> None:
    Path(file).touch()
    rest(600)


def _remember(which: str) -> None:
    os.environ[which] = str(int(os.environ.get(which, "0")) + 1)


def test_calls_of_two_run_in_one_process(two: Any) -> None:
    pids = {each.submit(_pid).result() for each in (*two, *two)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert list(two[0].map(abs, range(-50, 50))) == list(two[1].map(abs, range(-50, 50)))
    big = b"x" * (20 << 20)
    assert [each.submit(len, big).result() for each in two] == [len(big)] * 2
    assert two[1].submit(bytes, 20 << 20).result() == bytes(20 << 20)


def test_each_has_its_variables_and_its_folder(name: str, tmp_path: Path) -> None:
    key = "LEVERET_TEST_OF_ONE"
    one = ProcessExecutor(1, pool=name, preload=(), env={key: "1"}, cwd=tmp_path)
    other = ProcessExecutor(1, pool=name, preload=())
    with one, other:
        for _ in range(3):
            assert one.submit(_variable, key).result() == ("1", str(tmp_path))
            assert other.submit(_variable, key).result() == (None, os.getcwd())  # noqa: PTH109


def test_each_has_its_initializer(name: str) -> None:
    keys = ["LEVERET_TEST_A", "LEVERET_TEST_B"]
    one, other = (
        ProcessExecutor(1, pool=name, preload=(), initializer=_remember, initargs=(key,))
        for key in keys
    )
    with one, other:
        for _ in range(3):
            assert one.submit(_variable, keys[0]).result()[0] == "1"
            assert other.submit(_variable, keys[1]).result()[0] == "1"


def test_one_that_breaks_hurts_no_other(name: str) -> None:
    with ProcessExecutor(1, pool=name, preload=()) as whole:
        broken = ProcessExecutor(1, pool=name, preload=(), initializer=os.chdir, initargs=("/no",))
        with broken, pytest.raises(leveret.BrokenExecutor):
            broken.submit(_pid).result()
        assert whole.submit(abs, -1).result() == 1


def test_records_come_to_whose_call_it_was(two: Any, caplog: pytest.LogCaptureFixture) -> None:
    for i, each in enumerate((*two, *two)):
        each.submit(_say, f"said {i}").result()
    assert [r.getMessage() for r in caplog.records] == [f"said {i}" for i in range(4)]


def test_a_crash_is_told_to_whose_call_it_was(two: Any, tmp_path: Path) -> None:
    for each in (*two, *two):
        assert each.submit(abs, -1).result() == 1
    bad = two[0].submit(_die, str(tmp_path / "begun"))
    good = [two[1].submit(abs, -i) for i in range(20)]
    with pytest.raises(leveret.Poison) as failure:
        bad.result()
    assert "_die" in str(failure.value.traceback)
    assert [each.result() for each in good] == list(range(20))
    assert two[0].submit(abs, -2).result() == 2


def test_a_time_limit_ends_only_its_own_call(two: Any) -> None:
    limited = two[0].options(timeout=0.3).submit(rest, 600)
    good = [two[1].submit(abs, -i) for i in range(20)]
    with pytest.raises(leveret.Overran):
        limited.result()
    assert [each.result() for each in good] == list(range(20))


def test_cancelling_ends_a_call_that_runs(two: Any, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    runs = two[0].options(cancel="kill").submit(_sleep, str(begun))
    wait_until(begun.exists)
    assert runs.cancel()
    assert two[1].submit(abs, -3).result() == 3


def test_terminating_one_leaves_the_other(name: str, tmp_path: Path) -> None:
    with ProcessExecutor(1, pool=name, preload=()) as stays:
        ends = ProcessExecutor(1, pool=name, preload=())
        begun = tmp_path / "begun"
        hangs = ends.submit(_sleep, str(begun))
        wait_until(begun.exists)
        ends.terminate_workers()
        with pytest.raises(leveret.BrokenExecutor):
            hangs.result()
        assert stays.submit(abs, -4).result() == 4


def test_processes_are_replaced_for_whoever_wants_it(name: str) -> None:
    often = ProcessExecutor(1, pool=name, preload=(), max_tasks_per_child=2)
    with often, ProcessExecutor(1, pool=name, preload=()) as other:
        pids = []
        for _ in range(4):
            pids.append(often.submit(_pid).result())
            assert other.submit(abs, -1).result() == 1
        assert len(set(pids)) > 1


_OTHER = """
import select, sys
import leveret

with leveret.ProcessExecutor(1, pool=sys.argv[1], preload=()) as executor:
    print(executor.submit(abs, -7).result(), flush=True)
    hangs = executor.submit(select.select, [], [], [], 600)
    sys.stdin.read()
"""


def test_a_program_that_is_killed_frees_the_processes(name: str) -> None:
    command = [sys.executable, "-c", _OTHER, name]
    with ProcessExecutor(1, pool=name, preload=()) as stays:
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "7\n"
        waits = stays.submit(abs, -8)
        other.kill()
        other.communicate()
        assert waits.result(LIMIT) == 8


_OF_A_FOLDER = """
import sys
import leveret
import helper

def initializer():
    global FROM
    FROM = helper.NAME

count = 0

def name():
    global count
    count += 1
    return count, FROM, helper.name(), helper.__file__

with leveret.ProcessExecutor(1, pool=sys.argv[1], initializer=initializer) as executor:
    print(*executor.submit(name).result(60), flush=True)
    sys.stdin.read()
    print(*executor.submit(name).result(60), flush=True)
"""


def test_programs_of_other_folders(name: str, tmp_path: Path) -> None:
    """Each has its own modules and globals, whatever NumPy and OpenMP are to it."""
    ways: list[tuple[str, dict[str, str]]] = [("import numpy", {}), ("", {"OMP_NUM_THREADS": "3"})]
    programs = []
    for number, (more, env) in enumerate(ways):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = f"NAME = 'of {number}'\ndef name():\n    return NAME\n"
        (folder / "helper.py").write_text(said)
        (folder / "program.py").write_text(f"{more}\n{_OF_A_FOLDER}")
        programs.append(
            subprocess.Popen(
                [sys.executable, str(folder / "program.py"), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **env},
            )
        )
    for number, each in enumerate(programs):
        assert each.stdout is not None
        assert each.stdout.readline().startswith(f"1 of {number} of {number} {tmp_path}/{number}/")
    for number, each in enumerate(programs):
        said, _ = each.communicate(timeout=LIMIT)
        assert said.startswith(f"2 of {number} of {number} {tmp_path}/{number}/")
        assert each.returncode == 0


_IN_TURN = """
import os, sys
from pathlib import Path
import leveret

kept = None

def keep(count):
    global kept
    kept = bytearray(count)
    return resident()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def open_one():
    return leveret.ProcessExecutor(1, pool=sys.argv[1], preload=())

with open_one() as stays:
    assert stays.submit(keep, 1 << 20).result(60) > 0
    for _ in range(5):
        with open_one() as executor:
            assert executor.submit(keep, 100 << 20).result(60) > 100 << 20
    with open_one() as last:
        print(last.submit(resident).result(60) < 350 << 20)
    print(stays.submit(lambda: len(kept)).result(60))
"""


def test_what_an_executor_has_had_goes_with_it(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_IN_TURN)
    command = [sys.executable, str(program), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.stdout == f"True\n{1 << 20}\n", done.stderr


def test_what_one_pool_cannot_give_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="seed_calls=True"):
        ProcessExecutor(1, pool=name, seed=3)
    with ProcessExecutor(1, pool=name, preload=(), seed=3, seed_calls=True) as a:
        drawn = a.submit(random.random).result()
        with pytest.raises(leveret.LeveretError, match="worker_memory"):
            ProcessExecutor(1, pool=name, preload=(), worker_memory=8 << 30)
        with pytest.raises(leveret.LeveretError, match=r"preload, .* another name as pool"):
            ProcessExecutor(1, pool=name, preload=("json",))
    with ProcessExecutor(1, preload=(), seed=3, seed_calls=True) as b:
        assert b.submit(random.random).result() == drawn
