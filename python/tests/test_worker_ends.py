"""ProcessExecutor: how workers end in order, with what calls have left to do."""

from __future__ import annotations

import atexit
import importlib
import os
import resource
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor

pytestmark = needs_processes


def at_exit_write(path: str) -> None:
    atexit.register(lambda: Path(path).write_text("ran"))


@pytest.mark.parametrize("options", [{}, {"max_tasks_per_child": 1}])
def test_exit_functions_run_at_an_orderly_end(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "at_exit"
    with ProcessExecutor(1, **options) as pool:
        pool.submit(at_exit_write, str(path)).result(30)
    assert path.read_text() == "ran"


@pytest.mark.parametrize("is_preloaded", [False, True])
def test_files_are_written_at_an_orderly_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_preloaded: bool
) -> None:
    (tmp_path / "files_of_mine.py").write_text(f"log = open({str(tmp_path / 'log')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)

    def write() -> None:
        importlib.import_module("files_of_mine").log.write("ran")

    with ProcessExecutor(1, preload=["files_of_mine"] if is_preloaded else []) as pool:
        pool.submit(write).result(30)
    assert (tmp_path / "log").read_text() == "ran"


HOOKED = """
import atexit, os, weakref
from pathlib import Path

class Thing:
    pass

things = []

def note(text):
    with open(Path(__file__).with_name("noted"), "a") as file:
        file.write(text)

def register(text):
    things.append(Thing())
    weakref.finalize(things[-1], note, f"finalizer of {text}\\n")
    atexit.register(note, f"{text}\\n")

register("the zygote")
os.register_at_fork(after_in_child=lambda: register("a worker"))
"""


@pytest.mark.parametrize("options", [{}, {"max_tasks_per_child": 1}])
def test_what_hooks_of_the_fork_register_is_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """As coverage.py does it, with `patch = fork`; what was registered before is not theirs."""
    (tmp_path / "hooked_of_mine.py").write_text(HOOKED)
    monkeypatch.syspath_prepend(tmp_path)
    with ProcessExecutor(1, preload=["hooked_of_mine"], **options) as pool:
        assert pool.submit(abs, -1).result(30) == 1
    noted = (tmp_path / "noted").read_text().splitlines()
    once = ["a worker", "finalizer of a worker"]  # the last one comes first
    assert noted in (once, once * 2)  # a process that has had its call may have a successor


def write_late(path: str) -> None:
    threading.Event().wait(0.2)
    Path(path).write_text("ran")


def leave_to_a_thread(path: str) -> None:
    threading.Thread(target=write_late, args=(path,)).start()


def leave_to_a_pool(path: str) -> None:
    vars(sys)["_leveret_kept"] = pool = ThreadPoolExecutor(1)
    pool.submit(write_late, path)


def leave_to_a_pool_of_processes(path: str) -> None:
    vars(sys)["_leveret_kept"] = pool = ProcessPoolExecutor(1)
    pool.submit(write_late, path)


@pytest.mark.parametrize(
    "leave", [leave_to_a_thread, leave_to_a_pool, leave_to_a_pool_of_processes]
)
@pytest.mark.parametrize("options", [{}, {"max_tasks_per_child": 1}])
def test_what_was_left_to_threads_is_done_at_an_orderly_end(
    tmp_path: Path, leave: Callable[[str], None], options: dict[str, Any]
) -> None:
    path = tmp_path / "late"
    with ProcessExecutor(1, **options) as pool:
        pool.submit(leave, str(path)).result(30)
    assert path.read_text() == "ran"


def test_a_thread_that_does_not_end_is_not_waited_for_without_end() -> None:
    def leave() -> None:
        threading.Thread(target=threading.Event().wait, args=(3600,)).start()

    pool = ProcessExecutor(1)
    pool.submit(leave).result(30)
    closer = threading.Thread(target=pool.shutdown)
    closer.start()
    closer.join(30)
    assert not closer.is_alive()


def fail_at_the_end_of_threads(path: str) -> None:
    def fail() -> None:
        raise ValueError("not today")

    vars(threading)["_register_atexit"](fail)
    at_exit_write(path)


def test_a_failure_at_the_end_of_threads_keeps_no_other_from_running(tmp_path: Path) -> None:
    path = tmp_path / "at_exit"
    with ProcessExecutor(1) as pool:
        pool.submit(fail_at_the_end_of_threads, str(path)).result(30)
    assert path.read_text() == "ran"


def test_files_are_written_and_folders_removed(tmp_path: Path) -> None:
    def leave_open() -> str:
        folder = tempfile.TemporaryDirectory(dir=tmp_path)
        file = open(tmp_path / "left", "w")  # noqa: SIM115, PTH123
        file.write("all of it")
        gone = threading.Event()
        vars(sys)["_leveret_kept"] = (folder, file, weakref.proxy(gone))
        return folder.name

    with ProcessExecutor(1) as pool:
        folder = pool.submit(leave_open).result(30)
        assert Path(folder).exists()
    assert (tmp_path / "left").read_text() == "all of it"
    assert not Path(folder).exists()


def test_an_exit_function_that_does_not_end_is_bounded() -> None:
    def hang() -> None:
        atexit.register(lambda: threading.Event().wait(3600))

    pool = ProcessExecutor(1)
    pool.submit(hang).result(30)
    closer = threading.Thread(target=pool.shutdown)
    closer.start()
    closer.join(30)
    assert not closer.is_alive()


_leaked: list[bytes] = []


def _leak(mib: int) -> int:
    _leaked.append(b"\1" * (mib << 20))
    return os.getpid()


@pytest.mark.parametrize("chunksize", [1, 10])
def test_a_process_that_leaks_have_filled_is_replaced(chunksize: int) -> None:
    with ProcessExecutor(1, worker_memory=400 << 20) as executor:
        found = list(executor.map(_leak, [40] * 40, chunksize=chunksize, return_exceptions=True))
        failed = [each for each in found if isinstance(each, BaseException)]
        pids = {each for each in found if type(each) is int}
        assert all(type(each) is MemoryError for each in failed)
        assert len(found) == 40 and len(pids) > 2 and len(failed) <= len(pids)


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_processes_that_die_as_they_start_say_how_they_ended(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that ends every process that is forked after it was imported."""
    text = "import os\nos.register_at_fork(after_in_child=lambda: os._exit(3))\n"
    (tmp_path / "ends_children.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ProcessExecutor(1, worker_memory=memory, preload=["ends_children"]) as executor:
        error = executor.submit(abs, -1).exception(60)
    assert isinstance(error, leveret.PoolDown)
    text = "die as soon as they start (it called exit(3)); see what they print"
    assert str(error).endswith(text + ("; is worker_memory too small?" if memory else ""))


def test_a_process_that_has_lost_its_modules_fails_one_call_at_most() -> None:
    with ProcessExecutor(1) as executor:
        before = executor.submit(os.getpid).result(60)
        executor.submit(exec, "import sys; sys.modules.clear()").exception(60)
        executor.submit(exec, "import csv, sys; sys.maxsize").exception(60)
        executor.submit(Path, "a").exception(60)
        assert executor.submit(os.getpid).result(60) != before
        assert executor.submit(Path, "a").result(60) == Path("a")


_kept: list[int] = []


def _take_all_files(then: type[Exception] | None) -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 100), hard))
    try:
        while True:
            _kept.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if then is not None:
            raise then("the call's own") from None
        return str(error.strerror)


def test_a_call_that_leaks_files_keeps_its_memory_error() -> None:
    with ProcessExecutor(1, worker_memory=1 << 30) as executor:
        before = executor.submit(os.getpid).result(60)
        error = executor.submit(_take_all_files, MemoryError).exception(60)
        assert type(error) is MemoryError and str(error) == "the call's own"
        assert executor.submit(os.getpid).result(60) != before


def test_a_limit_of_memory_for_which_no_file_can_be_opened_is_told() -> None:
    with ProcessExecutor(1, preload=()) as executor:
        view = executor.options(memory=1 << 30)
        why = view.submit(_take_all_files, None).result(60)
        with pytest.raises(OSError, match=r"options\(memory=\) limits a call by /proc.*" + why):
            view.submit(abs, -1).result(60)
