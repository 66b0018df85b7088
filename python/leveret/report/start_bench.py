"""The bench "start": how long a program waits until Leveret does something for it.

import_ms        a fresh interpreter imports leveret and ends
help_ms          `leveret --help`
first_result_ms  from the constructor of an executor to the result of its first call
program_ms       a program that makes an executor, calls a function and ends

Each is a process of its own; contestants take turns, each figure is the median over the rounds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from .figures import figure, ratios, report

_FIRST = """
import time
{imported}
if __name__ == "__main__":
    start = time.perf_counter()
    with {made} as executor:
        assert executor.submit(int).result() == 0
        print((time.perf_counter() - start) * 1e3)
"""
_OURS = _FIRST.format(imported="from leveret import ProcessExecutor", made="ProcessExecutor(2)")
_POOL = (
    "from concurrent.futures import ProcessPoolExecutor\nfrom multiprocessing import get_context"
)
_SPAWN = _FIRST.format(
    imported=_POOL, made='ProcessPoolExecutor(2, mp_context=get_context("spawn"))'
)
_FORK = _FIRST.format(imported=_POOL, made='ProcessPoolExecutor(2, mp_context=get_context("fork"))')
_COMMANDS = {
    "python_ms": ["-c", "pass"],
    "import_ms": ["-c", "import leveret"],
    "help_ms": ["-m", "leveret", "--help"],
}
_PROGRAMS = {"": _OURS, "ppe_": _SPAWN, "ppe_fork_": _FORK}


def _run(words: list[str]) -> tuple[float, str]:
    """Milliseconds that a fresh interpreter takes, and what it prints."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    spent = (time.perf_counter() - start) * 1e3
    if done.returncode != 0:
        raise RuntimeError(f"{words[:2]} did not work: {done.stderr}")
    return spent, done.stdout


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    rounds = 2 if quick else 15
    values: dict[str, list[float]] = {}
    for _ in range(rounds):
        for key, words in _COMMANDS.items():
            values.setdefault(key, []).append(_run(words)[0])
        for prefix, program in _PROGRAMS.items():
            spent, printed = _run(["-c", program])
            values.setdefault(f"{prefix}first_result_ms", []).append(float(printed))
            values.setdefault(f"{prefix}program_ms", []).append(spent)
    goals = {"import_ms": "<= 100", "help_ms": "<= 250"}
    figures = {key: figure(all_of, "ms", goals.get(key, "")) for key, all_of in values.items()}
    for key in ("first_result", "program"):
        figures[f"{key}_over_ppe"] = ratios(values[f"{key}_ms"], values[f"ppe_{key}_ms"])
    return report("start", figures)
