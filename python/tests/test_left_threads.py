"""os._exit() in calls, and in threads that earlier calls have left behind."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, wait_until

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


def leave_thread(flag: Path) -> None:
    def end() -> None:
        wait_until(flag.exists)
        flag.unlink()
        os._exit(3)

    threading.Thread(target=end, daemon=True).start()


def innocent(flag: Path, marks: Path) -> str:
    with marks.open("a") as file:
        file.write("begun\n")
    if len(marks.read_text().splitlines()) == 1:
        flag.touch()
        wait_until(lambda: False)
    return "done"


def test_an_innocent_call_is_run_again(tmp_path: Path) -> None:
    flag, marks = tmp_path / "flag", tmp_path / "marks"
    with ProcessExecutor(1, preload=(), max_attempts=1) as executor:
        executor.submit(leave_thread, flag).result()
        assert executor.submit(innocent, flag, marks).result() == "done"
    assert marks.read_text() == "begun\n" * 2


def give_up(status: int) -> None:
    os._exit(status)


def test_where_a_call_gave_up(tmp_path: Path) -> None:
    told: list[Any] = []
    with ProcessExecutor(1, max_attempts=2, on_death=lambda *about: told.append(about)) as pool:
        error = pool.submit(give_up, 4).exception()
    assert isinstance(error, leveret.Poison) and "it called exit(4)" in str(error)
    assert error.traceback is not None and "in give_up" in error.traceback
    assert [about[:3] for about in told] == [("give_up(4)", 0, 1), ("give_up(4)", 0, 2)]


def the_function() -> Any:
    return os._exit


def fork_and_exit() -> int:
    child = os.fork()
    if child == 0:
        os._exit(5)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_it_is_otherwise_what_it_was(pool: ProcessExecutor) -> None:
    assert pool.submit(the_function).result() is os._exit
    assert pool.submit(fork_and_exit).result() == 5
    with pytest.raises(TypeError):
        pool.submit(exit_with, "nonsense").result()


def exit_with(status: Any) -> None:
    os._exit(status)
