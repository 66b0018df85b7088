"""Items of a batch that cannot be pickled, or read, together: each fails alone."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import cloudpickle

from ..interrupts import raise_signals
from ..wire.errors import dump_error


class Apart(NamedTuple):
    """For each item its pickle, or what the pickler has raised."""

    items: list[tuple[bytes, bool]]


def dump_item(item: tuple[Any, ...]) -> tuple[bytes, bool]:
    """(pickle, True), or (pickle of an error, False)."""
    try:
        return cloudpickle.dumps(item, 5), True
    except BaseException as error:  # a reducer may raise what it likes
        raise_signals(error)
        return dump_error(error, ""), False


def load_items(
    apart: Apart, load: Callable[[bytes], Any], dump_unread: Callable[[BaseException], bytes]
) -> tuple[list[Any], dict[int, bytes]]:
    """The items that can be read; of the others, by their places, the pickles of their errors."""
    items, errors = [], {}
    for place, (data, is_item) in enumerate(apart.items):
        if not is_item:
            errors[place] = data
            continue
        try:
            items.append(load(data))
        except BaseException as error:  # an unpickler may raise what it likes
            raise_signals(error)
            errors[place] = dump_unread(error)
    return items, errors
