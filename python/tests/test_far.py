"""Tasks of native functions that get parts of far memory themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import needs_processes
from test_interleave import compiled

import leveret


@pytest.fixture(scope="session")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("far.c")
    return compiled(tmp_path_factory.mktemp("far"), source, ("cc", "gcc", "clang"))


@pytest.mark.parametrize("machine", ["threads", "sim"])
@pytest.mark.parametrize("contexts", [1, 4])
def test_lists_are_walked(far: Path, machine: str, contexts: int) -> None:
    length = leveret.load(far, "length", "task, far in i8, i8, result i8 -> int")
    order = np.random.default_rng(7).permutation(1000)
    behind = np.full(1000, -1)
    for begin in range(0, 1000, 100):
        behind[order[begin : begin + 99]] = order[begin + 1 : begin + 100]
    with leveret.Runtime(machine, workers=2, contexts=contexts) as runtime:
        tickets = [runtime.submit(length, behind, int(order[i])) for i in range(0, 1000, 10)]
        assert [each.result() for each in tickets] == [100 - i % 100 for i in range(0, 1000, 10)]


def test_far_memory_is_written(far: Path) -> None:
    signature = "task, far inout f8, count(1), u8, u8 -> int"
    add_one = leveret.load(far, "add_one", signature, name="far.add_one")
    x = np.zeros((10, 10))
    with leveret.Runtime("sim", workers=2) as runtime:
        for row in range(0, 10, 2):
            runtime.submit(add_one, x, row * 10, 10).wait()
    assert (x[::2] == 1).all() and (x[1::2] == 0).all()


def test_what_was_not_declared_is_refused(far: Path) -> None:
    length = leveret.load(far, "length", "task, far in i8, i8, result i8 -> int")
    with leveret.Runtime(workers=1) as runtime:
        ticket = runtime.submit(length, np.full(5, 7), 0)
        with pytest.raises(leveret.TaskFailed) as failed:
            ticket.wait()
        assert str(int(leveret.Status.BAD_RANGE)) in str(failed.value)
        with pytest.raises(TypeError, match="argument 0"):
            runtime.submit(length, np.zeros(5, "f4"), 0)
        with pytest.raises(ValueError, match="contiguous"):
            runtime.submit(length, np.zeros((5, 5), "i8")[:, ::2], 0)
        with pytest.raises(ValueError, match="not cut"):
            runtime.submit(length, leveret.sliced(np.zeros(5, "i8")), 0)


def test_an_empty_array_is_far_as_well(far: Path) -> None:
    get_some = leveret.load(far, "get_some", "task, far in i8, u8 -> int")
    for machine in ("threads", "sim"):
        with leveret.Runtime(machine, workers=1) as runtime:
            for array in (np.zeros(5, "i8")[:0], np.zeros((0, 3), "i8"), np.zeros((3, 0), "i8")):
                runtime.submit(get_some, array, 0).wait()
                with pytest.raises(leveret.TaskFailed, match=str(int(leveret.Status.BAD_RANGE))):
                    runtime.submit(get_some, array, 1).wait()
            with pytest.raises(ValueError, match="not cut"):
                runtime.submit(get_some, leveret.sliced(np.zeros(0, "i8")), 0)


@needs_processes
def test_worker_processes_take_no_empty_far_memory_either(far: Path) -> None:
    get_some = leveret.load(far, "get_some", "task, far in i8, u8 -> int")
    with leveret.Runtime("processes", workers=1) as runtime:
        for length in (0, 5):
            with pytest.raises(leveret.Unavailable, match="far memory"):
                runtime.submit(get_some, np.zeros(length, "i8"), 0)


@pytest.mark.parametrize(
    ("signature", "says"),
    [("far f8", "far in CODE"), ("far in f3", "not understood"), ("task, rows(0)", "must name"),
     ("far in f8, stride(0)", "must name"), ("task, count(0)", "must name")],
)  # fmt: skip
def test_bad_signatures(far: Path, signature: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        leveret.load(far, "length", signature)
