"""Native procedures in worker processes: crashes, and what becomes of the task and its elements."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from conftest import needs_processes, wait_until

import leveret

pytestmark = needs_processes

SOURCE = """
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
void squares(const double *x, double *y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (x[i] < 0) raise(SIGSEGV);
    y[i] = x[i] * x[i];
  }
}
void once(const char *flag_bytes, size_t n) {
  char path[256] = {0};
  for (size_t i = 0; i < n && i < 255; ++i) path[i] = flag_bytes[i];
  if (access(path, F_OK) == 0) { unlink(path); raise(SIGSEGV); }
}
void leave(int32_t code) { _exit(code); }
void forever(void) { for (;;) pause(); }
void spins(int32_t *begun) { *begun = 1; for (;;) pause(); }
int code(int32_t c) { return c; }
"""


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crashing")
    (folder / "c.c").write_text(SOURCE)
    path = folder / "crashing.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(path), str(folder / "c.c")]
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return path


@pytest.fixture
def processes() -> Iterator[leveret.Runtime]:
    with leveret.Runtime("processes", workers=2) as runtime:
        yield runtime


def test_a_crash_is_run_again(crashing: Path, processes: leveret.Runtime, tmp_path: Path) -> None:
    once = leveret.load(crashing, "once", "in u1, count(0)")
    flag = tmp_path / "flag"
    flag.touch()
    processes.submit(once, np.frombuffer(os.fsencode(flag), np.uint8)).wait(30)
    assert not flag.exists()


def test_poison_names_the_element(crashing: Path, processes: leveret.Runtime) -> None:
    squares = leveret.load(crashing, "squares", "in f8, out f8, count(0)")
    x = np.arange(64.0)
    x[41] = -1
    y = np.zeros(64)
    ticket = processes.submit(squares, leveret.sliced(x), leveret.sliced(y))
    with pytest.raises(
        leveret.Poison, match=r"squares.* at elements \[41, 42\).*SIGSEGV"
    ) as caught:
        ticket.wait(60)
    assert caught.value.code == -signal.SIGSEGV
    good = np.arange(64) != 41
    np.testing.assert_array_equal(y[good], (x * x)[good])
    assert y[41] == 0


def test_poison_leaves_others_alone(crashing: Path, processes: leveret.Runtime) -> None:
    leave = leveret.load(crashing, "leave", "i4")
    null = leveret.builtin("null")
    bad = processes.submit(leave, 3)
    good = [processes.submit(null) for _ in range(100)]
    leveret.wait_all(good, 30)
    with pytest.raises(leveret.Poison, match=r"exit\(3\).*attempt 3"):
        bad.wait(30)


def test_max_attempts(crashing: Path) -> None:
    leave = leveret.load(crashing, "leave", "i4")
    with leveret.Runtime("processes", workers=1, max_attempts=1) as runtime:
        ticket = runtime.submit(leave, 3)
        with pytest.raises(leveret.Poison, match="attempt 1"):
            ticket.wait(30)


def test_a_task_that_takes_too_long(crashing: Path) -> None:
    forever = leveret.load(crashing, "forever", "")
    with leveret.Runtime("processes", workers=1, task_timeout=0.5) as runtime:
        with pytest.raises(leveret.Overran, match="forever"):
            runtime.submit(forever).wait(30)
        runtime.submit(leveret.builtin("null"), task_timeout=60).wait(30)


def test_returned_codes(crashing: Path, processes: leveret.Runtime) -> None:
    code = leveret.load(crashing, "code", "i4 -> int")
    with pytest.raises(leveret.TaskFailed) as caught:
        processes.submit(code, 17).wait(30)
    assert caught.value.code == 17


def test_a_library_that_was_replaced_is_refused(tmp_path: Path) -> None:
    def build(before: str) -> Path:
        (tmp_path / "of.c").write_text(before + "int seven(void) { return 7; }\n")
        new, path = tmp_path / "new.so", tmp_path / "of.so"
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(new), str(tmp_path / "of.c")]
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            pytest.skip("there is no C compiler")
        new.replace(path)
        return path

    seven = leveret.load(build(""), "seven", "-> int", name="seven-of-a-replaced-one")
    path = build("int other(int x) { volatile int a[9] = {0}; a[x] = x; return a[x % 9]; }\n")
    replaced = pytest.raises(leveret.InvalidArgument, match="was replaced")
    with leveret.Runtime("processes", workers=1) as runtime, replaced:
        runtime.submit(seven).wait()
    with pytest.raises(leveret.InvalidArgument, match="was replaced"):
        leveret.load(path, "seven", "-> int")
    moved = path.with_name("moved.so")
    path.rename(moved)
    with leveret.Runtime("processes", workers=1) as runtime:
        new = leveret.load(moved, "seven", "-> int", name="seven-of-the-new")
        with pytest.raises(leveret.TaskFailed) as caught:
            runtime.submit(new).wait(30)
    assert caught.value.code == 7


def test_functions_of_no_file_are_refused(processes: leveret.Runtime) -> None:
    made = ctypes.CFUNCTYPE(None)(lambda: None)
    procedure = leveret.procedure(made, "")
    with pytest.raises(leveret.Unavailable, match="in no file that a worker process could load"):
        processes.submit(procedure)


def test_numba_is_refused(processes: leveret.Runtime) -> None:
    numba = pytest.importorskip("numba")
    compiled = numba.cfunc("void(int32)")(lambda x: None)
    procedure = leveret.procedure(compiled, "i4")
    with pytest.raises(leveret.Unavailable, match="compiled at run time"):
        processes.submit(procedure, 1)


@pytest.mark.parametrize("options", [{"task_timeout": 0}, {"task_timeout": -1.0}])
def test_wrong_time_limits(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="timeout must be None or a number"):
        leveret.Runtime("processes", **options)


def test_wrong_options() -> None:
    with pytest.raises(leveret.InvalidArgument, match="max_attempts"):
        leveret.Runtime("processes", max_attempts=0)
    with pytest.raises(ValueError, match="isolation must be one of crash, confined"):
        leveret.Runtime("processes", isolation="hard")  # type: ignore[arg-type]


def test_shared_arrays(processes: leveret.Runtime) -> None:
    x = leveret.shared_array((100, 20))
    assert x.shape == (100, 20) and not x.any() and x.flags.writeable
    x[:] = np.arange(2000.0).reshape(100, 20)
    assert processes.submit(leveret.builtin("sum"), x).result(30) == x.sum()
    before = processes.counters()["staged_bytes"]
    assert before <= 64  # the result
    y = leveret.shared_array(2000, np.uint8)
    z = leveret.shared_array(2000, "u1")
    y[:] = 7
    processes.submit(leveret.builtin("copy"), y, z).wait(30)
    assert (z == 7).all()
    assert processes.counters()["staged_bytes"] == before
    axpy = leveret.builtin("axpy")
    t = leveret.shared_array(10)
    processes.submit(axpy, 2.0, np.ones(10), t).wait(30)
    assert (t == 2).all()


def test_shared_arrays_of_odd_kinds() -> None:
    assert leveret.shared_array(0).size == 0
    assert leveret.shared_array((), "i4").shape == ()
    assert leveret.shared_array((2, 0, 3)).shape == (2, 0, 3)
    with pytest.raises(TypeError, match="objects"):
        leveret.shared_array(3, object)


def test_arrays_of_several_megabytes(processes: leveret.Runtime) -> None:
    x = np.arange(1_000_000.0)
    y = np.ones(1_000_000)
    processes.submit(leveret.builtin("axpy"), 1.0, x, y).wait(30)
    np.testing.assert_array_equal(y, x + 1)


def run_python(code: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_the_main_module_does_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import leveret\nprint('here')\n"
        "with leveret.Runtime('processes', workers=2) as r:\n"
        "    r.submit(leveret.builtin('null')).wait()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")


def test_a_zygote_imports_no_numpy() -> None:
    done = run_python(
        """
        import leveret
        with leveret.Runtime("processes", workers=1) as r:
            r.submit(leveret.builtin("null")).wait()
            import os, pathlib
            me = os.getpid()
            children = pathlib.Path(f"/proc/{me}/task/{me}/children").read_text().split()
            maps = [pathlib.Path(f"/proc/{c}/maps").read_text() for c in children]
            assert len(maps) == 1, children
            assert "numpy" not in maps[0]
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_process_is_left() -> None:
    done = run_python(
        """
        import leveret, os, pathlib
        r = leveret.Runtime("processes", workers=1)
        r.submit(leveret.builtin("null")).wait()
        me = os.getpid()
        zygote = pathlib.Path(f"/proc/{me}/task/{me}/children").read_text().split()[0]
        workers = pathlib.Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()
        print(zygote, *workers, flush=True)
        os.kill(me, 9)
        """
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2 and done.returncode == -9
    for pid in pids:
        for _ in range(1000):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            subprocess.run(["true"], check=True)
        else:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            assert state == "Z", f"process {pid} is left"


_MEMBER = """
import sys
import numpy as np
import leveret

with leveret.Runtime("processes", workers=2, pool=sys.argv[1]) as runtime:
    print("there", flush=True)
    for line in sys.stdin:
        tickets = [runtime.submit(leveret.builtin("sum"), np.full(9, float(i))) for i in range(50)]
        right = [each.result() for each in tickets] == [9.0 * i for i in range(50)]
        print("right" if right else "wrong", flush=True)
"""


def _members(pool: str, count: int) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _MEMBER, pool]
    pipe = subprocess.PIPE
    return [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]


def _ask(member: subprocess.Popen[str]) -> str:
    assert member.stdin is not None
    member.stdin.write("go\n")
    member.stdin.flush()
    return _hear(member)


def _hear(member: subprocess.Popen[str]) -> str:
    assert member.stdout is not None
    return member.stdout.readline().strip()


def test_hosts_share_a_pool_and_one_is_killed() -> None:
    first, second = _members(f"test-python-{os.getpid()}", 2)
    try:
        assert [_hear(first), _hear(second)] == ["there", "there"]
        assert [_ask(first), _ask(second)] == ["right", "right"]
        first.kill()
        first.wait()
        assert _ask(second) == "right"
    finally:
        for each in (first, second):
            each.kill()
            each.communicate()


def test_two_runtimes_share_a_pool() -> None:
    pool = f"test-python-two-{os.getpid()}"
    with (
        leveret.Runtime("processes", workers=1, pool=pool) as one,
        leveret.Runtime("processes", workers=1, pool=pool) as other,
    ):
        total = leveret.builtin("sum")
        assert one.submit(total, np.ones(3)).result() == 3
        assert other.submit(total, leveret.shared_array(4)).result() == 0


def test_hosts_with_other_search_paths_share_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = f"test-python-path-{os.getpid()}"
    with leveret.Runtime("processes", workers=1, pool=pool) as one:
        monkeypatch.syspath_prepend("/nowhere/for-a-while")  # as Dask's workers do
        with leveret.Runtime("processes", workers=1, pool=pool) as other:
            total = leveret.builtin("sum")
            assert [each.submit(total, np.ones(3)).result() for each in (one, other)] == [3, 3]


def test_a_pool_of_another_program_is_refused_and_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = f"test-python-other-{os.getpid()}"
    with leveret.Runtime("processes", workers=1, pool=pool):
        monkeypatch.setattr(sys, "executable", f"{sys.executable}-of-somebody-else")
        with pytest.raises(leveret.InvalidArgument, match=r"another program.*use another"):
            leveret.Runtime("processes", workers=1, pool=pool)


@pytest.mark.parametrize("opens", [leveret.ProcessExecutor, lambda: leveret.Runtime("processes")])
def test_a_frozen_program_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, opens: Callable[[], object]
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(leveret.Unavailable, match="this program itself, which was frozen"):
        opens()


@pytest.mark.parametrize("given", [[], ["program", "a", "b"]])
def test_a_program_that_embeds_python_is_not_started_as_an_interpreter(
    monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "a", "b"])
    monkeypatch.setattr(sys, "orig_argv", given, raising=False)
    for each in (leveret.ProcessExecutor, lambda: leveret.Runtime("processes")):
        monkeypatch.setattr(sys, "executable", "/proc/self/exe")
        with pytest.raises(leveret.Unavailable, match=r"has Python in it: set sys\.executable"):
            each()
        monkeypatch.setattr(sys, "executable", "/nowhere/python3")
        with pytest.raises(leveret.Unavailable, match="No such file"):
            each()


@pytest.mark.parametrize("opens", [leveret.ProcessExecutor, lambda: leveret.Runtime("processes")])
def test_an_interpreter_that_is_gone_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, opens: Callable[[], object]
) -> None:
    """As after an upgrade, below a program that runs on."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    told = r"starting the Python of sys\.executable: No such file"
    with pytest.raises(leveret.Unavailable, match=told):
        opens()


@pytest.mark.parametrize(("pool", "error"), [("a b", ValueError), ("", ValueError), (3, TypeError)])
def test_bad_names_of_pools_are_refused(pool: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="pool"):
        leveret.Runtime("processes", workers=1, pool=pool)  # type: ignore[arg-type]


def begun(ticket: leveret.Ticket, flag: np.ndarray) -> None:
    """Waits until the task says that it runs."""
    while flag[0] == 0:
        assert not ticket.done()


def test_a_running_task_is_ended(crashing: Path, processes: leveret.Runtime) -> None:
    spins = leveret.load(crashing, "spins", "out i4")
    code = leveret.load(crashing, "code", "i4 -> int")
    flag = leveret.shared_array(1, "i4")
    ticket = processes.submit(spins, flag)
    begun(ticket, flag)
    others = [processes.submit(code, 0) for _ in range(50)]
    assert ticket.end()
    with pytest.raises(leveret.Cancelled, match="spins"):
        ticket.wait(30)
    for other in others:
        other.wait(30)
        assert not other.end()
    assert processes.counters()["reruns"] == 0


def test_closing_by_force_ends_what_runs(crashing: Path) -> None:
    spins = leveret.load(crashing, "spins", "out i4")
    flag = leveret.shared_array(1, "i4")
    runtime = leveret.Runtime("processes", workers=1)
    tickets = [runtime.submit(spins, flag)]
    begun(tickets[0], flag)
    tickets += [runtime.submit(leveret.builtin("null")) for _ in range(3)]
    with pytest.raises(leveret.TimeoutError):
        runtime.close(0.05, cancel_waiting=True)
    runtime.close(0.05, end_running=True)
    assert runtime.closed
    for ticket in tickets:
        with pytest.raises(leveret.Cancelled):
            ticket.wait()


def test_closing_by_force_beside_a_close_that_waits(crashing: Path) -> None:
    spins = leveret.load(crashing, "spins", "out i4")
    flag = leveret.shared_array(1, "i4")
    runtime = leveret.Runtime("processes", workers=1)
    ticket = runtime.submit(spins, flag)
    begun(ticket, flag)
    waits = threading.Thread(target=runtime.close, daemon=True)
    forces = threading.Thread(
        target=runtime.close, args=(0.05,), kwargs={"end_running": True}, daemon=True
    )
    try:
        waits.start()
        wait_until(lambda: refuses(runtime))
        forces.start()
        forces.join(60)
        assert not forces.is_alive()
        waits.join(60)
        assert runtime.closed and not waits.is_alive()
    finally:
        ticket.end()
    with pytest.raises(leveret.Cancelled):
        ticket.wait()


def refuses(runtime: leveret.Runtime) -> bool:
    try:
        runtime.submit(leveret.builtin("null"))
    except leveret.Closed:
        return True
    return False


def test_a_task_has_its_own_time_and_attempts(crashing: Path) -> None:
    forever = leveret.load(crashing, "forever", "")
    leave = leveret.load(crashing, "leave", "i4")
    code = leveret.load(crashing, "code", "i4 -> int")
    with leveret.Runtime("processes", workers=2, task_timeout=60) as runtime:
        slow = runtime.submit(forever, task_timeout=0.05)
        runtime.submit(code, 0, task_timeout=math.inf).wait(30)
        with pytest.raises(leveret.Overran, match=r"of 0[.]05 s") as caught:
            slow.wait(30)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(leveret.Poison, match="attempt 1;"):
            runtime.submit(leave, 3, max_attempts=1).wait(30)
        with pytest.raises(leveret.InvalidArgument, match="max_attempts"):
            runtime.submit(leave, 3, max_attempts=5000)
        for wrong in (0, -1, math.nan):
            with pytest.raises(ValueError, match="task_timeout must be None or"):
                runtime.submit(code, 0, task_timeout=wrong)
        with pytest.raises(TypeError, match="task_timeout must be None or"):
            runtime.submit(code, 0, task_timeout="1")  # type: ignore[arg-type]


def test_threads_cannot_end_what_runs() -> None:
    with leveret.Runtime("threads", workers=1) as runtime:
        ticket = runtime.submit(leveret.builtin("sum"), np.ones(4))
        with pytest.raises(leveret.Unavailable, match="processes"):
            runtime.submit(leveret.builtin("sum"), np.ones(4), task_timeout=1)
        try:
            assert not ticket.end()
        except leveret.Unavailable as why:
            assert "processes" in str(why)
