"""Arrays to functions in worker processes and back: any of them, whole, and in bounded memory."""

from __future__ import annotations

import os
import pickle
import random
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor, _core
from leveret.wire import arrays, pickling

pytestmark = needs_processes

KINDS = ("?", "i1", "u2", "i4", "f4", "f8", "c16", "f2", "M8[ns]", "m8[s]", "S7", "U3")
SHARED_BYTES_MAX = 256 << 20  # kept blocks, those of calls under way, and what results hold


def _made(rng: random.Random) -> Any:
    """An array of any kind, order and size, or a view of one."""
    kind = np.dtype(rng.choice(KINDS))
    most = rng.choice((40, 5_000, 100_000, 1_500_000))
    count = rng.randrange(max(2, most // kind.itemsize))
    raw = np.frombuffer(rng.randbytes(count * kind.itemsize), "u1")
    if kind.kind in ("b", "U"):  # not every byte is one of theirs
        raw = raw % 2
    array = np.zeros(count, kind) if kind.kind == "U" else raw.view(kind)
    way = rng.randrange(6)
    if way == 1:
        array = array[:: rng.choice((1, 2, -1, -3))]
    elif way == 2:
        array = np.asfortranarray(array[: count // 6 * 6].reshape(-1, 6))
    elif way == 3:
        array = array[: count // 4 * 4].reshape(2, -1, 2).transpose(2, 0, 1)
    elif way == 4:
        array = np.broadcast_to(array[:1], (3, min(count, 1)))
    elif way == 5:
        array = array.copy()
        array.flags.writeable = False
    return array


def _spoiled(array: Any) -> Any:
    """Gives back what it was given, and spoils its own copy."""
    kept = array.copy(order="A")
    if array.flags.writeable:
        array[...] = np.zeros((), array.dtype)
    return kept


def _echo(array: Any) -> Any:
    return array


def test_any_array_comes_back_as_it_was(pool: ProcessExecutor) -> None:
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    kept = []
    for i in range(60):
        array = _made(rng)
        before = array.tobytes()
        result = pool.submit(rng.choice((_echo, _spoiled)), array).result()
        about = f"seed {seed}, array {i}: {array.dtype} {array.shape} {array.strides}"
        assert result.dtype == array.dtype and result.shape == array.shape, about
        assert result.tobytes() == before == array.tobytes(), about
        kept.append((result, before, about))
        if len(kept) > 20:
            kept.pop(rng.randrange(len(kept)))
    for result, before, about in kept:  # what came later has not touched what was kept
        assert result.tobytes() == before, about


def test_an_array_out_of_a_pickle_is_pickled_like_any_other() -> None:
    arrays.watch_for_numpy()
    for kind in (*KINDS, ">f8"):
        array = pickle.loads(pickle.dumps(np.zeros(5, kind), 5))
        assert pickling._is_plain(np.zeros(5, kind)) and pickling._is_plain(array), kind
    with_text = np.zeros(5, np.dtype("f8", metadata={"unit": "m"}))
    for other in (np.zeros(3, object), np.zeros(3, "f4, i2"), with_text, leveret.shared_array(3)):
        assert not pickling._is_plain(other)


def test_which_arrays_are_in_shared_memory() -> None:
    shared = leveret.shared_array((10, 8), "i8")
    views = (shared, shared[::-1], shared[:, ::-2], shared.T, shared[2, 3:4], shared.view("M8[s]"))
    for view in (*views, np.broadcast_to(shared[0], (3, 8))):
        assert _core.is_array_shared(view)
    for other in (np.zeros(3), shared[:0], np.array([None]), shared.copy(), 7, "text"):
        assert not _core.is_array_shared(other)


def _shared_bytes() -> int:
    """Shared memory that this process has touched."""
    found = re.search(r"RssShmem:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def test_many_sizes_do_not_add_up() -> None:
    rng = random.Random(1)
    most = 0
    with ProcessExecutor(2) as executor:
        for _ in range(20):
            sizes = [rng.randrange(1 << rng.randrange(1, 22)) for _ in range(8)]
            calls = [executor.submit(_echo, np.full(size, 1, "u1")) for size in sizes]
            assert [call.result().sum() for call in calls] == sizes
            most = max(most, _shared_bytes())
    assert most < SHARED_BYTES_MAX


def _die_half_way(file: str) -> None:
    """An initializer: the process dies in the middle of its first large copy, the next does not."""
    if Path(file).exists():
        return

    def half(to: memoryview, source: memoryview) -> None:
        to[: len(source) // 2] = source[: len(source) // 2]
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    _core.copy_shared = half  # type: ignore[assignment]


@pytest.mark.parametrize("count", [1 << 20, 20 << 20])  # by shared memory, in a file
def test_a_death_in_the_middle_of_a_result_loses_nothing(tmp_path: Path, count: int) -> None:
    file = str(tmp_path / "died")
    given = (file,)
    with ProcessExecutor(1, initializer=_die_half_way, initargs=given) as executor:
        array = np.arange(count // 8)
        assert (executor.submit(_echo, array).result() == array).all()
    assert Path(file).exists()


def test_a_copy_needs_room() -> None:
    with pytest.raises(ValueError, match="no room"):
        _core.copy_shared(bytearray(3), b"1234")
    target = bytearray(5)
    _core.copy_shared(target, b"1234")
    assert target == b"1234\0"
