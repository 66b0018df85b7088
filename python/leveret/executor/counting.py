"""What on_progress is told: how many calls there are, how many have ended, and how many failed.

1. The total grows when calls are given; in a mapping items count, before there are calls of them.
2. A call that has ended is done, however it ended; failed, too, unless by a result.
3. A call that is taken back before it has begun leaves the total: it will never end.

So a program whose calls are over sees done == total. Of a mapping that is closed, the total keeps
what has ended and what the pool has: the rest is never begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .future import Future
    from .mapping import Mapping, Part
    from .pool import Pool


class Tally:
    """Of one mapping; for holders of the pool's lock."""

    def __init__(self) -> None:
        self.taken = 0  # items taken from its iterables that were told
        self.given = 0  # those of them that the total still has
        self.ended = 0
        self.out: set[Part] = set()  # the calls that the pool has


def _counts(pool: Pool | None) -> bool:
    """Nobody is told in a child of os.fork(), and another thread may have had locks there."""
    return pool is not None and pool.counts and not pool.is_left()


def note_items(mapping: Mapping) -> None:
    """Its iterables have given more."""
    pool = mapping.pool
    if not _counts(pool):
        return
    with pool.lock:
        if not mapping.is_closed:
            _add_items(pool, mapping)


def note_out(mapping: Mapping, part: Part) -> None:
    """The pool has a call. With its lock.

    The thread that has taken the items from an iterable may not have come to tell of them. Where
    that closes the mapping at this moment, what is left of them is dropped next.
    """
    _add_items(mapping.pool, mapping)
    mapping.tally.out.add(part)


def _add_items(pool: Pool, mapping: Mapping) -> None:
    tally = mapping.tally
    more = mapping.items.pulled - tally.taken
    tally.taken += more
    tally.given += more
    pool.telling.add(more)


def note_unmade(pool: Pool, future: Future[Any], error: BaseException) -> None:
    """A call of submit() that could not be pickled: it is given, and has failed."""
    if _counts(pool):
        with pool.lock:
            pool.telling.add(1)
        note_end(pool, future, None, error)


def note_end(pool: Pool, future: Future[Any], value: Any, error: BaseException | None) -> None:
    """Before its future ends, so that whoever waits finds it counted. Once, if a signal comes."""
    if not _counts(pool):
        return
    with pool.lock:
        if future._is_counted:
            return
        future._is_counted = True
        done, failed = future._counted(value, error)
        mapping = future.mapping
        if mapping is not None and not _end_items(mapping, future, done):
            return
        pool.telling.end(done, failed)
        if mapping is not None and mapping.is_closed:
            drop_rest(mapping)


def _end_items(mapping: Mapping, part: Any, done: int) -> bool:
    """False: it was not begun when its mapping was closed, and is not in the total."""
    tally = mapping.tally
    if mapping.is_closed and part not in tally.out:
        return False
    tally.out.discard(part)
    tally.ended += done
    return True


def note_taken_back(future: Future[Any]) -> None:
    """A call was cancelled. One that has begun is counted when it ends."""
    mapping = future.mapping
    pool = future._pool if mapping is None else mapping.pool
    if pool is None or not _counts(pool):
        return
    with pool.lock:
        if future._is_counted or future._call is not None:
            return
        future._is_counted = True
        if mapping is None:
            pool.telling.take_back(1)
            return
        part: Any = future
        mapping.tally.out.discard(part)
        if mapping.is_closed:
            drop_rest(mapping)
            return
        mapping.tally.given -= len(part.items)
        pool.telling.take_back(len(part.items))


def drop_rest(mapping: Mapping) -> None:
    """Takes back what a mapping that is closed will not begin."""
    pool, tally = mapping.pool, mapping.tally
    if not _counts(pool):
        return
    with pool.lock:
        kept = tally.ended + sum(len(each.items) for each in tally.out)
        left = tally.given - kept
        if left > 0:
            tally.given = kept
            pool.telling.take_back(left)
