"""The programs of ranks in the documents do what they say, under each MPI that is here.

    LEVERET_BUILD=build/dev LEVERET_PYTHON=.venv/bin/python python3 tests/docs/test_mpi_blocks.py

Environment as for test_docs.py. What is missing here (an MPI, mpi4py, the package) skips its tests,
also with LEVERET_DOCS_STRICT=1, and says so. Exit status 77: everything was skipped.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import blocks
import test_docs

sys.path.insert(0, str(test_docs.ROOT / "tests/mpi"))

import engines

RANKS = 4


class Ranks:
    """The tests; a class for each MPI names it."""

    engine = engines.OPEN_MPI

    def setUp(self):
        if self.engine.missing():
            self.skipTest(f"there is no {self.engine.missing()}")
        folder = tempfile.TemporaryDirectory(prefix="leveret-docs-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_job(self, words, env=None):
        code, output = self.engine.job(words, RANKS, self.folder, env)
        self.assertEqual(code, 0, output)
        return output

    def test_programs_of_cpp_run(self):
        library = test_docs.library()
        if library is None:
            self.skipTest("no library: set LEVERET_BUILD to a build folder")
        found = [
            block
            for page in blocks.pages(test_docs.ROOT)
            for block in page.of("cpp")
            if block.is_for_mpi
        ]
        self.assertTrue(found, "there is no program of ranks any more")
        for block in found:
            with self.subTest(block.place):
                source, program = self.folder / "block.cpp", self.folder / "block"
                source.write_text(blocks.translation_unit(block), encoding="utf-8")
                words = engines.compile_words(
                    self.engine, source, program, test_docs.include(), library
                )
                code, _, said = test_docs.run(words, self.folder)
                self.assertEqual(code, 0, said)
                output = self.run_job([program])
                if block.output is not None:
                    self.assertEqual(output, block.output)

    def test_programs_of_python_run(self):
        python, why = test_docs.interpreter()
        if python is None:
            self.skipTest(why)
        env = test_docs.python_env() | self.engine.environment(self.folder)
        code, _, said = test_docs.run([python, "-c", "import mpi4py.MPI"], self.folder, env)
        if code != 0:
            self.skipTest(f"{python} has no mpi4py for {self.engine.name}: {said.strip()[-200:]}")
        found = [page for page in blocks.pages(test_docs.ROOT) if page.python_is_for_mpi]
        self.assertTrue(found, "there is no page with ranks any more")
        for page in found:
            with self.subTest(str(page.path)):
                self.run_job([python, "-W", "error", blocks.script(page, self.folder)], env)


class OpenMpi(Ranks, unittest.TestCase):
    engine = engines.OPEN_MPI


class Mpich(Ranks, unittest.TestCase):
    engine = engines.MPICH


if __name__ == "__main__":
    sys.exit(test_docs.main())
