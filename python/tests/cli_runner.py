"""Runs the command line: in this process, or as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from leveret.cli.commands import app


def make_runner() -> CliRunner:
    """Standard output and error apart: older versions of click need to be asked."""
    try:
        options: dict[str, Any] = {"mix_stderr": False}
        return CliRunner(**options)
    except TypeError:
        return CliRunner()


runner = make_runner()


def invoke(*arguments: str, code: int = 0) -> str:
    """Runs the command in this process; standard output alone."""
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result.stdout


def invoke_json(*arguments: str) -> dict[str, Any]:
    printed = invoke(*arguments, "--json")
    read = json.loads(printed)
    assert isinstance(read, dict)
    assert printed == json.dumps(read) + "\n"
    return read


def command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "leveret", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
