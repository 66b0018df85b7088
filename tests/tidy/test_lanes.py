"""Tests of how tools/check runs parts side by side: each waits for what it needs, none is lost."""

import contextlib
import io
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_parts.lanes import Part, Run
from check_parts.parts import PARTS
from check_parts.steps import Count, Steps

SECONDS_MAX = 60


def passes(steps):
    """Passes."""
    steps.count += Count(passed=1)


def named(name, function):
    """The function as a test of a part of this name."""

    def test(steps):
        """A part."""
        return function(steps)

    test.__name__ = name
    return test


class LanesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def run_parts(self, *parts, chosen=None):
        by_name = {part.name: part for part in parts}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run = Run(
                by_name, chosen or list(by_name), lambda name: Steps(name, self.root, 1, False)
            )
            counts = run.run()
        return counts, said.getvalue()

    def test_tests_wait_for_what_they_need(self):
        ended = []
        parts = (
            Part(named("a", passes), lambda _: ended.append("make a") or True, keeps_time=True),
            Part(named("b", lambda s: ended.append("b") or passes(s)), needs=("a",)),
        )
        counts, _ = self.run_parts(*parts)
        self.assertEqual(ended, ["make a", "b"])
        self.assertEqual(counts, {"a": Count(1), "b": Count(1)})

    def test_what_is_needed_is_made_and_not_tested(self):
        tested = []
        parts = (
            Part(named("a", tested.append), lambda s: s.run("make", ["true"])),
            Part(named("b", passes), needs=("a",)),
            Part(named("c", tested.append)),
        )
        counts, said = self.run_parts(*parts, chosen=["b"])
        self.assertEqual((counts, tested), ({"a": Count(1), "b": Count(1)}, []))
        self.assertIn("a/make: ok", said)

    def test_makes_go_on_while_tests_run(self):
        made = threading.Event()
        parts = (
            Part(
                named("a", lambda s: passes(s) if made.wait(SECONDS_MAX) else None), keeps_time=True
            ),
            Part(named("b", passes), lambda _: made.set() or True, keeps_time=True),
        )
        self.assertEqual(self.run_parts(*parts)[0], {"a": Count(1), "b": Count(1)})

    def test_what_keeps_time_goes_before_the_others(self):
        niceness = {}

        def ask(steps):
            niceness[steps.part] = os.getpriority(os.PRIO_PROCESS, 0)
            passes(steps)

        self.run_parts(Part(named("a", ask), keeps_time=True), Part(named("b", ask)))
        lowest = 19  # where the check itself may have been started
        self.assertGreaterEqual(niceness["b"], min(niceness["a"] + 1, lowest))

    def test_what_could_not_be_made_fails_all_that_need_it(self):
        tested = []
        parts = (
            Part(named("a", tested.append), lambda s: s.run("make", ["false"]), keeps_time=True),
            Part(named("b", tested.append), lambda _: False, keeps_time=True),
            Part(named("c", tested.append), needs=("a",)),
            Part(named("d", passes), lambda _: tested.append("make d"), needs=("b",)),
        )
        counts, said = self.run_parts(*parts)
        self.assertEqual(counts, {name: Count(failed=1) for name in "abcd"})
        self.assertEqual(tested, [])
        self.assertIn("c/tests: FAILED: a could not be made", said)

    def test_a_mistake_in_a_part_is_a_failure_and_stops_no_other(self):
        def stumble(_steps):
            raise ValueError("a mistake")

        parts = (
            Part(named("a", stumble), keeps_time=True),
            Part(named("b", passes), stumble, keeps_time=True),
            Part(named("c", passes), keeps_time=True),
        )
        counts, said = self.run_parts(*parts)
        self.assertEqual(counts, {"a": Count(0, 1), "b": Count(0, 1), "c": Count(1)})
        self.assertEqual(said.count("ValueError: a mistake"), 2)

    def test_a_part_without_tests_fails(self):
        counts, said = self.run_parts(Part(named("a", lambda _: None)))
        self.assertEqual(counts, {"a": Count(failed=1)})
        self.assertIn("this part ran no test", said)

    def test_each_part_stands_behind_those_it_needs(self):
        names = list(PARTS)
        for part in PARTS.values():
            for needed in part.needs:
                self.assertLess(names.index(needed), names.index(part.name))


if __name__ == "__main__":
    unittest.main()
