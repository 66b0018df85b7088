"""Tests of the comparison of counted instructions with their budgets."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_parts.budgets import judge

BUDGETS = {
    "compiler": "GNU 12.2.0",
    "processor": "x86_64",
    "slack": 0.02,
    "instructions": {"empty": 1000},
}


def judged(value, compiler="GNU 12.2.0", processor="x86_64", name="empty"):
    figures = {name: {"value": value, "rival": "why not"}}
    return judge({"figures": figures, "machine": {"compiler": compiler}}, BUDGETS, processor)


class Budgets(unittest.TestCase):
    def test_within_slack_is_good(self):
        for count in (980, 1000, 1020):
            self.assertEqual([good for good, _ in judged(count)], [True])

    def test_above_slack_fails(self):
        self.assertEqual([good for good, _ in judged(1021)], [False])

    def test_far_below_asks_for_a_lower_budget(self):
        ((good, said),) = judged(900)
        self.assertTrue(good)
        self.assertIn("lower it", said)

    def test_another_compiler_or_processor_is_not_judged(self):
        for other in ({"compiler": "GNU 13.1.0"}, {"processor": "aarch64"}):
            self.assertEqual([good for good, _ in judged(5000, **other)], [None])

    def test_what_cannot_be_counted_says_why(self):
        ((good, said),) = judged(None)
        self.assertIsNone(good)
        self.assertIn("why not", said)

    def test_a_case_without_budget_and_a_budget_without_case_fail(self):
        self.assertEqual([good for good, _ in judged(1, name="new")], [False, False])


if __name__ == "__main__":
    unittest.main()
