"""The documents do what they say: code is compiled and run, links lead somewhere, tables agree.

    python3 tests/docs/test_docs.py [CppBlocks ...]

Environment: LEVERET_BUILD (a build folder) or LEVERET_LIBRARY and LEVERET_INCLUDE, CXX, CC,
LEVERET_CXXFLAGS (for a library with sanitizers), LEVERET_PYTHON (an interpreter with the package;
without it a build folder with LEVERET_PYTHON=ON does). What is missing skips its tests and says so;
with LEVERET_DOCS_STRICT=1 it fails them. Exit status 77: everything was skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import blocks
import tables

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 120
LANGUAGES = {"cpp", "c", "python", "sh", "cmake", "text", "json"}
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-but-set-variable")


def setting(name, default=""):
    return os.environ.get(name) or default


@cache
def library():
    """The library to link with, or None."""
    build = Path(setting("LEVERET_BUILD", "nowhere"))
    named = [Path(setting("LEVERET_LIBRARY", "nowhere"))]
    found = [*named, build / "src/libleveret.a", build / "src/libleveret.so"]
    return next((path.absolute() for path in found if path.is_file()), None)


def include():
    return str(Path(setting("LEVERET_INCLUDE", str(ROOT / "include"))).absolute())


def require(test, there, what):
    """Skips the test, or fails it when everything must be there."""
    if there:
        return
    if setting("LEVERET_DOCS_STRICT") == "1":
        test.fail(f"{what} (LEVERET_DOCS_STRICT=1)")
    test.skipTest(what)


def run(command, folder, env=None):
    """(exit status, what it printed, what it said) of a command; 124 when it took too long."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"not done after {SECONDS_MAX} s"
    return done.returncode, done.stdout, done.stderr


def compiler(language):
    """Words that compile a file of a language."""
    if language == "c":
        return [setting("CC", "cc"), "-std=c11", "-pedantic"]
    return [setting("CXX", "c++"), "-std=c++20", *setting("LEVERET_CXXFLAGS").split()]


@cache
def precompiled():
    """A folder with what most blocks of C++ include first: GCC looks for X.gch before X."""
    folder = Path(tempfile.mkdtemp(prefix="leveret-docs-precompiled-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    (folder / "leveret").mkdir()
    header, made = "leveret/leveret.hpp", folder / "leveret/leveret.hpp.gch"
    words = [*compiler("cpp"), *WARNINGS, "-I", include(), "-x", "c++-header"]
    code, _, said = run([*words, Path(include()) / header, "-o", made], folder)
    if code != 0:
        raise AssertionError(said)
    return folder


def compile_and_run(block, folder):
    """What is wrong with a block of C or C++, or an empty string."""
    unit = blocks.translation_unit(block)
    if unit is None:
        return "begin it with // fragment or // declarations, or make it a program with main"
    source = folder / f"block.{block.language}"
    source.write_text(unit, encoding="utf-8")
    flags = ["-I", include(), "-I", folder, *WARNINGS]
    if block.language == "cpp":
        flags = ["-I", precompiled(), *flags]
    words = [*compiler(block.language), *flags, "-c", source, "-o", folder / "block.o"]
    code, _, said = run(words, folder)
    if code != 0 or not block.is_program:
        return said if code != 0 else ""
    link = [*compiler("cpp"), folder / "block.o", library(), "-pthread", "-o", folder / "block"]
    code, _, said = run(link, folder)
    if code != 0:
        return said
    code, printed, said = run([folder / "block"], folder)
    if code != 0:
        return f"exit status {code}\n{printed}{said}"
    if block.output is not None and printed != block.output:
        return f"it printed\n{printed}where the page says\n{block.output}"
    return ""


def check_block(block):
    with tempfile.TemporaryDirectory(prefix="leveret-docs-") as folder:
        return compile_and_run(block, Path(folder))


class Native(unittest.TestCase):
    """Shared by the tests of C++ and C; has no tests of its own."""

    def check_language(self, language):
        found = [
            block
            for page in blocks.pages(ROOT)
            for block in page.of(language)
            if not block.is_for_mpi
        ]
        self.assertTrue(found, f"there is no block of {language} any more")
        require(self, library(), "no library: set LEVERET_BUILD to a build folder")
        if language == "cpp":
            precompiled()
        with ThreadPoolExecutor(min(2, len(os.sched_getaffinity(0)))) as pool:
            for block, wrong in zip(found, pool.map(check_block, found), strict=True):
                with self.subTest(block.place):
                    if wrong:
                        self.fail(f"{block.place}\n{wrong}")


class CppBlocks(Native):
    def test_blocks_of_cpp_compile_and_programs_run(self):
        self.check_language("cpp")


class CBlocks(Native):
    def test_blocks_of_c_compile_and_programs_run(self):
        self.check_language("c")


@cache
def python_path():
    """A folder with the package out of a build folder with LEVERET_PYTHON=ON; "" without one."""
    built = sorted(Path(setting("LEVERET_BUILD", "nowhere")).glob("python/_core*.so"))
    if not built:
        return ""
    folder = Path(tempfile.mkdtemp(prefix="leveret-docs-package-"))
    package = folder / "leveret"
    package.mkdir()
    unittest.addModuleCleanup(shutil.rmtree, folder)
    for path in [*(ROOT / "python/leveret").iterdir(), built[-1]]:
        (package / path.name).symlink_to(path)
    return str(folder)


@cache
def interpreter():
    """(words that start a Python with the package, "") or (None, why not)."""
    python = setting("LEVERET_PYTHON") or setting("LEVERET_DOCS_PYTHON", sys.executable)
    if "/" in python:  # the working folder is another one where it is started
        python = str(Path(python).absolute())
    code, _, said = run([python, "-c", "import leveret"], ROOT / "docs", python_env())
    last = said.strip().split("\n")[-1]
    return (python, "") if code == 0 else (None, f"{python} cannot import leveret: {last}")


def python_env():
    paths = [python_path(), setting("PYTHONPATH")]
    path = os.pathsep.join(path for path in paths if path)
    return {"PYTHONPATH": path, "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}


def make_libraries(page, folder):
    """The C and C++ files that a page names, each compiled into a shared library beside it."""
    for block in page.of("c", "cpp"):
        if block.file_name is None or block.is_program:
            continue
        path = folder / block.file_name
        path.write_text(block.text, encoding="utf-8")
        words = [*compiler(block.language), "-O2", "-shared", "-fPIC", "-I", include(), path]
        code, _, said = run([*words, "-o", path.with_suffix(".so"), "-lm"], folder)
        if code != 0:
            return said
    return ""


class PythonBlocks(unittest.TestCase):
    def setUp(self):
        pages = [page for page in blocks.pages(ROOT) if page.of("python")]
        self.pages = [page for page in pages if not page.python_is_for_mpi]

    def test_blocks_of_python_run(self):
        python, why = interpreter()
        require(self, python, why)
        for page in self.pages:
            with (
                self.subTest(str(page.path)),
                tempfile.TemporaryDirectory(prefix="leveret-docs-") as name,
            ):
                folder = Path(name)
                self.assertEqual(make_libraries(page, folder), "")
                words = [python, "-W", "error", blocks.script(page, folder)]
                code, printed, said = run(words, folder, python_env())
                self.assertEqual(code, 0, f"{page.path}\n{printed}{said}")

    def test_the_command_line_is_as_written(self):
        python, why = interpreter()
        require(self, python, why)
        for command, written in tables.command_options(ROOT).items():
            with self.subTest(command):
                words = [python, "-m", "leveret", command, "--help"]
                env = python_env() | {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
                code, printed, said = run(words, ROOT / "docs", env)
                self.assertEqual(code, 0, said)
                self.assertEqual(written, tables.options_of_help(printed), f"leveret {command}")


class ShellBlocks(unittest.TestCase):
    def test_blocks_of_shell_parse(self):
        for page in blocks.pages(ROOT):
            for block in page.of("sh"):
                with self.subTest(block.place):
                    done = subprocess.run(
                        ["bash", "-n"],
                        input=block.text,
                        capture_output=True,
                        text=True,
                        timeout=SECONDS_MAX,
                        check=False,
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)


class Pages(unittest.TestCase):
    def test_every_block_has_a_language_that_is_tested(self):
        for page in blocks.pages(ROOT):
            self.assertEqual(page.unclosed, 0, f"{page.path}: a block has no end")
            for block in page.blocks:
                self.assertIn(block.language, LANGUAGES, block.place)

    def test_blocks_of_python_parse(self):
        for page in blocks.pages(ROOT):
            for block in page.of("python"):
                with self.subTest(block.place):
                    compile(block.text, block.place, "exec")

    def test_relative_links_exist(self):
        for page in blocks.all_pages(ROOT):
            for line, link in page.links:
                target = link.split("#")[0]
                if "://" in link or link.startswith("mailto:") or not target:
                    continue
                with self.subTest(f"{page.path}:{line}"):
                    there = (ROOT / page.path).parent / target
                    self.assertTrue(there.exists(), f"{page.path}:{line}: no {target}")

    def test_every_document_is_in_the_map(self):
        index = blocks.read(ROOT, Path("docs/README.md"))
        linked = {os.path.normpath(Path("docs") / link.split("#")[0]) for _, link in index.links}
        for page in blocks.pages(ROOT):
            if page.path.parts[0] == "docs" and page.path.name != "README.md":
                self.assertIn(str(page.path), linked, "docs/README.md does not lead to it")


def main():
    result = unittest.main(exit=False, verbosity=2).result
    for _, why in result.skipped:
        print(f"skipped: {why}")
    if not result.wasSuccessful():
        return 1
    return 77 if result.testsRun and len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
