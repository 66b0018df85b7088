"""What is seen of worker processes from outside, and `leveret demo --kill`, which uses it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_runner import runner
from conftest import DEEP, needs_processes

import leveret
from leveret import _core, apps
from leveret.cli import common, demo_kill, top
from leveret.cli.commands import app
from leveret.cli.common import plain
from leveret.cli.top import NONE, show
from leveret.records import SeenPool

pytestmark = needs_processes

# A program that waits for a task which runs until the program is killed, or told to go on.
PROGRAM = """
import sys
import leveret

procedure = leveret.load(sys.argv[1], "wait_for_file", "in u1, count(0)")
path = leveret.shared_array(len(sys.argv[2]), "u1")
path[:] = bytearray(sys.argv[2], "utf-8")
with leveret.Runtime("processes", workers=2) as runtime:
    ticket = runtime.submit(procedure, path)
    print("ready", flush=True)
    ticket.wait()
print("done", flush=True)
sys.stdin.read()
"""

SOURCE = """
#include <sched.h>
#include <stddef.h>
#include <unistd.h>
void wait_for_file(const char *bytes, size_t n) {
  char path[256] = {0};
  for (size_t i = 0; i < n && i < 255; ++i) path[i] = bytes[i];
  while (access(path, F_OK) != 0) sched_yield();
}
"""


def leveret_top(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leveret", "top", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, list(arguments))


def look(pid: int) -> list[SeenPool]:
    """Empty when the process has no pool any more."""
    with contextlib.suppress(leveret.Unavailable):
        return _core.look_at_pools(pid)
    return []


def await_task(pid: int, attempt: int, dead: int = 0) -> dict[str, Any]:
    """Looks until a worker of the program runs the task at that attempt.

    A look may fall between the death of a worker and the start of the next: `dead` is not it.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for pool in look(pid):
            for worker in pool["workers"]:
                if worker["attempt"] == attempt and worker["pid"] not in (0, dead):
                    return dict(worker)
    pytest.fail(f"no worker of process {pid} was seen at attempt {attempt}")


class Program:
    """Another program with a pool, at work until go_on()."""

    def __init__(self, library: Path, flag: Path) -> None:
        self.flag = flag
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(library), str(flag)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self.await_line("ready")

    def await_line(self, wanted: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{wanted}\n"

    def go_on(self) -> None:
        self.flag.touch()
        self.await_line("done")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "waiting.c").write_text(SOURCE)
    command = ["cc", "-shared", "-fPIC", "-o", "waiting.so", "waiting.c"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "waiting.so"


@pytest.fixture
def program(waiting: Path, tmp_path: Path) -> Iterator[Program]:
    made = Program(waiting, tmp_path / "flag")
    yield made
    made.process.kill()
    made.process.communicate(timeout=30)


def test_another_program(program: Program) -> None:
    await_task(program.pid, 1)
    done = leveret_top(str(program.pid), "--once", "--json")
    assert done.returncode == 0, done.stderr
    (pool,) = json.loads(done.stdout)["pools"]
    assert pool["pid"] == program.pid and pool["program"].startswith("python")
    busy = [w for w in pool["workers"] if w["attempt"]]
    assert len(pool["workers"]) == 2 and len(busy) == 1
    assert busy[0]["procedure"].startswith("wait_for_file")
    assert (busy[0]["posted"], busy[0]["done"], busy[0]["waiting"]) == (1, 0, 0)

    os.kill(busy[0]["pid"], signal.SIGKILL)
    await_task(program.pid, 2, dead=busy[0]["pid"])
    assert sum(w["deaths"] for pool in look(program.pid) for w in pool["workers"]) == 1
    printed = leveret_top("--once").stdout
    assert f"process {program.pid}" in printed
    assert re.search(r"wait_for_file\S* +│ 2 ", printed)

    program.go_on()
    done = leveret_top(str(program.pid), "--once")
    assert (done.returncode, done.stdout) == (common.ENVIRONMENT, "")
    assert f"process {program.pid} has no runtime open on the machine `processes`" in done.stderr


def test_the_live_view_ends_with_the_program(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    await_task(program.pid, 1)
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            program.process.kill()
            program.process.wait(30)

    monkeypatch.setattr(top, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    done = invoke("top", str(program.pid), "--interval", "0.25")
    assert done.exit_code == 0, (done.output, done.exception)
    assert looks == [0.25] * 3
    assert "wait_for_file" in done.output
    assert f"the pool of process {program.pid} has ended" in done.output


def test_the_live_view_stops_in_time(program: Program) -> None:
    done = leveret_top(str(program.pid), "--interval", "0.01", "--timeout", "0.1")
    assert done.returncode == 0, done.stderr
    assert f"process {program.pid}" in done.stdout


def test_the_end_is_not_late_by_an_interval() -> None:
    assert leveret_top("--interval", "3600", "--timeout", "0.1").returncode == 0


def test_none() -> None:
    # Not of this process: what another test has left behind is not this one's fault.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        done = leveret_top(str(other.pid), "--once", "--json")
        other.communicate()
    assert (done.returncode, done.stdout) == (common.ENVIRONMENT, "")
    done = leveret_top("1073741824", "--once")
    assert done.returncode == common.ENVIRONMENT and "is not there" in done.stderr
    done = leveret_top("--once")  # other programs of this user may have some
    if done.returncode != 0:
        assert (done.returncode, done.stdout) == (common.ENVIRONMENT, "")
        assert NONE in done.stderr


def test_pools_that_come_and_go() -> None:
    """Whatever moment it is: a look sees a pool, or none."""
    script = """
import leveret
while True:
    leveret.Runtime("processes", workers=2).close()
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        seen: set[int] = set()
        end = time.monotonic() + (20 if DEEP else 3)
        while time.monotonic() < end or len(seen) < 2:
            assert process.poll() is None and time.monotonic() < end + 60
            pools = look(process.pid)
            assert all(len(pool["workers"]) == 2 for pool in pools)
            seen.add(len(pools))
        assert seen == {0, 1}
    finally:
        process.kill()
        process.wait(30)


# Files that say they are a board.


def own_files(name: str) -> dict[int, int]:
    """The memory files of this process with that name: file numbers by inodes."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"/memfd:{name}"):  # noqa: PTH115
                found[os.fstat(int(link.name)).st_ino] = int(link.name)
    return found


class Files:
    """A runtime with the memory files that it has opened: its board, and its first lane."""

    def __init__(self, workers: int) -> None:
        boards, lanes = own_files("leveret-board"), own_files("leveret-lane")
        self.runtime = leveret.Runtime("processes", workers=workers)
        x = np.ones(8)
        for _ in range(8):
            self.runtime.submit(leveret.builtin("axpy"), 1.0, x, x.copy()).wait()
        (board,) = own_files("leveret-board").keys() - boards.keys()
        self.board = self.read(own_files("leveret-board")[board])
        self.lane_inode = min(own_files("leveret-lane").keys() - lanes.keys())
        self.lane = self.read(own_files("leveret-lane")[self.lane_inode])

    @staticmethod
    def read(number: int) -> bytes:
        return os.pread(number, 4 << 20, 0)


@pytest.fixture
def files() -> Iterator[Files]:
    made = Files(1)
    with made.runtime:
        yield made


@contextlib.contextmanager
def memory_file(name: str, content: bytes) -> Iterator[int]:
    number = os.memfd_create(name)
    try:
        os.write(number, content)
        yield number
    finally:
        os.close(number)


def check_sane(pools: list[SeenPool]) -> None:
    for pool in pools:
        assert pool["pid"] == os.getpid()
        assert len(pool["workers"]) <= 1024
        for worker in pool["workers"]:
            assert 0 <= worker["waiting"] <= 16
            assert len(worker["procedure"]) < 64 and not re.search("[\0-\x1f]", worker["procedure"])
            assert (worker["attempt"] == 0) == (worker["procedure"] == "")


@pytest.fixture(scope="module")
def board() -> bytes:
    made = Files(2)
    made.runtime.close()
    return made.board


def test_a_copy_of_a_board_whose_lanes_are_not_there(board: bytes) -> None:
    before = look(os.getpid())
    with memory_file("leveret-board", board):
        assert look(os.getpid()) == before


@pytest.mark.parametrize("size", [0, 1, 8, 31, 4096, 65536])
def test_boards_that_are_too_short(board: bytes, size: int) -> None:
    before = look(os.getpid())
    with memory_file("leveret-board", board[:size]):
        assert look(os.getpid()) == before


def test_boards_with_nonsense(files: Files) -> None:
    """A living pool's board, copied and spoilt: its lanes are there, and it points to others."""
    chance = random.Random(1)
    before = len(look(os.getpid()))
    seen: set[int] = set()
    for _ in range(20_000 if DEEP else 500):
        spoilt = bytearray(files.board)
        for _ in range(chance.randrange(1, 6)):
            at = chance.choice((chance.randrange(96), chance.randrange(len(spoilt))))
            spoilt[at] = chance.choice((0, 1, 0x1B, 0x7F, 0xFF, chance.randrange(256)))
        with memory_file("leveret-board", bytes(spoilt)):
            pools = look(os.getpid())
            check_sane(pools)
            seen.add(len(pools))
    assert seen == {before, before + 1}


def test_lanes_with_nonsense(files: Files) -> None:
    """A worker that writes all over its lane, and names that would do something to a terminal."""
    chance = random.Random(2)
    has_run = 0
    where = files.board.index(files.lane_inode.to_bytes(8, "little"))
    board = files.board.replace(b"axpy", b"\x1b[2J")
    for _ in range(20_000 if DEEP else 500):
        spoilt = bytearray(files.lane[: 64 << 10])
        for _ in range(chance.randrange(1, 40)):
            at = chance.choice((chance.randrange(20_000), 64 * chance.randrange(300)))
            spoilt[at] = chance.choice((0, 0xFF, chance.randrange(24), chance.randrange(256)))
        with memory_file("leveret-lane", bytes(spoilt)) as hostile:
            fake = bytearray(board)
            fake[where - 4 : where] = hostile.to_bytes(4, "little")
            fake[where : where + 8] = os.fstat(hostile).st_ino.to_bytes(8, "little")
            with memory_file("leveret-board", bytes(fake)):
                pools = look(os.getpid())
                check_sane(pools)
                has_run += any(w["attempt"] for p in pools for w in p["workers"])
    assert has_run > 0


def test_names_are_shown_as_they_are() -> None:
    assert plain("[red]x\x1b[2J\u009b").plain == "[red]x?[2J?"
    hostile: SeenPool = {"pid": 1, "program": "[bold]\x1b", "workers": []}
    console = common.tables()
    with console.capture() as captured:
        console.print(show([hostile]))
    assert "[bold]?, process 1" in captured.get()


# leveret demo --kill


def test_demo_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_kill, "QUICK", demo_kill.Plan(96, 72, 36, 0.002, 5))
    with leveret.ProcessExecutor(1) as other:
        before = other.submit(os.getpid).result()
        args = "demo", "--kill", "--quick", "--out", str(tmp_path), "--json", "--timeout", "100"
        done = invoke(*args)
        assert other.submit(os.getpid).result() == before
    assert done.exit_code == 0, (done.output, done.exception)
    facts = json.loads(done.stdout)
    assert facts["correct"] is True and facts["deaths"] >= 5 and facts["frames"] >= 1
    expected = apps.mandelbrot_picture(None, width=96, height=72)
    assert facts["sha256"] == hashlib.sha256(expected.tobytes()).hexdigest()
    assert Path(facts["files"]["picture"]).read_bytes().startswith(b"\x89PNG")


def test_demo_kill_that_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_kill, "QUICK", demo_kill.Plan(96, 72, 36, 0.002, 5))
    real = apps.mandelbrot_picture

    def wrong(runtime: Any, **options: Any) -> Any:
        picture = real(runtime, **options)
        picture[0, 0] += runtime is not None
        return picture

    monkeypatch.setattr(apps, "mandelbrot_picture", wrong)
    done = invoke("demo", "--kill", "--quick", "--out", str(tmp_path))
    assert done.exit_code == common.FAILED and "NOT the serial one" in done.stdout


def test_nothing_but_own_workers_is_killed() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        demo_kill.kill_worker(other.pid)
        demo_kill.kill_worker(1)
        demo_kill.kill_worker(2**30)
        assert other.poll() is None
        other.terminate()
