"""The joblib backend: large arrays go into shared memory once, and results stay right."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret
from leveret.executor import joblib_arrays

joblib = pytest.importorskip("joblib")
pytestmark = needs_processes

from joblib import Parallel, delayed, parallel_config  # noqa: E402

LARGE = 300_000  # 2.4 MB of float64; joblib's max_nbytes is 1 MiB


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    leveret.register_joblib()
    with parallel_config(backend="leveret", n_jobs=2):
        yield


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """What was put into shared memory."""
    made: list[weakref.ref[Any]] = []

    class Counted(joblib_arrays.Lent):
        def __init__(self, array: Any) -> None:
            super().__init__(array)
            made.append(weakref.ref(self))

    monkeypatch.setattr(joblib_arrays, "Lent", Counted)
    return made


def at(x: Any, i: int) -> float:
    return float(x.flat[i])


def write(x: Any, value: float) -> float:
    x[0] = value
    return float(x[0])


def part(x: Any, i: int) -> Any:
    return x[i : i + 3]


def kind_of(x: Any) -> tuple[str, bool]:
    return type(x).__name__, bool(x.flags.writeable)


def test_one_copy_for_all_calls(copies: list[Any]) -> None:
    x = np.arange(LARGE, dtype=float)
    assert Parallel(batch_size=1)(delayed(at)(x, i) for i in range(20)) == list(range(20))
    assert len(copies) == 1
    views = Parallel(batch_size=1)(delayed(at)(x[: LARGE // 2], i) for i in range(20))
    assert views == list(range(20))
    assert len(copies) == 2  # views that are made anew for each call


def test_nothing_is_kept(copies: list[Any]) -> None:
    x = np.arange(LARGE, dtype=float)
    for _ in range(3):
        Parallel()(delayed(at)(x + i, 0) for i in range(4))
    gc.collect()
    assert len(copies) == 12
    assert [each for each in copies if each() is not None] == []


def test_copies_that_no_call_uses_are_bounded(
    copies: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joblib_arrays, "IDLE_BYTES_MAX", 20_000_000)
    x = np.arange(2 * LARGE, dtype=float)
    alive = []
    for got in Parallel(return_as="generator", batch_size=1)(
        delayed(at)(x[i : i + LARGE], 0) for i in range(60)
    ):
        alive.append(sum(each() is not None for each in copies))
        assert got == len(alive) - 1
    assert len(copies) == 60
    assert max(alive) < 30


def test_an_array_may_change_between_parallel_calls() -> None:
    x = np.zeros(LARGE)
    with Parallel() as parallel:
        for i in range(3):
            x[5] = i
            assert parallel(delayed(at)(x, 5) for _ in range(4)) == [i] * 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_shape_type_and_order_arrive(order: Any) -> None:
    x = np.asarray(np.arange(LARGE, dtype=">i4").reshape(300, -1), order=order)
    for sent in (x, x[:, ::2], x[::-1]):
        got = Parallel()(delayed(abs)(sent) for _ in range(2))
        assert all((each == abs(sent)).all() and each.shape == sent.shape for each in got)


def test_mmap_mode() -> None:
    x = np.zeros(LARGE)
    assert Parallel()(delayed(kind_of)(x) for _ in range(2)) == [("ndarray", False)] * 2
    for more in ({"mmap_mode": "c"}, {"mmap_mode": None}, {"max_nbytes": None}):
        assert Parallel(**more, batch_size=1)(delayed(write)(x, i) for i in range(3)) == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        Parallel()(delayed(write)(x, 1.0) for _ in range(2))
    Parallel(mmap_mode="r+")(delayed(write)(x, 1.0) for _ in range(2))
    assert x[0] == 0


def test_results_do_not_refer_to_what_was_lent() -> None:
    x = np.arange(LARGE, dtype=float)
    got = Parallel()(delayed(part)(x, i) for i in range(4))
    Parallel()(delayed(part)(-x, i) for i in range(4))  # takes the place of the first copy
    assert [each.tolist() for each in got] == [[i, i + 1, i + 2] for i in range(4)]


def test_shared_arrays_stay_shared() -> None:
    x = leveret.shared_array(LARGE)
    Parallel()(delayed(write)(x[i * 1000 :], float(i + 1)) for i in range(2))
    assert x[0] == 1 and x[1000] == 2


def test_a_mapped_file_goes_by_its_name(tmp_path: Path) -> None:
    x = np.memmap(tmp_path / "data", np.float64, "w+", shape=(LARGE,))
    x[:] = 3
    x.flush()
    seen = Parallel()(delayed(kind_of)(each) for each in (x, x[5:]))
    assert seen == [("memmap", True)] * 2
    Parallel()(delayed(write)(each, 4.0) for each in (x, x[5:]))
    assert x[0] == 4 and x[5] == 4
