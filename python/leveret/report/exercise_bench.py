"""The bench "exercise": programs made at random out of the whole API, against an oracle.

programs       how many ran, on all machines, as many of each as a check of the sources runs
failures       how many of them did something that the oracle does not allow
planted_found  how many of the mistakes that are built into a copy of the library were found
planted        how many there are

The programs are tests/exercise of a checkout: leveret-exercise and leveret-exercise-planted, on the
PATH or built there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from .figures import figure, report

# As tests/exercise/exercise_test.cpp.
_PROGRAMS = {"threads": 8_000, "sim": 10_500, "processes": 1_200, "pool": 400}
_QUICK = {"threads": 40, "sim": 40, "processes": 10, "pool": 6}
_BUILT = ("build/dev/tests/exercise", "build/release/tests/exercise")
_BUILD = "cmake --preset dev && cmake --build --preset dev --target"


def find_exerciser(name: str) -> Path:
    """The program on the PATH, or built in the checkout that this package lies in.

    FileNotFoundError says how to build it where there is none.
    """
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    for folder in Path(__file__).resolve().parents:
        for each in _BUILT:
            if os.access(folder / each / name, os.X_OK):
                return folder / each / name
    raise FileNotFoundError(
        f"{name} is no part of the package; build it in a checkout of Leveret ({_BUILD} {name})"
    )


def _run(program: Path, *words: str) -> dict[str, Any]:
    """What the program says as JSON; it exits with 1 when it has found something."""
    command = [str(program), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise OSError(f"{' '.join(command)} did not work: {done.stderr}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    exerciser = find_exerciser("leveret-exercise")
    planted = find_exerciser("leveret-exercise-planted")
    start = time.perf_counter()
    programs = failures = 0
    for where, count in (_QUICK if quick else _PROGRAMS).items():
        words = ["--machine", where, "--programs", str(count), "--jobs", "2", "--failures", "100"]
        said = _run(exerciser, *words, "--no-shrink")
        programs += said["programs"]
        failures += said["failures"]
    figures = {
        "programs": figure([programs], "", "" if quick else ">= 20000"),
        "failures": figure([failures], "", "= 0"),
        "seconds": figure([time.perf_counter() - start], "s"),
    }
    if not quick:
        found = _run(planted, "--planted")
        figures["planted_found"] = figure([found["planted_found"]], "", f"= {found['planted']}")
        figures["planted"] = figure([found["planted"]], "")
    return report("exercise", figures)
