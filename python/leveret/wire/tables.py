"""The table in front of a pickle: the values of globals that it needs.

1. Each value is pickled by itself. The digest of that tells a worker whether it has changed in the
   host since it was sent.
2. Values may have objects in common: an optimizer and the parameters of its model, a list and an
   index of it. The picklers' memos show it, and such values are pickled again, together, so that
   they have them in common in the worker as well.
3. What has once had something in common is sent together from then on: a worker that was given one
   of them anew must be given all.
"""

from __future__ import annotations

import enum
import io
import logging
import re
import struct
import sys
import types
from pickle import dumps as _dumps
from pickle import loads as _loads
from time import perf_counter_ns
from typing import Any, Callable

from ..interrupts import NotOfSignal, raise_signals
from ..said import said_error
from . import by_value, unchanged
from .modules import Home
from .spaces import Needed, goes_inline, names_of, space_of
from .stored import Held, Part, digest_of, fetch, known_digest, put

_SIZES = struct.Struct("<qq")
COMPANIONS_MAX = 4096

# What is as good as a copy of it, and by what rows are not held together.
_FIXED = (
    bool, int, float, complex, str, bytes, type(None), range, tuple, frozenset, type, property,
    classmethod, staticmethod, types.FunctionType, types.BuiltinFunctionType, types.ModuleType,
    types.CodeType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, re.Pattern, enum.Enum, logging.Logger,
)  # fmt: skip

# By global: those that have had an object in common with it.
_companions: dict[Home, frozenset[Home]] = {}

# Globals that share something, their digests, and the parts of the pickle of the tuple of their
# values: what pickle wrote, and the buffers; without digests, why the one could not be pickled.
Row = tuple[tuple[Home, ...], tuple[bytes, ...], Any]
Memo = dict[int, tuple[int, Any]]
Views = list[memoryview]
# A pickler into a file that puts large buffers into a list.
Make = Callable[[io.BytesIO, Needed, Views], Any]


class Table:
    """Stands in front of a pickle, and says where the values of globals are, and the pickle."""

    def __init__(self, sizes: bytes) -> None:
        self.sizes = sizes

    def parts(self, data: memoryview) -> tuple[memoryview, memoryview]:
        """The values and the pickle."""
        own, values = _SIZES.unpack(self.sizes)
        return data[own : own + values], data[own + values :]


_TABLE_BYTES = len(_dumps(Table(_SIZES.pack(0, 0)), 5))


# In the host.


def dump_table(needed: Needed, make: Make, held: Held) -> bytes:
    """A table and its values. make: a pickler for values, which may find more that is needed."""
    dumped: dict[Home, _Dumped] = {}
    failed: list[Row] = []
    done: set[Home] = set()
    while len(done) < len(needed):
        for home in [each for each in needed if each not in done]:
            done.add(home)
            try:
                dumped[home] = _Dumped(home, needed, make, held)
            except Exception as error:  # a call that needs it says so
                raise_signals(error)
                failed.append(((home,), (), said_error(error)))
                continue
            _call_companions(home, needed)
    rows = []
    for homes in _groups(needed, {home: each.memo for home, each in dumped.items()}, make):
        if len(homes) > 1:
            views, _ = _dump(tuple(needed[each] for each in homes), needed, make)
            sent = [put(view, known_digest(view), held) for view in views]
        else:
            sent = dumped[homes[0]].send(held)
        rows.append((homes, tuple(dumped[each].digest for each in homes), sent))
    rows.sort(key=lambda row: _turn(needed[row[0][0]]))
    values = _dumps(failed + rows, 5)
    return _dumps(Table(_SIZES.pack(_TABLE_BYTES, len(values))), 5) + values


class _Dumped:
    """One global, and its pickle."""

    def __init__(self, home: Home, needed: Needed, make: Make, held: Held) -> None:
        self.home, self.value = home, needed[home]
        self.same = None if held is None else unchanged.same_as_sent(home, self.value)
        if self.same is not None:
            self.digest, self.memo = self.same.digest, self.same.memo()
            return
        self.contents = unchanged.look(home, self.value)
        views, self.memo = _dump((self.value,), needed, make)
        self.parts = [(view, known_digest(view)) for view in views]
        self.digest = digest_of(b"".join(digest for _, digest in self.parts))

    def send(self, held: Held) -> list[Part]:
        if self.same is not None:
            return self.same.send(held)
        own: Held = None if held is None else []
        sent = [put(view, digest, own) for view, digest in self.parts]
        if held is not None and own is not None:
            held += own
            unchanged.note(self.home, self.value, self.digest, self.contents, sent, own)
        return sent


def _turn(value: Any) -> int:
    """When it is read: others may refer to an object(), and may call functions while they are."""
    return 0 if type(value) is object else 1 if type(value) is types.FunctionType else 2


def _dump(values: tuple[Any, ...], needed: Needed, make: Make) -> tuple[Views, Any]:
    """The pickle, and the pickler's memo, which takes long to copy."""
    if type(values[0]) is object:  # it is what others refer to
        return [memoryview(_dumps(values, 5))], {}
    file = io.BytesIO()
    views: Views = []
    pickler = make(file, needed, views)
    pickler.dump(values)
    memo = {} if _has_nothing(values[0]) else pickler.memo
    if pickler.beside is not None and pickler.beside.has_own_of(memo):
        file, views = io.BytesIO(), []
        pickler = make(file, needed, views)
        pickler.beside = None  # the classes go in this pickle, with what is common to both
        pickler.dump(values)
        memo = pickler.memo
    return [file.getbuffer(), *views], memo


def _has_nothing(value: Any) -> bool:
    """Whether it has nothing that it could have in common with others, but globals."""
    if type(value) is not types.FunctionType:
        return False
    return not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value))


def _call_companions(home: Home, needed: Needed) -> None:
    for key, name in _companions.get(home, ()):
        names = names_of(key)
        if name in names and not goes_inline(names[name]):
            needed.setdefault((key, name), names[name])


def _groups(needed: Needed, memos: dict[Home, Any], make: Make) -> list[tuple[Home, ...]]:
    """The globals, those together that have an object in common."""
    group = {home: [home] for home in memos}
    if len(memos) > 1:
        copies = {home: memo.copy() for home, memo in memos.items()}
        for home, other in _pairs(needed, copies, make):
            if group[home] is not group[other]:
                group[home] += group[other]
                for each in group[other]:
                    group[each] = group[home]
    made = {id(homes): tuple(sorted(homes)) for homes in group.values()}
    for homes in made.values():
        if len(homes) > 1 and not all("#" in key for key, _ in homes):
            _note_companions(homes)
    return list(made.values())


def _note_companions(homes: tuple[Home, ...]) -> None:
    if len(_companions) >= COMPANIONS_MAX:
        _companions.clear()
    together = frozenset(homes).union(*(_companions.get(each, ()) for each in homes))
    if _companions.get(homes[0]) != together:
        _companions.update(dict.fromkeys(together, together))


def _pairs(needed: Needed, memos: dict[Home, Memo], make: Make) -> list[tuple[Home, Home]]:
    """Globals that have an object in common."""
    roots = {id(needed[home]) for home in memos}
    owners: dict[int, Home] = {}
    marks: dict[int, Home] = {}
    shared: list[tuple[Home, Home, int, Any]] = []
    by_size = sorted(memos.items(), key=lambda each: len(each[1]))
    for home, memo in by_size:
        common = owners.keys() & memo.keys()
        shared += [(home, owners[number], number, memo[number][1]) for number in common]
        if home != by_size[-1][0]:
            owners.update(dict.fromkeys(memo, home))
    kinds = {
        id(each): each
        for *_, each in shared
        if isinstance(each, type) and not by_value.is_importable(each)
    }
    of_classes = _reached(list(kinds.values()), make) if kinds else {}
    pairs = [
        (home, marks.setdefault(id(needed[home]), home))
        for home in memos
        if type(needed[home]) is object
    ]
    pairs += [
        (home, other)
        for home, other, number, each in shared
        if _is_one(each) and (number in roots or number not in of_classes)
    ]
    return pairs


def _is_one(value: Any) -> bool:
    """Whether it matters that it is one object, and not two that are equal."""
    if isinstance(value, types.CellType):
        return not isinstance(value.cell_contents, _FIXED)
    if type(value) is object or isinstance(value, _FIXED):
        return False
    numpy = sys.modules.get("numpy")
    return numpy is None or not isinstance(value, numpy.dtype)


def _reached(kinds: list[type], make: Make) -> Memo:
    """What belongs to classes alone: of no global that has instances of them."""
    pickler = make(io.BytesIO(), {}, [])
    pickler.beside = None
    for kind in kinds:
        for name, value in list(vars(kind).items()):
            if name.startswith("__") or hasattr(type(value), "__get__"):
                with NotOfSignal(Exception):
                    pickler.dump(value)
    memo: Memo = pickler.memo.copy()
    return memo


# In a worker.


class Taken:
    """What setting globals has taken: no part of the calls that happened to bring them."""

    ns = 0


def take_values(rows: list[Row]) -> None:
    """Sets what has changed in the host.

    What is made by a call of the program's code may need globals that come behind it: it is read
    again when those are there.
    """
    left = []
    for row in rows:
        homes, digests, why = row
        if not digests:
            _leave_out(homes, why)
        elif not _has(homes, digests):
            left.append(row)
    if not left:
        return
    begin = perf_counter_ns()
    count = len(left) + 1
    while len(left) < count:
        count = len(left)
        left = [row for row in left if not _take_row(row)]
    Taken.ns += perf_counter_ns() - begin


def _take_row(row: Row) -> bool:
    homes, digests, parts = row
    try:
        head, *buffers = map(fetch, parts)
        values = _loads(head, buffers=buffers)
    except Exception as error:  # as one that could not be written: who needs it says so
        _leave_out(homes, said_error(error))
        return False
    for (key, name), digest, value in zip(homes, digests, values):
        space = space_of(key, {"__name__": key})
        space.take(name, value, digest)
        space.together[name] = homes
    return True


def _leave_out(homes: tuple[Home, ...], why: str) -> None:
    for key, name in homes:
        space_of(key, {"__name__": key}).leave_out(name, why)


def _has(homes: tuple[Home, ...], digests: tuple[bytes, ...]) -> bool:
    """Whether they were read from one pickle, with nothing else, and have not changed since."""
    last = None
    for (key, name), digest in zip(homes, digests):
        space = space_of(key, {"__name__": key})
        together = space.together.get(name)
        if together != homes or space.sent.get(name) != digest:
            return False
        if last not in (None, id(together)):
            return False
        last = id(together)
    return True
