"""map(): what a function brings along is each item's own, whatever is part of the function."""

from __future__ import annotations

import functools
import random
import time
import weakref
from typing import Any, Callable

import pytest
from conftest import needs_processes

from leveret import ProcessExecutor

pytestmark = needs_processes

Case = Callable[..., Any]


class Counter:
    """One that counts its calls: each call has it as it was sent."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: Any) -> int:
        self.count += 1
        return self.count

    def step(self, *_: Any) -> int:
        return self()


class WithSlot:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def step(self, *_: Any) -> int:
        self.count += 1
        return self.count


class WithSlotAndMore:
    __slots__ = ("__dict__", "count")

    def __init__(self) -> None:
        self.count = 0
        self.table = [1]

    def step(self, *_: Any) -> int:
        self.count += 1
        return self.count


class Remembered:
    """One that is known weakly."""

    def __init__(self) -> None:
        self.table = [1]

    def step(self, _: int) -> int:
        known = vars(weakref).setdefault("_leveret_known", weakref.WeakKeyDictionary())
        known[self] = known.get(self, 0) + 1
        count: int = known[self]
        return count


class Large:
    """One that takes longer to load than a chunk may take."""

    def __init__(self) -> None:
        self.table = [1]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        counts = vars(weakref)
        counts["_leveret_loads"] = counts.get("_leveret_loads", 0) + 1
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass

    def loads(self, _: int) -> int:
        count: int = vars(weakref)["_leveret_loads"]
        return count


def grow_in_tuple(table: list[tuple[list[int], int]], _: int) -> int:
    """Keeps a tuple; the next call changes the list in it, and so does not see it in its own."""
    kept = vars(weakref).setdefault("_leveret_kept", [])
    if kept:
        kept.pop()[0].append(7)
    else:
        kept.append(table[0])
    return len(table[0][0])


def with_defaults() -> Case:
    def step(_table: list[int], _: int, seen: list[int] = []) -> int:  # noqa: B006 (is the case)
        seen.append(1)
        return len(seen)

    return functools.partial(step, [1])


def with_class() -> Case:
    """Of a class that goes in the pickle of each call, as it has an object of its own."""

    class Kind:
        of_class = Counter()

        def __init__(self) -> None:
            self.table = [1]

        def step(self, _: int) -> int:
            return self.of_class.step()

    return Kind().step


CASES: dict[str, Case] = {
    "an object": functools.partial(Counter(), [1]),
    "a method": functools.partial(Counter().step, [1]),
    "a method in C": functools.partial(random.Random(1).randint, 0),
    "a slot": WithSlot().step,
    "a slot and more": WithSlotAndMore().step,
    "known weakly": Remembered().step,
    "a tuple": functools.partial(grow_in_tuple, [([1], 1)]),
    "defaults": with_defaults(),
    "a class": with_class(),
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES.keys())
def test_items_do_not_see_what_others_did_to_the_function(function: Case) -> None:
    items = [1 << 60] * 20
    with ProcessExecutor(1) as pool:
        first = pool.submit(function, items[0]).result()
        assert list(pool.map(function, items, chunksize=10)) == [first] * 20


def test_what_takes_long_to_load_is_loaded_for_many_items() -> None:
    with ProcessExecutor(1) as pool:
        loads = list(pool.map(Large().loads, range(60), chunksize=20))
    assert loads[-1] < 30  # 3, where nothing holds the worker up
