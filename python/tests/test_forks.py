"""Children of os.fork(): what they inherit answers at once, and what they open themselves works.

Each test is a program of its own: the threads of a test run are not there in its forks.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import needs_processes

pytestmark = needs_processes

HEAD = """
import concurrent.futures as cf, gc, os, signal, sys, threading, traceback
import leveret
from leveret import ProcessExecutor

def in_child(f):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            f()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def is_closed(f, *args):
    try:
        f(*args)
    except leveret.Closed as error:
        assert "fork" in str(error), error
        return True
    return False

class Held:
    '''Has a thread hold a lock.'''
    def __init__(self, lock):
        self.lock, self.has, self.over = lock, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)
    def run(self):
        with self.lock:
            self.has.set()
            self.over.wait()
    def __enter__(self):
        self.thread.start()
        self.has.wait()
    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
"""


def run(code: str) -> None:
    script = HEAD + textwrap.dedent(code)
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_child_opens_its_own_after_others_were_closed() -> None:
    run("""
        for _ in range(3):
            with ProcessExecutor(1) as executor:
                assert executor.submit(abs, -1).result() == 1
        def child():
            with ProcessExecutor(1) as own:
                assert own.submit(abs, -2).result() == 2
        in_child(child)
        with ProcessExecutor(1) as executor:
            in_child(child)
            in_child(lambda: in_child(child))
            assert executor.submit(abs, -1).result() == 1
    """)


def test_a_child_is_given_no_memory_of_its_parent() -> None:
    run("""
        blocks = [leveret._core.SharedBlock(5000) for _ in range(4)]
        inherited = leveret._core.SharedBlock(5000)
        of_parent = {each.address for each in [*blocks, inherited]}
        blocks.clear()  # they are kept for the next ones
        def child():
            global inherited
            del inherited
            own = [leveret._core.SharedBlock(5000) for _ in range(8)]
            assert not of_parent & {each.address for each in own}
        in_child(child)
        again = [leveret._core.SharedBlock(5000) for _ in range(4)]
        assert of_parent >= {each.address for each in again}
    """)


def test_a_shared_array_of_the_parent_is_copied_for_workers_of_the_child() -> None:
    run("""
        array = leveret.shared_array(10)
        def set_up(given):
            given[0] = 5
        def add(given):
            given += 1
            return given.sum()
        def child():
            with ProcessExecutor(1, initializer=set_up, initargs=(array,)) as own:
                assert own.submit(add, array).result() == 10
        in_child(child)
        assert array.sum() == 0
    """)


def test_what_is_dropped_in_a_child_is_no_thread_of_it() -> None:
    run("""
        executors = [ProcessExecutor(1) for _ in range(3)]
        ends = [threading.Event() for _ in range(20)]
        for end in ends:
            threading.Thread(target=end.wait).start()
        def child():  # the stacks of threads that are not here go to its own, and away
            for _ in range(30):
                own = [threading.Thread(target=abs, args=(1,)) for _ in range(30)]
                for each in own: each.start()
                for each in own: each.join()
            executors.clear()
            gc.collect()
        in_child(child)
        for end in ends: end.set()
        assert [each.submit(abs, -1).result() for each in executors] == [1, 1, 1]
    """)


@pytest.mark.parametrize("which", ["executor._pool.lock", "future._condition", "abs_lock"])
def test_an_executor_of_the_parent_is_closed_whatever_lock_was_taken(which: str) -> None:
    run(
        """
        abs_lock = threading.Lock()
        executor = ProcessExecutor(1)
        gate = leveret.shared_array(1)
        def wait(gate):
            while not gate[0]: pass
            return "done"
        future, waiting = executor.submit(wait, gate), executor.submit(abs, -1)
        done = cf.Future()
        def child():
            assert is_closed(executor.submit, abs, -1)
            assert is_closed(executor.map, abs, [-1])
            assert is_closed(future.result) and is_closed(waiting.result, 60)
            assert future.done() and not future.cancel()
            assert len(cf.wait([future, waiting]).done) == 2
            assert len(list(cf.as_completed([future, waiting]))) == 2
            executor.terminate_workers()
            executor.shutdown()
            assert "closed" in repr(executor)
            with ProcessExecutor(1) as own:
                assert own.submit(abs, -2).result() == 2
        with Held(WHICH):
            in_child(child)
        gate[0] = 1
        assert future.result() == "done" and waiting.result() == 1
        executor.shutdown()
    """.replace("WHICH", which)
    )


def test_a_wait_of_another_thread_is_the_parents() -> None:
    run("""
        executor = ProcessExecutor(1)
        gate = leveret.shared_array(1)
        def wait(gate):
            while not gate[0]: pass
            return "done"
        future = executor.submit(wait, gate)
        got = []
        waiter = threading.Thread(target=lambda: got.append(future.result()))
        waiter.start()
        while not executor._pool.running: pass
        in_child(lambda: [is_closed(future.result) or os._exit(1) for _ in range(2)])
        gate[0] = 1
        waiter.join()
        assert got == ["done"]
        executor.shutdown()
    """)


@pytest.mark.parametrize(
    "begin",
    [
        "executor.map(wait, [1, 0], [gate] * 2)",
        "executor.submit_many(wait, [1, 0], [gate] * 2)",
        "cf.as_completed([executor.submit(wait, i, gate) for i in (1, 0)])",
    ],
)
def test_loops_under_way_end_in_a_child(begin: str) -> None:
    run(
        """
        executor = ProcessExecutor(2)
        gate = leveret.shared_array(1)
        def wait(is_free, gate):
            while not (is_free or gate[0]): pass
            return "done"
        results = BEGIN
        def outcome(each):
            return each.result() if isinstance(each, cf.Future) else each
        first = outcome(next(results))
        def child():
            assert is_closed(lambda: [outcome(each) for each in results])
        in_child(child)
        gate[0] = 1
        rest = [outcome(each) for each in results]
        assert "done" in str(first) and len(rest) == 1 and "done" in str(rest[0]), rest
        executor.shutdown()
    """.replace("BEGIN", begin)
    )


@pytest.mark.parametrize("thread", ["callback", "on_death", "on_progress"])
def test_a_child_forked_by_a_callback_ends_with_it(thread: str) -> None:
    run(
        """
        THREAD = 'WHICH'
        parent, child, after = os.getpid(), [], []
        read, write = os.pipe()
        gate = leveret.shared_array(1)
        has_forked = threading.Event()
        def fork(*_):
            if not child:
                child.append(os.fork())
                has_forked.set()
        def call(gate):
            while not gate[0]: pass
            if THREAD == "on_death": os.abort()
        options = {} if THREAD == "callback" else {THREAD: fork}
        executor = ProcessExecutor(1, retry=False, **options)
        future = executor.submit(call, gate)
        if THREAD == "callback":
            future.add_done_callback(fork)
            name = lambda: b"p" if os.getpid() == parent else b"c"
            future.add_done_callback(lambda _: os.write(write, name()))
        gate[0] = 1
        has_forked.wait()
        assert os.waitpid(child[0], 0)[1] == 0
        assert executor.submit(abs, -1).result() == 1
        executor.shutdown()
        os.close(write)
        assert os.read(read, 10) == (b"p" if THREAD == "callback" else b"")
    """.replace("WHICH", thread)
    )


def test_children_of_multiprocessing_that_use_executors() -> None:
    run("""
        from multiprocessing import get_context
        executor = ProcessExecutor(1)  # as a module may have one
        assert executor.submit(abs, -1).result() == 1
        def work(i):
            if not is_closed(executor.submit, abs, i): return None
            with ProcessExecutor(1) as own:
                return own.submit(abs, -i).result()
        with get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(4)) == [0, 1, 2, 3]
        executor.shutdown()
    """)


def test_procedures_are_made_in_a_child_that_was_forked_beside_such_threads(library: Path) -> None:
    run(
        """
        from leveret import procedures
        leveret.Runtime(workers=1).close()
        lock, goes_on = procedures._lock, threading.Event()
        has_it = threading.Event()
        def hold():
            with lock:
                has_it.set()
                goes_on.wait(0.2)  # a fork waits for it
        thread = threading.Thread(target=hold)
        thread.start()
        has_it.wait()
        in_child(lambda: leveret.load(LIBRARY, "narrow", "i1, u1, i2, u2, i4, u4, result i8"))
        thread.join()
    """.replace("LIBRARY", repr(str(library)))
    )


def test_a_child_removes_no_folder_of_its_parent(tmp_path: Path) -> None:
    run(
        """
        import hashlib
        from leveret.cluster import libraries
        data = b"not a library"
        libraries.keep(hashlib.sha256(data).hexdigest(), data, FOLDER)
        child = os.fork()
        if child == 0: sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        assert libraries.has(hashlib.sha256(data).hexdigest())
    """.replace("FOLDER", repr(str(tmp_path)))
    )


def test_a_child_of_a_call_that_comes_back_ends_as_its_interpreter_would() -> None:
    run(
        """
        import ctypes
        def act(how):
            if how == "exit":
                sys.exit(3)
            if how == "exit with a word":
                sys.exit("so long")
            if how == "raise":
                raise ValueError("the child's own")
            return "child"
        def fork_and(how, fork=os.fork):
            child = fork()
            if child == 0:
                sys.stderr = open(os.devnull, "w")
                return act(how)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        def fork_in_c(how):
            return fork_and(how, ctypes.CDLL(None).fork)
        def set_up():
            global child_ended_with
            child_ended_with = fork_and("return")
        words = ["return", "exit", "exit with a word", "raise"]
        with ProcessExecutor(1, initializer=set_up) as executor:
            assert executor.submit(lambda: child_ended_with).result() == 0
            for f in (fork_and, fork_in_c):
                assert [executor.submit(f, each).result() for each in words] == [0, 3, 1, 1]
                assert list(executor.map(f, words, chunksize=4)) == [0, 3, 1, 1]
    """
    )
