"""How large pieces are: by what their elements took before.

A piece should take about `aim` seconds, so that what the engine spends on it does not count. Each
node gets four or more, and what comes last is smaller, so that all nodes end at the same time; what
takes so little that its pieces would be mostly the engine's is cut into fewer.
"""

from __future__ import annotations

PER_NODE = 4  # pieces of a job for each node, at least
FIRST_SHARE = 8  # while nothing is known: pieces for each slot, of the whole
SMALLEST = 0.05  # of the aim: nothing is cut finer
NEWEST = 0.3  # what the latest piece counts in the average
AHEAD_SECONDS = 0.25  # of work that each slot has waiting, while others are on their way
AHEAD_MIN, AHEAD_MAX = 2, 128  # pieces for each slot
# A copy costs what the piece does. What waits before it on its node counts: more than
# AHEAD_SECONDS, therefore.
LATE_SECONDS, LATE_TIMES = 0.5, 4.0
STEP = 1.1  # by which the median follows what pieces take
AHEAD_BYTES = 64 << 20  # of arguments for each slot, but AHEAD_MIN pieces in any case


class Pace:
    """What elements of one procedure or function take. Not thread safe: the driver's alone."""

    def __init__(self, aim: float) -> None:
        self.aim = aim
        self.ahead_max = AHEAD_MAX
        self.seconds = 0.0  # of one element; 0: not known
        self.typical = 0.0  # their median, nearly: what few slow ones take does not count
        self.piece_seconds = 0.0

    def note(self, elements: int, seconds: float) -> None:
        if elements <= 0:
            return
        each = max(seconds, 1e-7) / elements
        self.seconds += (each - self.seconds) * (NEWEST if self.seconds else 1.0)
        if self.typical:
            self.typical *= STEP if each > self.typical else 1 / STEP
        else:
            self.typical = each
        self.piece_seconds += (seconds - self.piece_seconds) * (NEWEST if self.piece_seconds else 1)

    def size(self, left: int, total: int, nodes: int, slots: int, most: int) -> int:
        """Elements of the next piece, of `left` that are left; at most `most`, 1 at least."""
        nodes, slots = max(1, nodes), max(1, slots)
        share = -(-total // (PER_NODE * nodes))
        tail = -(-left // (2 * slots))
        if not self.seconds:
            wanted = -(-total // (FIRST_SHARE * slots))
        else:
            wanted = int(self.aim / self.seconds)
            smallest = int(SMALLEST * self.aim / self.seconds)
            share, tail = max(share, smallest), max(tail, smallest)
        return max(1, min(wanted, share, tail, most, left))

    def late_seconds(self, elements: int) -> float:
        """After so long a piece is worth a copy on a node that has nothing else to do."""
        return max(LATE_SECONDS, LATE_TIMES * self.typical * elements)

    def room(self, under_way: int, slots: int, piece_bytes: int) -> int:
        """How many more pieces may be sent beside those that are under way on all nodes.

        None while most of them are: engines take many pieces at once for less than one by one.
        """
        each = AHEAD_MIN
        if self.piece_seconds:
            wanted = min(AHEAD_SECONDS / self.piece_seconds, AHEAD_BYTES / max(1, piece_bytes))
            each = max(AHEAD_MIN, min(self.ahead_max, int(wanted)))
        most = each * slots
        return 0 if under_way > most * 3 // 4 else most - under_way
