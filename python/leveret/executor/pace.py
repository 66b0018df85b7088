"""How many calls are handed to workers before earlier ones end."""

from __future__ import annotations

from .work import Work

# A function whose calls take less is given to workers some calls at a time; else a call would wait
# behind a long one while another worker is idle. (A round trip takes 30 us.)
SHORT_NS = 300_000
# So much work is handed over per worker, in calls that are short, and so many calls at most.
AHEAD_NS, AHEAD_MAX = 5_000_000, 64
# Of chunks, which take a millisecond: one that runs, and what is ahead of it.
CHUNKS_PER_WORKER = 4


class Pace:
    """What is known of how long calls take; used with the pool's lock."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.window_min = max(2, 2 * workers - 1)  # no call waits behind a running one
        self.window = self.window_min
        self.times: dict[bytes, float] = {}  # by function: how long its calls take, lately

    def has_room(self, under_way: int, work: Work) -> bool:
        """Whether a call may be handed over beside those under way."""
        return under_way < self.window_min or self.has_room_for(under_way, work.key, work.count)

    def has_room_for(self, under_way: int, key: bytes, count: int) -> bool:
        if under_way < self.window_min:
            return True
        ns = self.times.get(key, SHORT_NS)
        if count > 1:
            return under_way < CHUNKS_PER_WORKER * self.workers and ns * count < AHEAD_NS
        return under_way < self.window and ns < SHORT_NS

    def note(self, work: Work, ns: float) -> None:
        """Learns from a call that ended, or from one of a chunk."""
        key, times = work.key, self.times
        before = times.get(key)
        if before is None and len(times) >= 1024:
            times.clear()
        # One long call counts at once, short ones after some.
        now = times[key] = ns if before is None or ns > before else before + (ns - before) / 8
        if now < SHORT_NS:
            ahead = AHEAD_MAX if now * AHEAD_MAX <= AHEAD_NS else int(AHEAD_NS / now)
            self.window = max(self.window_min, ahead * self.workers)
        else:
            self.window = self.window_min
