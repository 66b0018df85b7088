"""How many calls are handed to workers before earlier ones end."""

from __future__ import annotations

from .work import Work

# A function whose calls take less is given to workers some calls at a time; else a call would wait
# behind a long one while another worker is idle. (A round trip takes 30 us.)
SHORT_NS = 300_000
# So much work is handed over per worker, in calls that are short, and so many calls at most.
AHEAD_NS, AHEAD_MAX = 5_000_000, 64


class Pace:
    """What is known of how long calls take; used with the pool's lock."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.window_min = max(2, 2 * workers - 1)  # no call waits behind a running one
        self.window = self.window_min
        self.times: dict[bytes, float] = {}  # by function: how long its calls take, lately

    def has_room(self, under_way: int, work: Work) -> bool:
        """Whether a call may be handed over beside those under way."""
        if under_way < self.window_min:
            return True
        return under_way < self.window and self.is_short(work)

    def is_short(self, work: Work) -> bool:
        return self.times.get(work.key, SHORT_NS) < SHORT_NS

    def note(self, work: Work, ns: int) -> None:
        """Learns from a call that ended."""
        if len(self.times) > 1024:
            self.times.clear()
        key = work.key
        before = self.times.get(key)
        # One long call counts at once, short ones after some.
        self.times[key] = ns if before is None or ns > before else before + (ns - before) / 8
        ahead = min(AHEAD_MAX, int(AHEAD_NS // max(1.0, self.times[key]))) * self.workers
        is_short = self.times[key] < SHORT_NS
        self.window = max(ahead, self.window_min) if is_short else self.window_min
