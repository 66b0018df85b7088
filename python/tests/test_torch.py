"""Tensors of torch as arguments and results, its random numbers, its threads."""

from __future__ import annotations

import importlib
import os
import pickle
from typing import Any

import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor
from leveret.wire.pickling import dumps

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = needs_processes


def same(value: Any) -> Any:
    return value


def fill(tensor: Any) -> None:
    tensor.fill_(7)


def draw() -> list[float]:
    numbers: list[float] = importlib.import_module("torch").rand(3).tolist()
    return numbers


MADE = {
    "matrix": lambda: torch.arange(12.0).reshape(3, 4),
    "large": lambda: torch.arange(1e5, dtype=torch.float64),
    "turned": lambda: torch.arange(1e4).reshape(10, 1000).t(),
    "images": lambda: torch.rand(2, 3, 8, 8).contiguous(memory_format=torch.channels_last),
    "bfloat16": lambda: torch.arange(5000).to(torch.bfloat16),
    "empty": lambda: torch.empty(0, 3),
    "scalar": lambda: torch.tensor(3),
    "every second": lambda: torch.arange(8000)[::2],
    "bool": lambda: torch.arange(5) > 2,
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "to learn": lambda: torch.ones(5000, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(5000)),
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_come_back_as_they_were(pool: ProcessExecutor, name: str) -> None:
    tensor = MADE[name]()
    got = pool.submit(same, tensor).result()
    assert type(got) is type(tensor) and got.dtype == tensor.dtype
    assert got.shape == tensor.shape and got.requires_grad == tensor.requires_grad
    assert torch.equal(got.detach(), tensor.detach())
    if name in ("turned", "images"):
        assert got.stride() == tensor.stride()
    got.detach().fill_(1)  # without a warning that it must not be written to


def test_other_kinds_are_torchs_own_business(pool: ProcessExecutor) -> None:
    sparse = torch.ones(3, 3).to_sparse()
    assert torch.equal(pool.submit(same, sparse).result().to_dense(), sparse.to_dense())
    layer = torch.nn.Linear(100, 100)
    assert torch.equal(pool.submit(same, layer).result().weight, layer.weight)
    tensor = torch.ones(3)
    tensor.name_of_mine = "kept"
    assert pool.submit(same, tensor).result().name_of_mine == "kept"


def test_bytes_are_beside_the_pickle() -> None:
    tensor = torch.ones(100_000)
    for value in (tensor, [tensor], {"a": tensor.t()}, tensor.to(torch.bfloat16)):
        pickled, buffers = dumps(value, 15)
        assert len(pickled) < 1000 and len(buffers) == 1
        assert pickle.loads(pickled, buffers=[bytearray(each) for each in buffers]) is not None
    # Of a part of a tensor the rest does not travel.
    assert len(dumps(tensor[:2000], 15)[1][0]) == 8000


def test_shared_memory_stays_the_same_memory(pool: ProcessExecutor) -> None:
    array = leveret.shared_array(1000, "f4")
    tensor = torch.from_numpy(array)
    pool.submit(fill, tensor[10:20]).result()
    assert array.sum() == 70
    got = pool.submit(same, {"a": [tensor]}).result()["a"][0]
    assert got.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("preload", [(), ("torch",)])
def test_a_seed_counts_for_torch_whenever_it_is_imported(preload: tuple[str, ...]) -> None:
    drawn = []
    for _ in range(2):
        with ProcessExecutor(1, seed=5, preload=preload) as executor:
            drawn.append(executor.submit(draw).result())
    assert drawn[0] == drawn[1]
    with ProcessExecutor(2, seed=5, seed_calls=True, preload=preload) as executor:
        of_calls = [each.result() for each in [executor.submit(draw) for _ in range(4)]]
    with ProcessExecutor(1, seed=5, seed_calls=True, preload=preload) as executor:
        assert [each.result() for each in [executor.submit(draw) for _ in range(4)]] == of_calls


def test_threads_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_NUM_THREADS"):
            monkeypatch.delenv(name)
    with ProcessExecutor(1, threads_per_worker=1) as executor:
        assert executor.submit(torch.get_num_threads).result() == 1
