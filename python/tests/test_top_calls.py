"""`leveret top` names the Python functions that run, and what workers died in."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, wait_until
from typer.testing import CliRunner

import leveret
from leveret import ProcessExecutor
from leveret.cli.commands import app
from leveret.cli.top import look
from leveret.records import SeenWorker
from leveret.wire import page
from leveret.worker.own_page import Own

pytestmark = needs_processes


def wait_for(flag: Path) -> int:
    wait_until(flag.exists)
    return os.getpid()


def pids() -> list[int]:
    return [each["pid"] for pool in look(os.getpid()) for each in pool["workers"]]


def died_in() -> Counter[str]:
    """Of all workers here, those of other tests' pools, too."""
    return Counter(each["died_in"] for pool in look(os.getpid()) for each in pool["workers"])


def busy(name: str) -> list[SeenWorker]:
    workers = [each for pool in look(os.getpid()) for each in pool["workers"]]
    return [each for each in workers if each["procedure"] == name and each["attempt"]]


@pytest.fixture
def two() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(2, preload=(), max_attempts=1) as made:
        yield made


def test_functions_by_their_names(two: ProcessExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with ProcessExecutor(1, preload=()) as other:  # whose pages are not theirs
        first = two.submit(wait_for, flag)
        closure = two.submit(lambda: wait_for(flag))
        third = other.submit(functools.partial(wait_for, flag))
        wait_until(lambda: len(busy("wait_for")) == 2)
        wait_until(lambda: busy("test_functions_by_their_names.<locals>.<lambda>"))
        flag.touch()
        pids = {first.result(), closure.result(), third.result()}
    assert len(pids) == 3


def test_calls_by_the_names_they_were_given(two: ProcessExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    named = two.options(name="the \u00e4tna \x1b[2J").submit(wait_for, flag)
    wait_until(lambda: busy("the \u00e4tna \x1b[2J"))
    plain = two.submit(wait_for, flag)
    wait_until(lambda: busy("wait_for"))
    done = CliRunner().invoke(app, ["top", str(os.getpid()), "--once"])
    assert "\x1b[2J" not in done.output and done.exit_code == 0
    flag.touch()
    assert named.result() != plain.result()


def test_chunks(two: ProcessExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    results = two.map(wait_for, [flag] * 2, chunksize=2)
    wait_until(lambda: busy("wait_for"))
    flag.touch()
    assert len(list(results)) == 2


def die(number: int) -> None:
    os.kill(os.getpid(), number)


def test_what_a_worker_died_in(two: ProcessExecutor) -> None:
    assert two.submit(abs, -1).result() == 1
    before = died_in()
    with pytest.raises(leveret.Poison):
        two.submit(die, signal.SIGSEGV.value).result()
    wait_until(lambda: 0 not in pids())  # another one is there, which has run nothing
    told = CliRunner().invoke(app, ["top", str(os.getpid()), "--once", "--json"])
    assert "die(11): signal 11 (SIGSEGV)" in json.dumps(json.loads(told.stdout))
    assert died_in() - before == {"die(11): signal 11 (SIGSEGV)": 1}
    with pytest.raises(leveret.Poison):
        two.options(name="b" * 5000).submit(die, signal.SIGKILL.value).result()
    assert any(text.startswith("b" * 400) for text in died_in())


def test_native_procedures(library: Path) -> None:
    procedure = leveret.load(library, "root_or_crash", "in f8, out f8, count(0)", name="roots")
    x = leveret.shared_array(4)
    with leveret.Runtime("processes", workers=1, max_attempts=1) as runtime:
        before = died_in()
        with pytest.raises(leveret.Poison):
            runtime.submit(procedure, x - 1, x).wait()
        (found,) = died_in() - before
        assert found.startswith("roots")
        assert runtime.submit(leveret.builtin("sum"), x).result() == 0
        assert list(died_in() - before) == [found]


def scribble(seed: int) -> None:
    chance = random.Random(seed)
    place: Any = Own.place
    for at in range(0, page.HEAD_BYTES, 8):
        if chance.random() < 0.5:
            place[at : at + 8] = chance.randbytes(8)
    Own.words[page.PROCESS] = os.getpid()
    Own.words[page.CALL] = 1


def test_pages_with_nonsense(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with ProcessExecutor(1, preload=()) as executor:
        for seed in range(20):
            executor.submit(scribble, seed).result()
            future = executor.submit(wait_for, flag)
            wait_until(future.running)
            for pool in look(os.getpid()):
                assert all(len(each["procedure"]) <= page.NAME_BYTES for each in pool["workers"])
            flag.touch()
            assert future.result()
            flag.unlink()
