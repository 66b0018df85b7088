"""Blocks that are no program of their own: JSON, projects of CMake, and calls of `leveret`.

Steps for CMake: install the build folder; configure, build and run each whole project; configure
the other blocks behind a small project, in which `leveret` is the folder with the sources.
"""

import json
import os
import shlex
import tempfile
import unittest
from pathlib import Path

import blocks
import test_docs
from test_docs import ROOT, require, run

MAIN = """\
#include <leveret/leveret.hpp>
int main() {
  lev::runtime runtime;
  return runtime.workers() > 0 ? 0 : 1;
}
"""
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C CXX)
add_executable(mine main.cpp)
"""


def found(language):
    return [block for page in blocks.pages(ROOT) for block in page.of(language)]


def calls_of_leveret(block):
    """The words behind `leveret` of each line of a block of shell that begins with it."""
    lines = [shlex.split(line, comments=True) for line in block.text.split("\n")]
    return [words[1:] for words in lines if words[:1] == ["leveret"]]


def wrong_json(block):
    """What is wrong with a block of JSON, or an empty string."""
    try:
        json.loads(block.text)
    except ValueError as error:
        return f"{block.place}: {error}"
    return ""


def temporary(test):
    return Path(test.enterContext(tempfile.TemporaryDirectory(prefix="leveret-docs-")))


class JsonBlocks(unittest.TestCase):
    def test_blocks_of_json_parse(self):
        for block in found("json"):
            with self.subTest(block.place):
                self.assertEqual(wrong_json(block), "")


class CmakeBlocks(unittest.TestCase):
    def setUp(self):
        require(self, test_docs.library(), "no library: set LEVERET_BUILD to a build folder")
        self.folder = temporary(self)

    def check(self, *command):
        code, printed, said = run(command, self.folder)
        self.assertEqual(code, 0, f"{shlex.join(map(str, command))}\n{printed}{said}")

    def project(self, name, text):
        folder = self.folder / name
        folder.mkdir()
        (folder / "leveret").symlink_to(ROOT)
        (folder / "main.cpp").write_text(MAIN, encoding="utf-8")
        (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
        return folder

    def test_blocks_of_cmake_configure_and_whole_projects_run(self):
        prefix = self.folder / "prefix"
        self.check("cmake", "--install", os.environ["LEVERET_BUILD"], "--prefix", prefix)
        whole = 0
        for number, block in enumerate(found("cmake")):
            is_whole = "cmake_minimum_required" in block.text
            text = block.text if is_whole else PROJECT + block.text
            folder = self.project(str(number), text)
            with self.subTest(block.place):
                found_in = f"-DCMAKE_PREFIX_PATH={prefix}"
                self.check("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", found_in)
                if is_whole:
                    whole += 1
                    self.check("cmake", "--build", folder / "build")
                    self.check(folder / "build" / "mine")
        self.assertGreater(whole, 0, "there is no whole project any more")


class CommandBlocks(unittest.TestCase):
    """Calls of `leveret` in blocks of shell; a trace they read is the example of the format."""

    def setUp(self):
        self.python, why = test_docs.interpreter()
        require(self, self.python, why)
        self.trace = next(b.text for b in found("json") if "traceEvents" in b.text)

    def test_calls_of_leveret_work(self):
        calls = [(block, words) for block in found("sh") for words in calls_of_leveret(block)]
        self.assertTrue(calls)
        for block, words in calls:
            folder = temporary(self)
            if words[0] == "trace":
                (folder / words[1]).write_text(self.trace, encoding="utf-8")
            with self.subTest(block.place):
                command = [self.python, "-m", "leveret", *words]
                code, printed, said = run(command, folder, test_docs.python_env())
                self.assertEqual(code, 0, f"leveret {shlex.join(words)}\n{printed}{said}")


if __name__ == "__main__":
    raise SystemExit(test_docs.main())
