"""ProcessExecutor: workers have the settings of the interpreter that the host has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes

pytestmark = needs_processes

BEGIN = """
import decimal, locale, os, socket, sys
import numpy as np
import leveret
def settings():
    import numpy as np
    return {
        "recursion": sys.getrecursionlimit(), "arguments": sys.argv,
        "digits": getattr(sys, "get_int_max_str_digits", int)(),
        "decimal": repr(decimal.Decimal(1) / 7), "traps": repr(decimal.getcontext().traps),
        "numpy": np.geterr(), "text": str(np.array([1 / 3])),
        "socket": socket.getdefaulttimeout(), "locale": locale.setlocale(locale.LC_ALL),
    }
def change():
    sys.setrecursionlimit(2345)
    getattr(sys, "set_int_max_str_digits", id)(9000)
    decimal.getcontext().prec = 50
    decimal.getcontext().traps[decimal.Inexact] = False
    decimal.getcontext().traps[decimal.DivisionByZero] = False
    np.seterr(all="raise")
    np.set_printoptions(precision=3)
    socket.setdefaulttimeout(7)
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    sys.argv[1:] = ["--given", "by the program"]
"""

PROGRAMS = {
    "workers_have_them": """
change()
with leveret.ProcessExecutor(1) as executor:
    assert executor.submit(settings).result(60) == settings()
    assert executor.submit(lambda: decimal.Decimal(1) / 7).result(60) == decimal.Decimal(1) / 7
    error = executor.submit(lambda: np.float64(1) / 0).exception(60)
    assert isinstance(error, FloatingPointError), error
""",
    "those_of_when_it_was_opened": """
before = settings()
with leveret.ProcessExecutor(1) as executor:
    change()
    assert executor.submit(settings).result(60)["decimal"] == before["decimal"]
    assert executor.submit(settings).result(60)["numpy"] == before["numpy"]
""",
    "an_initializer_has_the_last_word": """
change()
def initializer(): decimal.getcontext().prec = 9
with leveret.ProcessExecutor(1, initializer=initializer) as executor:
    assert str(executor.submit(lambda: decimal.Decimal(1) / 7).result(60)) == "0.142857143"
""",
    "a_worker_without_numpy": """
change()
with leveret.ProcessExecutor(1, preload=()) as executor:
    error = executor.submit(lambda: np.float64(1) / 0).exception(60)
    assert isinstance(error, FloatingPointError), error
""",
    "what_cannot_be_sent_stays": """
np.seterr(divide="call", invalid="raise")
sys.argv.append(object())
with leveret.ProcessExecutor(1) as executor:
    seen = executor.submit(settings).result(60)
assert seen["numpy"]["divide"] == "warn" and seen["numpy"]["invalid"] == "raise"
""",
    "arguments_that_the_program_has_taken_away": """
for take_away in ("del sys.argv", "sys.argv = None", "sys.argv = ('a',)"):
    exec(take_away)
    with leveret.ProcessExecutor(1, preload=()) as executor:
        assert executor.submit(abs, -1).result(60) == 1
""",
}
SHARED = """
name = f"settings-{os.getpid()}"
first = settings()
with leveret.ProcessExecutor(1, pool=name) as one:
    change()
    changed = settings()
    with leveret.ProcessExecutor(1, pool=name) as other:
        for _ in range(2):
            assert one.submit(settings).result(60)["decimal"] == first["decimal"]
            assert one.submit(settings).result(60)["numpy"] == first["numpy"]
            assert other.submit(settings).result(60) == changed
"""


def run(program: str, folder: Path) -> None:
    path = folder / "program.py"
    path.write_text(BEGIN + program + 'print("passed")\n')
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    run(PROGRAMS[name], tmp_path)


def test_each_host_of_a_shared_pool_has_its_own(tmp_path: Path) -> None:
    run(SHARED, tmp_path)
