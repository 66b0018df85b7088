"""Replies of calls: what the extension module writes and reads is what the package does."""

from __future__ import annotations

import pickle
import random
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any

import pytest

from leveret import _core
from leveret.wire import pickling, replies

VALUES = [None, 0, -1, 2.5, "text", b"", b"\0" * 900, ("a", 1), (ValueError("no"), "trace")]


def written(kind: int, value: object, room: int = 1024) -> tuple[bytearray, bytes]:
    place, pickled = bytearray(room), pickle.dumps(value, 5)
    size = replies.reply_size(len(pickled), [])
    replies.write_reply(memoryview(place), kind, pickled, [], 1234, size)
    return place, pickled


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("kind", [replies.VALUE, replies.ERROR, replies.BROKEN])
def test_both_write_and_read_the_same(kind: int, value: object) -> None:
    theirs, pickled = written(kind, value)
    place = bytearray(1024)
    size = _core.write_plain_reply(place, kind, pickled, 1234)
    assert size == replies.reply_size(len(pickled), [])
    assert place == theirs
    assert _core.read_plain_reply(place) == (kind, pickled, 1234, size)
    if kind == replies.VALUE and type(value) is not tuple:
        assert replies.read_reply(memoryview(place)) == (kind, value, 1234, size, None)


def test_a_reply_without_room_is_not_written() -> None:
    for room in range(replies.REPLY.size + 8):
        place = bytearray(room)
        assert _core.write_plain_reply(place, 0, b"p" * 8, 1) == 0
        assert place == bytes(room)
        assert _core.read_plain_reply(place) is None
    place = bytearray(replies.REPLY.size + 8)
    assert _core.write_plain_reply(place, 0, b"p" * 8, 1) == len(place)
    assert _core.read_plain_reply(place) == (0, b"p" * 8, 1, len(place))


def test_what_is_not_as_it_was_written_is_left_to_python() -> None:
    place, pickled = written(replies.VALUE, "of some length")
    size = replies.REPLY.size + len(pickled)
    for bit in range(8 * size):
        changed = bytearray(place)
        changed[bit // 8] ^= 1 << bit % 8
        assert _core.read_plain_reply(changed) is None
        with pytest.raises(replies.Overwritten):
            replies.read_reply(memoryview(changed))
    assert _core.read_plain_reply(bytes(1024)) is None


def test_no_bytes_lead_beyond_a_reply() -> None:
    some = random.Random(7)
    for _ in range(20_000):
        noise = bytearray(some.randbytes(some.randrange(0, 80)))
        if len(noise) >= 20 and some.random() < 0.7:  # lengths that look like some
            noise[4:12] = bytes(8)
            noise[12:20] = some.randrange(0, 64).to_bytes(8, "little")
        assert _core.read_plain_reply(noise) is None


@pytest.mark.parametrize("kind", [replies.IN_FILE, replies.NOTED | replies.ERROR])
def test_other_kinds_are_pythons(kind: int) -> None:
    place, _ = written(kind, None)
    assert _core.read_plain_reply(place) is None


def test_buffers_are_pythons() -> None:
    place, pickled = bytearray(1024), pickle.dumps(0, 5)
    buffers = [memoryview(b"x" * 100)]
    replies.write_reply(
        memoryview(place), 0, pickled, buffers, 1, replies.reply_size(len(pickled), buffers)
    )
    assert _core.read_plain_reply(place) is None


@pytest.mark.parametrize("base", [AsyncGenerator, Coroutine, Generator])
def test_what_is_not_done_yet_is_told_whichever_compiler_has_made_it(base: type) -> None:
    """Coroutines and generators of Cython are not of Python's own types."""
    ended: list[Any] = []

    def refuse(self: Any) -> None:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def close(self: Any) -> None:
        ended.append(self)

    body: dict[str, Any] = dict.fromkeys(
        ("__await__", "aclose", "asend", "athrow", "send", "throw")
    )
    body.update(__reduce__=refuse, close=close)
    value = type("made", (base,), body)()
    with pytest.raises(TypeError, match=r"^the result, of type 'made': cannot .*; have (the|a) "):
        pickling.dump_result(value)
    assert ended == ([value] if base is Coroutine else [])
