"""Programs that nobody would write on purpose: they end, with every result and every error told."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from conftest import LIMIT, needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes


def _run(program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, text=True, timeout=LIMIT, check=False, **given)


def test_a_closed_output_loses_no_result() -> None:
    """As `program | head -1` leaves it; with the hook for unraisable errors that Python has."""
    done = _run(
        """
        import os, sys, leveret
        def prints(i):
            print("x" * 1000, flush=True)
            return i
        ends, begins = os.pipe()
        os.close(ends)
        os.dup2(begins, 1)
        with leveret.ProcessExecutor(2, forward_output=True, preload=()) as executor:
            results = list(executor.map(prints, range(40), chunksize=1))
        os.write(2, b"all there" if results == list(range(40)) else b"lost")
        os._exit(0)
        """
    )
    assert done.returncode == 0 and "all there" in done.stderr
    assert "BrokenPipeError" in done.stderr and "UnraisableHookArgs" not in done.stderr


def test_what_handlers_and_callbacks_raise_is_reported_with_the_hook_that_python_has() -> None:
    done = _run(
        """
        import logging, sys, leveret
        class Raises(logging.Handler):
            def emit(self, record):
                sys.exit("by a handler")
        logging.getLogger().addHandler(Raises())
        def progress(*_):
            raise KeyError("by a callback")
        def logs(i):
            logging.getLogger().error("hello")
            return i
        with leveret.ProcessExecutor(1, on_progress=progress, preload=()) as executor:
            print(executor.submit(logs, 3).result(), list(executor.map(logs, range(3))))
        """
    )
    assert done.returncode == 0 and done.stdout == "3 [0, 1, 2]\n"
    assert "by a callback" in done.stderr and "by a handler" in done.stderr


def test_threads_that_outlive_the_main_thread_are_told() -> None:
    done = _run(
        """
        import threading, leveret
        def late():
            threading.main_thread().join()
            try:
                leveret.ProcessExecutor(1, preload=()).submit(abs, -1)
            except leveret.Closed as error:
                print(error)
        threading.Thread(target=late).start()
        """
    )
    assert done.returncode == 0 and done.stdout.startswith("cannot open an executor")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
@pytest.mark.skipif(sys.version_info < (3, 10), reason="a handler may leave a lock held there")
def test_what_a_signals_handler_raises_is_raised(pool: ProcessExecutor) -> None:
    """Whatever was being done when it came: a time limit by signal.alarm() is not lost."""

    class Stop(Exception):
        pass

    hits: list[int] = []
    swallowed: list[object] = []

    def stop(*_: object) -> None:
        hits.append(1)
        raise Stop

    def until_hit(i: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.00002 * i)
        while len(hits) <= i:
            assert pool.submit(abs, -i).result() == i

    hook, sys.unraisablehook = sys.unraisablehook, lambda told: swallowed.append(told.object)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for i in range(150):
            # A function, as Python 3.13.0 may raise what comes up in a loop outside the block.
            with contextlib.suppress(Stop):
                until_hit(i)
    finally:
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
    assert len(hits) == 150 and pool._pool.deliver not in swallowed
    assert pool.submit(abs, -7).result() == 7


class TimeIsUp(Exception):
    pass


class Rings:
    """An alarm comes while it is pickled for the first time."""

    has_rung = False

    def __reduce__(self) -> Any:
        if not self.has_rung:
            self.has_rung = True
            signal.raise_signal(signal.SIGALRM)
        return int, (7,)


def _echo(value: Any) -> Any:
    return value


def _stop(*_: object) -> None:
    raise TimeIsUp


@pytest.mark.parametrize("way", ["submit", "map", "submit_many"])
def test_an_alarm_while_a_call_is_pickled_is_no_failure_of_pickling(way: str) -> None:
    rings = Rings()
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        with ProcessExecutor(1) as executor:
            with pytest.raises(TimeIsUp):
                if way == "submit":
                    executor.submit(_echo, rings)
                elif way == "map":
                    list(executor.map(_echo, [1, rings, 3], return_exceptions=True))
                else:
                    list(executor.submit_many(_echo, [1, rings, 3]))
            assert rings.has_rung
            assert executor.submit(_echo, rings).result(LIMIT) == 7
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_large_result_for_which_no_file_can_be_opened_is_told_and_its_call_runs_once() -> None:
    """A server whose clients hold all file descriptors; it goes on when some are free again."""
    done = _run(
        """
        import os, resource, tempfile, leveret
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        def large(path):
            with open(path, "a") as file:
                file.write("x")
            return bytes(20_000_000)
        ran = tempfile.NamedTemporaryFile()
        with leveret.ProcessExecutor(1, preload=()) as executor:
            executor.submit(abs, 1).result()
            taken = []
            try:
                while True:
                    taken.append(os.dup(0))
            except OSError:
                error = executor.submit(large, ran.name).exception()
            for each in taken:
                os.close(each)
            print(type(error).__name__, error, ran.read())
            print(len(executor.submit(large, ran.name).result()))
        """
    )
    assert "OutOfMemory large(" in done.stdout and "ulimit -n" in done.stdout, done
    assert "b'x'" in done.stdout and done.stdout.endswith("20000000\n") and not done.stderr


def test_a_call_that_leaks_all_files_harms_no_large_results_and_arguments() -> None:
    done = _run(
        """
        import os, resource, leveret, numpy as np
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        kept = []
        def leak():
            try:
                while True:
                    kept.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                return bytes(4 << 20)
        array = np.arange(5 << 20)  # of a size that goes by a file when it comes again
        with leveret.ProcessExecutor(1) as executor:
            assert len(executor.submit(leak).result()) == 4 << 20
            for _ in range(3):
                assert executor.submit(np.sum, array).result() == array.sum()
                assert (executor.submit(np.flip, array).result() == array[::-1]).all()
            print(executor.submit(open, os.devnull).exception().strerror)
        """
    )
    assert (done.stdout, done.stderr) == ("Too many open files\n", ""), done


def test_a_pid_namespace_that_has_the_proc_of_another_one() -> None:
    """As `unshare --pid` leaves it: the host's number in /proc is another process there."""
    done = _run(
        """
        import ctypes, os, select, sys, leveret
        if ctypes.CDLL(None).unshare(0x20000000):  # CLONE_NEWPID
            sys.exit(77)
        child = os.fork()
        if child:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with leveret.ProcessExecutor(2, preload=()) as executor:
            results = list(executor.map(abs, range(-3, 0)))
            print(results, len(executor.submit(bytes, 1 << 25).result()))
            print(executor.submit(os.abort).exception())
            late = executor.options(timeout=0.2).submit(select.select, [], [], [], 60)
            print(late.exception(), flush=True)  # without a traceback, as it has nowhere to go
        os._exit(0)
        """
    )
    if done.returncode == 77:
        pytest.skip("this user may make no namespaces")
    assert done.stdout.startswith("[3, 2, 1] 33554432\n") and "SIGABRT" in done.stdout, done
    assert "ran longer than its timeout" in done.stdout, done


def test_a_system_without_dev_null_is_told() -> None:
    """As in a chroot() without devices; the interpreter is there, and is not to blame."""
    done = _run(
        """
        import ctypes, sys
        libc = ctypes.CDLL(None)
        if libc.unshare(0x10020000):  # CLONE_NEWUSER, CLONE_NEWNS: none of this is seen outside
            sys.exit(77)
        if libc.mount(b"none", b"/", None, 0x44000, None):  # MS_REC | MS_PRIVATE
            sys.exit(77)
        if libc.mount(b"none", b"/dev", b"tmpfs", 0, None):
            sys.exit(77)
        import leveret
        for opens in (lambda: leveret.Runtime("processes"), leveret.ProcessExecutor):
            try:
                opens()
            except leveret.Unavailable as error:
                print(error)
        """
    )
    if done.returncode == 77:
        pytest.skip("this user may mount nothing")
    told = "workers could not be started: opening /dev/null, which a process needs to start: "
    assert done.stdout == f"{told}No such file or directory\n" * 2, done


def test_executors_give_back_their_files_without_the_garbage_collector() -> None:
    """A program that has turned it off, and opens an executor for each step."""
    done = _run(
        """
        import gc, itertools, os, leveret
        gc.disable()
        def fails(i):
            raise ValueError(i)
        def raises(use):
            try:
                use()
            except (ValueError, leveret.Poison):
                return
            raise AssertionError("nothing was raised")
        def one_by_one(e):
            list(e.map(abs, range(9), chunksize=1))
        def leaves_map(e):
            next(e.map(abs, itertools.count()))
        def leaves_many(e):
            next(e.submit_many(abs, itertools.count()))
        def fails_in_map(e):
            raises(lambda: list(e.map(fails, range(9))))
        def fails_in_result(e):
            raises(lambda: e.submit(fails, 1).result())
        def dies(e):
            raises(lambda: e.submit(os.abort).result())
        def files():
            return len(os.listdir("/proc/self/fd"))
        for use in (one_by_one, leaves_map, leaves_many, fails_in_map, fails_in_result, dies):
            counts = []
            for _ in range(8):
                with leveret.ProcessExecutor(1, preload=()) as executor:
                    use(executor)
                del executor
                counts.append(files())
            if counts[-1] > counts[0] + 8:  # a thread may be about to drop the last one's
                print(use.__name__, counts)
        """
    )
    assert done.returncode == 0 and not done.stdout, done
