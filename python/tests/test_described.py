"""Plain arrays go by their descriptions, and arrive as if they had been pickled."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import needs_processes

import leveret
from leveret import ProcessExecutor
from leveret.wire import arrays, described, pickling, replies
from leveret.wire.described import DESCRIBED

NUMBERS = "?bBhHiIlLqQefdgFDG"
BIG = 1024  # items whose bytes go beside the pickle


def fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


PLAIN = [
    *(np.ones(3, kind) for kind in NUMBERS),
    *(np.arange(BIG).astype(kind) for kind in NUMBERS.replace("?", "")),
    np.arange(BIG, dtype=">f8"),
    np.zeros((3, 4), ">i2"),
    np.arange(12.0).reshape(3, 4),
    np.arange(12.0).reshape(3, 4, order="F"),
    np.arange(4.0 * BIG).reshape(64, -1, order="F"),
    np.arange(4.0 * BIG).reshape(4, 16, -1),
    np.array(7.5),
    np.zeros(0),
    np.zeros((0, 5), "i4", order="F"),
    np.zeros((3, 0, 2)),
    fixed(np.arange(5)),
    fixed(np.arange(BIG)),
    fixed(np.arange(2 * BIG).reshape(2, -1, order="F")),
    np.arange(4 * BIG)[BIG : 3 * BIG],
]

OTHER = [
    np.array(["text"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.array([None]),
    np.zeros(3, "f4, i2"),
    np.zeros(5, np.dtype("f8", metadata={"unit": "m"})),
    np.arange(4 * BIG)[::2],
    np.broadcast_to(np.ones(3), (4, 3)),
    np.ma.masked_array([1, 2], [True, False]),
    [np.ones(3)],
    {"a": np.ones(3)},
    (np.ones(3), [1]),
    range(3),
]


@pytest.fixture(autouse=True)
def numpy_is_known() -> None:
    arrays.watch_for_numpy()


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(1) as executor:
        yield executor


def through_pickle(value: Any) -> Any:
    buffers: list[Any] = []
    keep = pickling._keeper(buffers, 15)
    data = pickle.dumps(value, 5, buffer_callback=keep)
    return pickle.loads(data, buffers=list(map(bytearray, buffers)))


def about(array: Any) -> Any:
    flags = array.flags
    return (
        type(array),
        array.dtype,
        array.dtype.num,
        array.dtype.byteorder,
        array.shape,
        array.strides,
        (flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.owndata),
        array.tobytes("A"),
    )


@pytest.mark.parametrize("array", PLAIN, ids=lambda a: f"{a.dtype.str}{a.shape}")
def test_an_array_arrives_as_if_it_had_been_pickled(array: Any) -> None:
    made = described.dump((array,), True)
    assert made is not None
    data, buffers = made
    assert b"numpy" not in data  # or the look-up of that name costs more than all the rest
    assert len(buffers) == (array.nbytes >= described.BUFFER_BYTES_MIN)
    there = described.load(data, list(map(bytearray, buffers)))
    assert about(there) == about(through_pickle(array))
    if not array.flags.writeable:
        with pytest.raises(ValueError, match="WRITEABLE"):
            there.flags.writeable = True


@pytest.mark.parametrize("value", OTHER, ids=lambda v: type(v).__name__)
def test_what_is_not_plain_is_pickled(value: Any) -> None:
    assert described.dump((value,)) is None
    assert described.dump((np.ones(2), value)) is None
    assert pickling.dump_reply(value)[0] == replies.VALUE


def test_what_has_no_array_is_pickled() -> None:
    assert described.dump((1, "a", None)) is None
    plain = pickling.dump_plain_arguments(((1, "a"), {}))
    assert plain is not None and plain[0] == pickling.PLAIN
    assert pickling.dump_reply((1, 2))[0] == pickling.dump_reply(1)[0] == replies.VALUE


def test_shared_memory_goes_by_its_address() -> None:
    shared = leveret.shared_array(2 * BIG)
    assert described.dump((shared,)) is None
    assert described.dump((shared[3:9],)) is None


def test_values_keep_their_places() -> None:
    big, small = np.arange(BIG), np.arange(3.0)
    made = described.dump((1, big, "b", small, None, fixed(2 * big)))
    assert made is not None
    data, buffers = made
    one, first, text, second, none, third = described.load(data, list(map(bytearray, buffers)))
    assert (one, text, none) == (1, "b", None)
    assert first.tolist() == big.tolist() and second.tolist() == small.tolist()
    assert third.tolist() == (2 * big).tolist() and not third.flags.writeable


def test_an_array_that_is_there_twice_is_one_array() -> None:
    array = np.ones(BIG)
    assert described.dump((array, array)) is None
    plain = pickling.dump_plain_arguments(((array, array), {}))
    assert plain is not None
    flag, data, buffers = plain
    assert flag == pickling.PLAIN
    (first, second), _ = pickle.loads(data, buffers=list(map(bytearray, buffers)))
    assert first is second


def test_more_large_arrays_than_a_call_has_places_for() -> None:
    many = tuple(np.full(BIG, i) for i in range(pickling.CALL_BUFFERS_MAX + 2))
    plain = pickling.dump_plain_arguments((many, {}))
    assert plain is not None
    assert plain[0] == pickling.PLAIN and len(plain[2]) == pickling.CALL_BUFFERS_MAX
    fewer = pickling.dump_plain_arguments((many[:-2], {}))
    assert fewer is not None and fewer[0] == DESCRIBED


def test_a_reducer_of_the_programs_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**copyreg.dispatch_table, np.ndarray: lambda array: (str, ("reduced",))}
    monkeypatch.setattr(copyreg, "dispatch_table", table)
    assert described.dump((np.ones(3),)) is None


def test_a_reply_with_an_array_and_notes() -> None:
    array = np.arange(4.0 * BIG).reshape(64, -1, order="F")
    kind, data, buffers = pickling.dump_reply((array, 7))
    buffers = [*buffers, memoryview(b"notes")]
    size = replies.reply_size(len(data), buffers)
    place = memoryview(bytearray(size))
    replies.write_reply(place, kind | replies.NOTED, data, buffers, 1, size)
    kind, (there, seven), _, _, noted = replies.read_reply(place)
    assert kind == replies.VALUE and seven == 7
    assert about(there)[1:] == about(through_pickle(array))[1:]
    assert noted is not None and bytes(noted) == b"notes"


# The functions of the calls.


def same(*values: Any) -> Any:
    return values[0] if len(values) == 1 else values


def changed(first: Any, second: Any) -> Any:
    first += 1
    return first, second


@needs_processes
@pytest.mark.parametrize("array", PLAIN[-12:], ids=lambda a: f"{a.dtype.str}{a.shape}")
def test_there_and_back(pool: ProcessExecutor, array: Any) -> None:
    for _ in range(2):  # in a file, and in memory that was kept for it
        there = pool.submit(same, array).result()
        assert about(there)[1:5] == about(array)[1:5]
        assert there.flags.f_contiguous == array.flags.f_contiguous
        assert there.flags.writeable == array.flags.writeable
        assert there.tobytes() == array.tobytes()


@needs_processes
def test_there_and_back_together(pool: ProcessExecutor) -> None:
    first, second = np.arange(BIG), np.arange(3.0)
    result = pool.submit(changed, first, second).result()
    assert type(result) is tuple
    assert result[0].tolist() == (first + 1).tolist() and result[1].tolist() == second.tolist()
    assert first[0] == 0  # the caller's is not the worker's
    one, there = pool.submit(same, 1, first).result()
    assert one == 1 and there.tolist() == first.tolist()


@needs_processes
def test_results_outlive_their_executor() -> None:
    array = np.arange(64.0 * BIG)
    with ProcessExecutor(1) as executor:
        results = [executor.submit(same, array + i).result() for i in range(4)]
    for i, result in enumerate(results):
        assert result.flags.writeable
        np.add(result, 1, out=result)
        assert result.tolist() == (array + i + 1).tolist()
