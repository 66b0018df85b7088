"""Ranks of MPI programs that share their node's workers, under each MPI that is here.

    LEVERET_BUILD=build/dev python3 tests/mpi/test_mpi.py [OpenMpi ...]

Environment: LEVERET_BUILD (a build folder) or LEVERET_LIBRARY and LEVERET_INCLUDE. Looks for the
programs of engines.py. What is missing skips its tests and says so. Exit status 77: everything was
skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import engines

ROOT = Path(__file__).resolve().parents[2]
RANKS = 4


def setting(name, default=""):
    return os.environ.get(name) or default


def include():
    return setting("LEVERET_INCLUDE", str(ROOT / "include"))


def library():
    build = Path(setting("LEVERET_BUILD", str(ROOT / "build/dev")))
    return Path(setting("LEVERET_LIBRARY", str(build / "src/libleveret.a"))).absolute()


class Jobs:
    """The tests; a class for each MPI names it."""

    engine = engines.OPEN_MPI

    @classmethod
    def setUpClass(cls):
        if cls.engine.missing():
            raise unittest.SkipTest(f"there is no {cls.engine.missing()}")
        cls.folder = Path(tempfile.mkdtemp(prefix="leveret-mpi-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rank = cls.build(ROOT / "tests/mpi/rank.cpp")

    @classmethod
    def build(cls, source):
        program = cls.folder / source.stem
        words = engines.compile_words(cls.engine, source, program, include(), library())
        subprocess.run(words, check=True)
        return program

    def job(self, *words):
        return self.engine.job(words, RANKS)

    def expect_nothing_left(self, program, *names):
        self.assertEqual(engines.left_behind(program, names), [])

    def test_names_are_equal_on_a_node_and_differ_between_calls(self):
        found = []
        for _ in range(2):
            code, output = self.job(self.rank, "names")
            self.assertEqual(code, 0, output)
            lines = [line.split() for line in output.splitlines()]
            self.assertEqual(len(lines), RANKS, output)
            for line in lines:
                for name in line:
                    self.assertRegex(name, r"^[-._A-Za-z0-9]{1,60}$")
            everybody, halves, again = (set(column) for column in zip(*lines, strict=True))
            self.assertEqual((len(everybody), len(halves), len(again)), (1, 2, 1), output)
            found += [*everybody, *halves, *again]
        self.assertEqual(len(set(found)), 8, found)

    def test_tasks_that_abort_are_named_and_no_rank_is_lost(self):
        code, output = self.job(self.rank, "abort", "100")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count("100 named, 100 right"), RANKS, output)
        self.expect_nothing_left(self.rank)

    def killed(self, where):
        code, output = self.job(self.rank, "die", where)
        self.assertNotIn(code, (0, 124), output)
        self.assertRegex(output, r"signal 9|\(signal 9\)|EXIT CODE: 9")  # the engine's report
        pools = {line.split()[1] for line in output.splitlines() if line.startswith("pool ")}
        self.assertEqual(len(pools), 1, output)
        self.expect_nothing_left(self.rank, *pools)

    def test_a_rank_killed_with_its_runtime_open(self):
        self.killed("opened")

    def test_a_rank_killed_while_it_waits_for_a_task(self):
        self.killed("waiting")

    def test_a_rank_killed_by_its_own_task(self):
        self.killed("in_task")

    def test_the_example(self):
        program = self.build(ROOT / "examples/mpi_likelihood.cpp")
        code, output = self.job(program)
        self.assertEqual(code, 0, output)
        self.assertIn("4 ranks, 100 trees, 10 crashed, the best has a logarithm of", output)
        self.expect_nothing_left(program)


class OpenMpi(Jobs, unittest.TestCase):
    engine = engines.OPEN_MPI


class Mpich(Jobs, unittest.TestCase):
    engine = engines.MPICH


class WithoutMpi(unittest.TestCase):
    def test_the_header_says_what_it_needs(self):
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            self.skipTest("there is no g++")
        words = [compiler, "-std=c++20", f"-I{include()}", "-x", "c++", "-fsyntax-only", "-"]
        done = subprocess.run(
            words, input="#include <leveret/mpi.hpp>\n", capture_output=True, text=True, check=False
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("include <mpi.h> before <leveret/mpi.hpp>", done.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for _, why in result.skipped:
        print(f"skipped: {why}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == 0 else 0)
