"""The command line where its output can go nowhere, or an input makes no sense: a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
COMMAND = f'"{sys.executable}" -m leveret'


def _run(line: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["info", "info --json", "--version"])
def test_standard_output_is_closed(command: str, tmp_path: Path) -> None:
    code, said = _run(f"{COMMAND} {command} >&-", tmp_path)
    assert code == 3 and said == "leveret: cannot write to standard output: it is closed\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is none")  # noqa: PTH110
@pytest.mark.parametrize("command", ["info", "info --json", "--version", "--help"])
def test_standard_output_is_full(command: str, tmp_path: Path) -> None:
    code, said = _run(f"{COMMAND} {command} >/dev/full", tmp_path)
    assert code == 3 and "leveret: " in said and "space" in said


def test_standard_error_is_closed(tmp_path: Path) -> None:
    assert _run(f"{COMMAND} info --json 2>&-", tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("command", "code", "wanted"),
    [
        ("trace .", 2, "is a folder"),
        ("trace /dev/null", 2, "/dev/null"),
        ("trace missing.json", 2, "there is no file missing.json"),
        ("run mandelbrot --machine threads --n 99999999999999999999", 2, "--n"),
        ("run mandelbrot --machine threads --out a.png --trace a.png", 2, "the same file"),
        ("run aes --machine threads --n 100000000000", 3, "memory"),
        ("run saxpy --machine threads --n 99999999999999", 2, "n must be 1 to 4294967295"),
        ("demo --quick --out /dev/null", 3, "--out /dev/null: /dev/null is a file"),
        ("repro --row T1.1 --out /dev/null", 3, "--out /dev/null: it is a file"),
    ],
)
def test_what_makes_no_sense(command: str, code: int, wanted: str, tmp_path: Path) -> None:
    found, said = _run(f"{COMMAND} {command}", tmp_path)
    assert found == code and wanted in said, (found, said)
    assert "must be 1 or more" not in said
