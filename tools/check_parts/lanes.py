"""Runs the parts of a check side by side, so that no core waits while there is something to do.

1. What the parts need is made ahead of their tests, one after the other: builds, environments.
2. Tests that wait and keep time run one part after the other, with nothing like them beside them.
3. What only computes (rules, models, counted instructions) runs beside both.

Each of the three is a lane, a thread of its own. What the first and the third start is nicer than
the tests, which get a core when they ask for one. No less than that: on a machine that has other
things to do, too, what must be made would never be.
"""

import os
import threading
import time
import traceback
from dataclasses import dataclass, field

from .steps import Steps, say, stop_all

NICER = 10  # a tenth of the weight of a test


@dataclass(frozen=True)
class Part:
    """One part: `make` prepares what its tests need, and says whether it could; `test` runs them.

    `needs` names the parts whose `make` must have passed before this one's `test`; the `make` comes
    after those of the parts before it, and sees what became of them.
    `keeps_time` says that the tests wait, and must not run beside others that do; `makes_beside`
    that `make` leaves cores to others, and needs no place in the queue of builds.
    """

    test: callable
    make: callable = None
    needs: tuple = ()
    keeps_time: bool = False
    makes_beside: bool = False

    @property
    def name(self):
        return self.test.__name__

    @property
    def title(self):
        return self.test.__doc__.splitlines()[0]


@dataclass
class Progress:
    """A part in this run: its steps, when it began, whether what it needs was made."""

    steps: Steps
    made: threading.Event = field(default_factory=threading.Event)
    is_good: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    start: float = 0.0

    def begin(self, title):
        if not self.start:
            self.start = time.monotonic()
            say(f"{self.steps.part}: {title}")


class Run:
    """The chosen parts of one check. `parts` has them all, in order."""

    def __init__(self, parts, chosen, new_steps):
        self.parts = parts
        self.chosen = [name for name in parts if name in chosen]
        wanted = set(self.chosen)
        for name in reversed(list(parts)):  # a part stands behind those it needs
            if name in wanted:
                wanted.update(parts[name].needs)
        self.made = [name for name in parts if name in wanted]
        self.progress = {name: Progress(new_steps(name)) for name in self.made}

    def run(self):
        """Runs them all; the counts of the parts that ran, by name."""
        in_time = [name for name in self.chosen if self.parts[name].keeps_time]
        beside = [name for name in self.chosen if not self.parts[name].keeps_time]
        makes = [[name for name in self.made if self.parts[name].makes_beside]]
        makes.append([name for name in self.made if name not in makes[0]])
        lanes = [(self._make, names, True) for names in makes]
        lanes += [(self._test, beside, True), (self._test, in_time, False)]
        for lane in lanes:
            threading.Thread(target=self._lane, args=lane, daemon=True).start()
        try:
            for name in self.made:
                self.progress[name].made.wait()
            for name in self.chosen:
                self.progress[name].ended.wait()
        except BaseException:
            stop_all()
            raise
        return {name: self.progress[name].steps.count for name in self.made}

    def _lane(self, work, names, is_nice):
        if is_nice:
            step_back()
        for name in names:
            work(name, self.parts[name], self.progress[name])

    def _missing(self, part):
        """The parts that this one needs and that could not be made."""
        for name in part.needs:
            self.progress[name].made.wait()
        return [name for name in part.needs if not self.progress[name].is_good]

    def _unmade(self, part):
        """The parts that this one needs of which it is known that they could not be made."""
        return [
            n for n in part.needs if self.progress[n].made.is_set() and not self.progress[n].is_good
        ]

    def _make(self, _name, part, progress):
        try:
            if part.make and not self._unmade(part):
                progress.begin(part.title)
                progress.is_good = bool(part.make(progress.steps))
                if not progress.is_good and not progress.steps.count.failed:
                    progress.steps.fail("make", "what the tests need could not be made")
            elif not part.make:
                progress.is_good = True
        except Exception:
            progress.steps.fail("make", traceback.format_exc())
        finally:
            progress.made.set()

    def _test(self, name, part, progress):
        steps = progress.steps
        try:
            progress.made.wait()
            progress.begin(part.title)
            missing = self._missing(part)
            if missing:
                steps.fail("tests", f"{' '.join(missing)} could not be made")
            elif progress.is_good:
                part.test(steps)
                if steps.count.passed + steps.count.failed == 0:
                    steps.fail("tests", "this part ran no test")
        except Exception:
            steps.fail("tests", traceback.format_exc())
        finally:
            seconds = time.monotonic() - progress.start
            said = f"{steps.count}, {seconds:.0f} s, {steps.cpu_seconds:.0f} s of processors"
            say(f"{name}: {said}\n")
            progress.ended.set()


def step_back():
    """Makes this thread, and what it starts, leave a core to tests that want it."""
    os.nice(NICER)  # of the calling thread alone, on Linux
