"""Texts that others wrote: whatever their bytes are, the caller gets the error they belong to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_messages import any_of

import leveret

THROWN = Path(__file__).with_name("thrown.cpp")


@pytest.fixture(scope="module")
def thrown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """thrown.cpp as a shared library."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler (c++, g++ or clang++) to make procedures with")
    path = tmp_path_factory.mktemp("thrown") / "thrown.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(THROWN)], check=True)
    return path


def failure_of(machine: str, library: Path, function: str, argument: int) -> str:
    """What the caller is told of a call that throws."""
    procedure = leveret.load(library, function, "i4 -> int")
    with leveret.Runtime(machine, workers=1) as runtime:
        with pytest.raises(leveret.TaskFailed) as waited:
            runtime.submit(procedure, argument).wait()
        runtime.submit(procedure, argument)  # nobody holds its ticket
        with pytest.raises(leveret.TaskFailed):
            runtime.wait_for_completion()
    return str(waited.value)


def test_text_that_is_not_utf_8(machine: str, thrown: Path) -> None:
    replaced = "?" if machine == "processes" else "\ufffd"  # there what workers say is made safe
    assert f"caf{replaced} is closed" in failure_of(machine, thrown, "latin_1", 0)


def test_no_text(machine: str, thrown: Path) -> None:
    assert "an exception whose what() is empty" in failure_of(machine, thrown, "no_text", 0)


@pytest.mark.parametrize("letters", range(3))
def test_text_that_is_cut(machine: str, thrown: Path, letters: int) -> None:
    text = failure_of(machine, thrown, "too_long", letters)
    assert "x" * letters + "\u20ac" * 60 in text


@pytest.mark.parametrize("first", range(0, 255, 50))
def test_any_bytes(machine: str, thrown: Path, first: int) -> None:
    assert "any_bytes" in failure_of(machine, thrown, "any_bytes", first)


def test_options_that_no_text_can_say() -> None:
    with pytest.raises(ValueError, match=r"\\udce9"):
        leveret.Runtime("threads", workers=1, staging=any_of("\udce9"))


def fail_in_worker(text: str) -> None:
    raise ValueError(text)


def test_a_python_exception_of_a_worker_keeps_its_text(pool: leveret.ProcessExecutor) -> None:
    for text in ("caf\u00e9", "lone \udce9 surrogate", "\u20ac" * 1000):
        with pytest.raises(ValueError, match="^" + text + "$"):
            pool.submit(fail_in_worker, text).result()
