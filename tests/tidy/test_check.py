"""Tests of how tools/check counts: nothing that failed may look as if it had passed."""

import contextlib
import io
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_parts.steps import (
    Count,
    Steps,
    read_cases,
    read_counts,
    read_ctest,
    read_googletest,
    read_junit,
    read_unittest,
    stop_all,
)

CTEST = """60% tests passed, 2 tests failed out of 5

The following tests did not run:
\t  2 - b (Skipped)
\t  6 - f (Disabled)

The following tests FAILED:
\t  3 - c (Failed)
\t  4 - d (Not Run)
"""
JUNIT = '<testsuites><testsuite tests="7" failures="1" errors="2" skipped="1"/></testsuites>'
CASES = """<testsuite>
<testcase name="on/ticket_test.waits" status="fail"><system-out>
[ RUN      ] on/ticket_test.waits/threads_1
[       OK ] on/ticket_test.waits/threads_1 (12 ms)
[ RUN      ] on/ticket_test.waits/sim_1
[  SKIPPED ] on/ticket_test.waits/sim_1 (0 ms)
[ RUN      ] on/ticket_test.waits/sim_4
[  FAILED  ] on/ticket_test.waits/sim_4, where GetParam() = sim, 4 workers (3 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] on/ticket_test.waits/sim_1
[  FAILED  ] 1 test, listed below:
[  FAILED  ] on/ticket_test.waits/sim_4, where GetParam() = sim, 4 workers
</system-out></testcase>
<testcase name="conformance_tests.shard_1" status="fail"><system-out>
[       OK ] arena.is_full (0 ms)
[ RUN      ] arena.crashes
</system-out></testcase>
<testcase name="example_hello" status="run"><system-out>[       OK ] said</system-out></testcase>
<testcase name="api.refused" status="fail"><system-out/></testcase>
<testcase name="docs_shell" status="notrun"><system-out/></testcase>
</testsuite>"""


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.steps = Steps("part", self.root, jobs=1, deep=False)

    def read(self, reader, text):
        log = self.root / "log"
        log.write_text(text)
        return reader(log)

    def run_step(self, script, **options):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            good = self.steps.run("step", ["sh", "-c", script], **options)
        return good, self.steps.count, said.getvalue()

    def test_ctest_is_read(self):
        self.assertEqual(self.read(read_ctest, CTEST), Count(2, 2, 1))
        one = "0% tests passed, 1 tests failed out of 1\n"
        self.assertEqual(self.read(read_ctest, one), Count(0, 1, 0))
        self.assertIsNone(self.read(read_ctest, "No tests were found!!!\n"))

    def test_unittest_is_read(self):
        text = "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n"
        self.assertEqual(self.read(read_unittest, text), Count(5, 3, 1))
        self.assertEqual(self.read(read_unittest, "Ran 1 test in 0.1s\n\nOK\n"), Count(1, 0, 0))
        self.assertIsNone(self.read(read_unittest, "Traceback\n"))

    def test_counts_are_read(self):
        text = "found 9 passed, 9 failed\n5 passed, 2 failed\n"
        self.assertEqual(self.read(read_counts, text), Count(5, 2, 0))
        self.assertIsNone(self.read(read_counts, "5 passed, 2 failed\nTraceback\n"))
        self.assertIsNone(self.read(read_counts, ""))

    def test_junit_is_read(self):
        path = self.root / "results.xml"
        self.assertIsNone(read_junit(path)(None))
        path.write_text(JUNIT)
        self.assertEqual(read_junit(path)(None), Count(3, 3, 1))

    def test_the_cases_of_ctest_are_read(self):
        path = self.root / "results.xml"
        self.assertIsNone(read_cases(path)(None))
        path.write_text(CASES)
        count = read_cases(path)(None)
        self.assertEqual(count, Count(3, 3, 2))
        failed = ["on/ticket_test.waits/sim_4", "conformance_tests.shard_1", "api.refused"]
        self.assertEqual(count.names, failed)

    def test_the_cases_of_one_program_are_read(self):
        text = "[       OK ] a.b (0 ms)\n[  FAILED  ] a.c/0, where GetParam() = 1 (2 ms)\n"
        self.assertEqual(self.read(read_googletest, text), Count(1, 1, 0))
        self.assertIsNone(self.read(read_googletest, "[==========] 0 tests ran. (0 ms total)\n"))

    def test_a_case_that_failed_is_named(self):
        path = self.root / "results.xml"
        path.write_text(CASES)
        good, count, said = self.run_step("exit 8", read=read_cases(path))
        self.assertEqual((good, count), (False, Count(3, 3, 2)))
        self.assertIn("failed: on/ticket_test.waits/sim_4\n", said)
        self.assertIn("| [ RUN      ] arena.crashes\n", said)  # the log of the whole run hides it

    def test_a_plain_step_counts_one(self):
        self.assertEqual(self.run_step("true")[:2], (True, Count(1, 0, 0)))
        self.assertEqual(self.run_step("true", counts=False)[:2], (True, Count(1, 0, 0)))
        good, count, said = self.run_step("echo the reason; exit 3", counts=False)
        self.assertEqual((good, count), (False, Count(1, 1, 0)))
        self.assertIn("the reason", said)

    def test_what_is_stopped_ends_what_it_started(self):
        os.mkfifo(self.root / "began")
        is_over = threading.Event()
        stopping = threading.Thread(target=self.stop_when_it_runs, args=(is_over,))
        stopping.start()
        script = "trap 'kill $!; wait; exit 7' TERM; sleep 600 & echo >began; wait $!"
        good, _, said = self.run_step(script, cwd=self.root)
        is_over.set()
        stopping.join()
        self.assertFalse(good)
        self.assertIn("step: FAILED", said)

    def stop_when_it_runs(self, is_over):
        (self.root / "began").read_text()
        while not is_over.is_set():  # the program may begin before its step knows of it
            stop_all()

    def test_a_step_that_takes_too_long_says_how_to_allow_more(self):
        with mock.patch("check_parts.steps.STEP_SECONDS_MAX", 0.1):
            good, _, said = self.run_step("sleep 600")
        self.assertFalse(good)
        self.assertIn("stopped after 0.1 s; on a slow machine LEVERET_STEP_SECONDS allows", said)

    def test_the_time_of_processors_is_summed_up(self):
        self.run_step("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        once = self.steps.cpu_seconds
        self.assertGreater(once, 0)
        self.run_step("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done & wait")
        self.assertGreater(self.steps.cpu_seconds, once)

    def test_a_program_that_is_not_there_fails(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertFalse(self.steps.run("step", ["/there/is/no/such/program"]))
        self.assertEqual(self.steps.count, Count(0, 1, 0))

    def test_a_test_run_without_tests_fails(self):
        for text in ("", "100% tests passed, 0 tests failed out of 0"):
            good, _, _ = self.run_step(f"echo '{text}'", read=read_ctest)
            self.assertFalse(good)
        self.assertEqual(self.steps.count, Count(0, 2, 0))

    def test_an_exit_code_that_the_counts_hide_fails(self):
        passed = "echo '100% tests passed, 0 tests failed out of 4'"
        self.assertEqual(self.run_step(passed, read=read_ctest)[:2], (True, Count(4, 0, 0)))
        good, count, _ = self.run_step(f"{passed}; exit 8", read=read_ctest)
        self.assertEqual((good, count), (False, Count(8, 1, 0)))


if __name__ == "__main__":
    unittest.main()
