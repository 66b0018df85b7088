"""Runtime("processes", isolation="confined"): native procedures that may ask the system nothing."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret

pytestmark = needs_processes

SOURCE = """
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
void roots(const double *x, double *y, size_t n) {
  double *copy = malloc(n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    if (x[i] < 0) raise(SIGSEGV);
    copy[i] = sqrt(x[i]);
  }
  for (size_t i = 0; i < n; ++i) y[i] = copy[i];
  free(copy);
}
void attack(int32_t which) {
  if (which == 0) open("/etc/passwd", O_RDONLY);
  if (which == 1) socket(AF_INET, SOCK_STREAM, 0);
  if (which == 2) fork();
  if (which == 3) kill(getppid(), SIGKILL);
}
void spoil(double *x, size_t n) { for (size_t i = 0; i < n; ++i) x[i] = -1; }
int code(int32_t c) { return c; }
"""


def build(folder: Path, name: str) -> Path:
    (folder / f"{name}.c").write_text(SOURCE)
    path = folder / f"{name}.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(path), f"{name}.c", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile"), "hostile")


@pytest.fixture
def confined() -> Iterator[leveret.Runtime]:
    try:
        runtime = leveret.Runtime("processes", workers=2, isolation="confined")
    except leveret.Unavailable as why:
        assert "confined workers" in str(why)
        pytest.skip(str(why))
    with runtime:
        yield runtime


def load(library: Path, symbol: str, signature: str) -> leveret.Procedure:
    return leveret.load(library, symbol, signature, name=f"{symbol} of {library.name}")


def roots(library: Path) -> leveret.Procedure:
    return load(library, "roots", "in f8, out f8, count(0)")


def test_a_procedure_that_computes(hostile: Path, confined: leveret.Runtime) -> None:
    x, y = np.arange(100.0), np.zeros(100)
    confined.submit(roots(hostile), x, y).wait(30)
    np.testing.assert_array_equal(y, np.sqrt(x))
    confined.submit_bulk(leveret.builtin("axpy"), 2.0, np.ones((8, 5)), np.ones((8, 5))).wait(30)
    with pytest.raises(leveret.TaskFailed) as caught:
        confined.submit(load(hostile, "code", "i4 -> int"), 7).wait(30)
    assert caught.value.code == 7
    assert confined.counters()["reruns"] == 0


def test_shared_arrays(hostile: Path, confined: leveret.Runtime) -> None:
    x, y = leveret.shared_array(100), leveret.shared_array(100)
    x[:] = 9
    confined.submit(roots(hostile), x, y).wait(30)
    assert (y == 3).all()
    # What it only reads, it cannot change: the worker's view of shared memory is for reading.
    with pytest.raises(leveret.Poison, match="SIGSEGV"):
        confined.submit(load(hostile, "spoil", "in f8, count(0)"), x).wait(30)
    assert (x == 9).all()


@pytest.mark.parametrize("which", range(4))
def test_what_it_may_not(hostile: Path, confined: leveret.Runtime, which: int) -> None:
    attack = load(hostile, "attack", "i4")
    with pytest.raises(leveret.Poison, match=r"signal 31 \(SIGSYS\), attempt 1") as caught:
        confined.submit(attack, which).wait(30)
    assert caught.value.code == -signal.SIGSYS
    confined.submit(leveret.builtin("null")).wait(30)


def test_a_crash_names_the_element(hostile: Path, confined: leveret.Runtime) -> None:
    x, y = np.arange(64.0), np.zeros(64)
    x[41] = -1
    ticket = confined.submit(roots(hostile), leveret.sliced(x), leveret.sliced(y))
    with pytest.raises(leveret.Poison, match=r"at elements \[41, 42\).*SIGSEGV"):
        ticket.wait(60)
    good = np.arange(64) != 41
    np.testing.assert_array_equal(y[good], np.sqrt(x[good]))


def test_a_library_that_comes_late(
    hostile: Path, confined: leveret.Runtime, tmp_path: Path
) -> None:
    """The workers that are there have given up opening files: fresh ones load it."""
    x, y = np.arange(16.0), np.zeros(16)
    for _ in range(8):
        confined.submit(roots(hostile), x, y).wait(30)
    late = build(tmp_path, "late")
    for _ in range(8):
        confined.submit(roots(late), x, y).wait(30)
    np.testing.assert_array_equal(y, np.sqrt(x))
    assert 1 <= confined.counters()["deaths"] <= 2 + 2
    assert confined.counters()["reruns"] == 0


def test_python_functions_are_not_for_confined_workers() -> None:
    options: dict[str, Any] = {"isolation": "confined"}
    with pytest.raises(TypeError, match="isolation"):
        leveret.ProcessExecutor(1, **options)
