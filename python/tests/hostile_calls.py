"""Bad calls of every kind that native code and programs have been seen to make."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

Body = Callable[[], Any]
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.free.argtypes = (ctypes.c_void_p,)


def square(n: int) -> int:
    """A good one."""
    return n * n


def raise_signal(number: int) -> None:
    """With its default action, and unblocked."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    threading.Event().wait(30)


def read_null() -> None:
    ctypes.string_at(0)


def write_null() -> None:
    ctypes.memset(8, 0, 8)


def write_to_code() -> None:
    ctypes.memset(ctypes.cast(LIBC.abs, ctypes.c_void_p).value or 0, 0, 8)


def jump_to_nowhere() -> None:
    ctypes.CFUNCTYPE(None)(16)()


def exit_0() -> None:
    LIBC.exit(0)


def exit_3() -> None:
    LIBC.exit(3)


def exit_at_once() -> None:
    os._exit(0)


def abort() -> None:
    LIBC.abort()


def die_of_fpe() -> None:
    raise_signal(signal.SIGFPE)


def die_of_ill() -> None:
    raise_signal(signal.SIGILL)


def die_of_bus() -> None:
    raise_signal(signal.SIGBUS)


def die_of_kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait(30)


def die_of_term() -> None:
    raise_signal(signal.SIGTERM)


def kill_the_group() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.killpg(0, signal.SIGTERM)
    threading.Event().wait(30)


def free_twice() -> None:
    p = LIBC.malloc(5000)
    between = LIBC.malloc(5000)
    LIBC.free(p)
    LIBC.free(p)
    LIBC.free(between)
    LIBC.abort()  # a C library that does not notice


def overflow_the_heap() -> None:
    blocks = [LIBC.malloc(40) for _ in range(100)]
    ctypes.memset(blocks[0], 0xFF, 1 << 13)
    for each in blocks:
        LIBC.free(each)
    LIBC.abort()


def overflow_the_stack() -> None:
    """Through C frames: sorted() calls the key, which sorts."""
    sys.setrecursionlimit(10**8)

    class Deep:
        def __lt__(self, other: object) -> bool:
            return bool(sorted([Deep(), Deep()]))

    threading.stack_size(256 << 10)
    thread = threading.Thread(target=sorted, args=([Deep(), Deep()],))
    thread.start()
    thread.join()
    LIBC.abort()  # an interpreter that counts C frames


def fatal_error() -> None:
    ctypes.pythonapi.Py_FatalError(b"hostile")


def lose_the_gil() -> None:
    ctypes.PyDLL(None).PyEval_SaveThread()
    [object() for _ in range(10**6)]
    LIBC.abort()


def crash_in_a_thread() -> None:
    threading.Thread(target=read_null).start()
    threading.Event().wait(30)


CRASHES: list[Body] = [
    read_null, write_null, write_to_code, jump_to_nowhere, exit_0, exit_3, exit_at_once, abort,
    die_of_fpe, die_of_ill, die_of_bus, die_of_kill, die_of_term, kill_the_group, free_twice,
    overflow_the_heap, overflow_the_stack, fatal_error, lose_the_gil, crash_in_a_thread,
]  # fmt: skip


def loop_with_the_gil() -> None:
    while True:
        pass


def loop_without_the_gil() -> None:
    LIBC.poll(None, 0, -1)
    LIBC.poll(None, 0, 60_000)


def lock_twice() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    threading.Event().wait(60)


def block_all_signals_and_loop() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass


def swallow_what_is_raised() -> None:
    while True:
        try:
            threading.Event().wait(60)
        except BaseException:  # noqa: PERF203
            continue


HANGS: list[Body] = [
    loop_with_the_gil, loop_without_the_gil, lock_twice, stop, block_all_signals_and_loop,
    swallow_what_is_raised,
]  # fmt: skip


def close_descriptors() -> None:
    os.closerange(3, 1024)


def close_outputs() -> None:
    os.closerange(1, 3)


def fork_and_exit() -> None:
    if os.fork() == 0:
        os._exit(0)


def fork_into_python() -> int:
    """The child returns from the call, too."""
    return os.fork()


def fork_in_c() -> None:
    if LIBC.fork() == 0:
        os._exit(0)


def fork_and_crash() -> None:
    if os.fork() == 0:
        ctypes.string_at(0)


def mask_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def ignore_signals() -> None:
    for each in (signal.SIGSEGV, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(each, signal.SIG_IGN)


def leak() -> None:
    ctypes.memset(LIBC.malloc(32 << 20), 1, 32 << 20)


def go_to_a_removed_folder() -> None:
    folder = Path("/tmp") / f"leveret-hostile-{os.getpid()}"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


def be_another_group() -> None:
    os.setpgid(0, 0)


def allow_few_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))


def leave_a_thread_behind() -> None:
    threading.Thread(target=threading.Event().wait, args=(1,), daemon=True).start()


# Bad as they are, they return.
HARMLESS: list[Body] = [
    close_descriptors, close_outputs, fork_and_exit, fork_into_python, fork_in_c, fork_and_crash,
    mask_signals, ignore_signals, leak, go_to_a_removed_folder, be_another_group, allow_few_files,
    leave_a_thread_behind,
]  # fmt: skip


def die_by_a_timer() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def crash_later() -> None:
    def run() -> None:
        time.monotonic()
        threading.Event().wait(0.01)
        ctypes.string_at(0)

    threading.Thread(target=run, daemon=True).start()


def kill_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


# They return, and the process ends later, or what starts processes does.
LATE: list[Body] = [die_by_a_timer, crash_later, kill_the_parent]


def recurse_without_end() -> None:
    """In Python alone: it takes memory, not stack."""
    sys.setrecursionlimit(10**9)

    def deeper() -> None:
        deeper()

    deeper()


def take_all_memory() -> int:
    return sum(each.nbytes for each in [np.ones(1 << 24) for _ in range(1000)])


GREEDY: list[Body] = [recurse_without_end, take_all_memory]
