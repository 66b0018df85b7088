"""Tests of tools/tidy: every rule finds its planted fault, only that, and passes the mended file.

Run with: python3 -m unittest discover tests/tidy. Each case is one file in a small temporary tree;
banned words are put together from halves so that tidy does not find them in this file.
"""

import fnmatch
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tidy_rules import check
from tidy_rules.layering import ROOMS
from tidy_rules.lengths import cpp_functions
from tidy_rules.memory import atomic_declarations
from tidy_rules.source import SourceFile, Tree

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".hpp", ".cpp", ".S")
WORK, NAP = "wo" + "rk", "sleep" + "_for"
HEAD = "// What this file is for, told in one sentence.\n"
PYTHON_HEAD = '"""What this file is for, told in one sentence."""\n'
BUILD = "file(GLOB_RECURSE sources *.cpp)\n"
CLEAN = {
    "src/CMakeLists.txt": BUILD,
    "apps/CMakeLists.txt": "add_executable(lu lu/lu.cpp)\n",
    "tests/CMakeLists.txt": 'leveret_test(unit/ring_test)\nfile(GLOB more "unit/more_*.cpp")\n',
    "src/base/assert.hpp": HEAD,
    "src/sync/gate.hpp": HEAD + "#include <atomic>\n",
    "src/sync/gate.cpp": HEAD + "void swing() noexcept {\n}\n",
    "src/sync/hook.cpp": HEAD + "namespace {\nint creaks = 0;\nbool oil(int drops) {\n}\n}\n",
    "src/sync/key.hpp": HEAD + '#include "sync/x.hpp"\n',
    "src/sync/latch.cpp": HEAD + "namespace {\nbool oil(char grade) {\n}\n}\n",
    "src/runtime/open.hpp": HEAD,
    "src/machines/sim/clock.hpp": HEAD,
    "src/machines/threads/start.hpp": HEAD,
    "include/leveret/task.hpp": HEAD + "#include <cstdint>\n",
    "apps/lu/lu.hpp": HEAD,
    "apps/include/leveret_apps/lu.hpp": HEAD + '#include "lu/lu.hpp"\n',
    "tests/unit/ring_test.cpp": HEAD,
    "tests/package/CMakeLists.txt": "add_executable(a ../main.cpp ${folder}/b.cpp)\n",
    "tests/main.cpp": HEAD,
    "tests/package/inner/b.cpp": HEAD,
    "tests/unit/more_rings.cpp": HEAD,
}
FIELD = "struct s {\n  // Written by the owner;\n  // read by thieves.\n"
BARE_FIELD = "struct s {\n  // Counts the threads.\n"
ATOMIC = "  std::atomic<int> x;\n};"
OF_ENV = "  alignas(64)\n  typename Env::template atomic<int> x[4];\n};"
NESTED = "  std::unique_ptr<atomic<int>[]> x;\n};"
BESIDE = "struct s {\n  int y;\n  atomic<int> x{0};"
ALIASED = "using word = typename Env::template atomic<int>;\nstruct s { word w{}; };"
ORDER_ALIAS = "constexpr auto acquire = std::memory_order_acquire;"
FAR = "// Pairs with take().\n\n\n\n{}int y = x.load(acquire);"
IN_LEV = "namespace lev {{\n{}}}"
SCRIPT = "#!/bin/sh\n# What this script is for, in a sentence.\n"
OFF = "TEST(a, DISABLED_b) {}"
ORDER = "// Pairs with take().\nint f() { return x.load(acquire); }\n"


def body(lines):
    """A C++ function of so many lines, with a brace initialiser and a lambda in it."""
    return "void long_one() {\n  int a{1};\n" + "  auto f = [] { g(); };\n" * (lines - 3) + "}\n"


def room(assertions):
    """A header of 200 lines of code, so many of them assertions."""
    plain = "int x;  // Not a LEV_ASSERT(x) here.\n" * (200 - assertions)
    return "LEV_DCHECK(x);\n" * (assertions - 2) + "static_assert(x);\nLEV_ASSERT(x);\n" + plain


def python_body(lines):
    return "\n\ndef long_one():\n" + "    f()\n" * (lines - 1)


# (rule, line of the fault, path, faulty text, mended text); C++ texts get HEAD as their line 1.
CASES = [
    ("layering", 2, "src/base/x.hpp", '#include "sync/gate.hpp"', '#include "base/assert.hpp"'),
    ("layering", 2, "src/sync/x.hpp", '#include "gate.hpp"', '#include "sync/gate.hpp"'),
    ("layering", 2, "src/sync/x.hpp", '#include "../base/assert.hpp"', ""),
    ("layering", 2, "src/sync/x.hpp", '#include "cellar/x.hpp"', ""),
    ("layering", 2, "src/sync/x.hpp", '#include "leveret/task.hpp"', "#include <leveret/task.hpp>"),
    ("layering", 2, "src/worker/x.hpp", "#include <leveret/runtime.hpp>", ""),
    ("layering", 2, "src/sync/x.hpp", "#include <base/assert.hpp>", '#include "base/assert.hpp"'),
    ("layering", 2, "src/context/x.hpp", '#include "sync/gate.hpp"', '#include "base/assert.hpp"'),
    ("layering", 2, "src/machines/sim/x.hpp", '#include "machines/threads/start.hpp"', ""),
    ("layering", 2, "src/machines/sim/x.hpp", '#include "runtime/open.hpp"', ""),
    ("layering", 2, "src/runtime/x.hpp", '#include "machines/sim/clock.hpp"', ""),
    ("layering", 2, "include/leveret/x.hpp", '#include "base/assert.hpp"', "#include <vector>"),
    ("layering", 2, "include/leveret/x.hpp", "#include <sys/mman.h>", "#include <cstdint>"),
    ("layering", 2, "include/leveret/x.hpp", "#include <immintrin.h>", ""),
    ("layering", 2, "apps/lu/x.hpp", '#include "base/assert.hpp"', '#include "lu.hpp"'),
    (
        "layering",
        2,
        "apps/x.hpp",
        '#include "src/base/assert.hpp"',
        '#include "leveret_apps/lu.hpp"',
    ),
    ("layering", 2, "apps/lu/x.hpp", "#include <base/assert.hpp>", "#include <leveret/task.hpp>"),
    ("layering", 2, "bench/peers/x.hpp", '#include "sync/gate.hpp"', "#include <thread>"),
    ("layering", 2, "python/src/x.hpp", '#include "base/assert.hpp"', "#include <nanobind/a.h>"),
    ("layering", 2, "examples/x.hpp", '#include "../src/base/assert.hpp"', ""),
    ("layering", 1, "src/loose.hpp", "int x;", None),
    ("seam", 2, "src/queue/x.hpp", "#include <mutex>", '#include "sync/gate.hpp"'),
    ("seam", 3, "src/queue/x.hpp", "\nstd::mutex m;", "// std::mutex\n"),
    ("seam", 2, "src/flow/x.hpp", "std::thread t(f);", 'auto text = "std::thread";'),
    ("seam", 2, "src/flow/x.hpp", "auto a = std::atomic_ref(b);", "auto a = Env::fence();"),
    ("seam", 2, "src/flow/x.hpp", "syscall(SYS_membarrier);", "Env::futex_wait(word);"),
    ("seam", 2, "src/flow/x.hpp", "futex(&word);", "env.futex(word);"),
    ("atomic-comment", 4, "src/sync/x.hpp", BARE_FIELD + ATOMIC, FIELD + ATOMIC),
    (
        "atomic-comment",
        4,
        "src/sync/x.hpp",
        BESIDE + "\n};",
        BESIDE + "  // written by a, read by b\n};",
    ),
    ("atomic-comment", 5, "src/queue/x.hpp", BARE_FIELD + OF_ENV, FIELD + OF_ENV),
    ("atomic-comment", 4, "src/queue/x.hpp", BARE_FIELD + NESTED, FIELD + NESTED),
    (
        "atomic-comment",
        3,
        "src/queue/x.hpp",
        ALIASED,
        "void f(atomic<int>& x, span<atomic<int>> y);",
    ),
    ("atomic-comment", 3, "include/leveret/x.hpp", "class c {\n private: atomic_flag f;\n};", None),
    ("pairs-with", 2, "src/queue/x.hpp", "int f() { return x.load(acquire); }", ORDER),
    ("pairs-with", 7, "src/queue/x.hpp", FAR.format("\n"), FAR.format("")),
    ("pairs-with", 2, "src/sync/x.hpp", "x.load(std::memory_order_seq_cst);", ORDER_ALIAS),
    (
        "pairs-with",
        2,
        "src/sync/x.hpp",
        "bool y = x.load(memory_order::acquire) == 1;",
        "x.store(1, relaxed);\nvoid release();",
    ),
    (
        "pairs-with",
        3,
        "src/queue/x.hpp",
        "x.compare_exchange_strong(a, b,\n    acq_rel, relaxed);",
        "// x.load(acquire).",
    ),
    ("function-length", 2, "src/base/x.hpp", body(71), body(70)),
    ("function-length", 3, "src/base/x.hpp", IN_LEV.format(body(71)), IN_LEV.format(body(70))),
    ("function-length", 4, "tools/x.py", python_body(71), python_body(70)),
    ("file-length", 401, "src/base/x.hpp", "int x;\n" * 400, "int x;\n" * 399),
    ("file-length", 501, "src/base/x.cpp", "int x;\n" * 500, "int x;\n" * 499),
    ("file-length", 121, "examples/x.hpp", "int x;\n" * 120, "int x;\n" * 119),
    ("file-length", 201, "README.md", "word\n" * 201, "word\n" * 200),
    ("columns", 2, "src/base/x.hpp", "// " + "a" * 98, "// " + "a" * 97),
    ("columns", 3, "tools/x.sh", SCRIPT + "# " + "a" * 99, None),
    ("leftover", 2, "src/base/x.hpp", "// TO" + "DO: mend.", "// Mended."),
    ("leftover", 1, "docs/x.md", "FIX" + "ME", "mktemp -t XXXXXX"),
    ("leftover", 2, "src/base/x.hpp", "f();  // NO" + "LINT", "f();"),
    ("own-path", 1, "docs/x.md", f"see /{WORK}/notes", f"see build/{WORK}/notes, /{WORK}"),
    ("skip-reason", 2, "tests/unit/x.hpp", "GTEST_SKIP()" + ";", 'GTEST_SKIP() << "no GPU";'),
    ("skip-reason", 3, "tests/unit/x.hpp", "\n" + OFF, "// Off: needs two hosts.\n" + OFF),
    (
        "skip-reason",
        2,
        "python/tests/x.py",
        "@pytest.mark.sk" + "ip\ndef f(): pass",
        '@pytest.mark.skip(reason="no GPU")\ndef f(): pass',
    ),
    ("sleep", 2, "tests/unit/x.hpp", f"std::this_thread::{NAP}(1ms);", f"// No {NAP} here."),
    ("sleep", 2, "python/tests/x.py", "time.sl" + "eep(1)", "event.wait()"),
    ("dead-code", 2, "src/base/x.hpp", "// x = f(y);", "//   x = f(y);"),
    ("dead-code", 2, "src/base/x.hpp", "// if (x) {", "// f() opens; g() says that no more come;"),
    ("white-space", 2, "src/base/x.hpp", "int x; ", "int x;"),
    ("cited-file", 2, "src/base/x.hpp", "// See base/ring.md.", "// See unit/ring_test.cpp."),
    ("cited-file", 1, "docs/x.md", "In `src/gone.cpp`.", "In `src/sync/gate.hpp`, not <sys/x.h>."),
    ("white-space", 2, "src/base/x.hpp", "\tint x;", "  int x;"),
    ("white-space", 2, "src/base/x.hpp", "int x;\r", "int x;"),
    ("locale", 2, "src/base/x.hpp", "auto x = std::strtod(a, &b);", "auto x = std::strtol(a, &b);"),
    ("locale", 2, "python/src/x.hpp", "if (isalnum (c)) f();", "bool isalnum_ = is_letter(c);"),
    ("locale", 2, "src/base/x.hpp", 'printf("%.*g", 3, x);', 'printf("100%% for %s", x);'),
    ("locale", 2, "include/leveret/x.hpp", "#include <sstream>", "#include <charconv>"),
    ("file-size", 1, "docs/x.bin", "x" * (1 << 20), "x" * 1000 + "\n"),
    ("prototype", 2, "src/sync/x.cpp", "int f(int x);", "namespace {\nint f(int x);\n}"),
    ("prototype", 2, "src/sync/x.hpp", "void swing() noexcept;", "inline void swing() {}"),
    ("prototype", 2, "src/sync/x.hpp", "[[gnu::noinline, gnu::cold]] void swing();", None),
    ("include-circle", 2, "src/sync/x.hpp", '#include "sync/key.hpp"', '#include "sync/gate.hpp"'),
    ("assertions", 1, "src/flow/x.hpp", room(3), room(4)),
    ("assertions", 1, "src/machines/processes/x.hpp", room(2), room(4)),
    ("own-name", 3, "src/sync/lid.cpp", "namespace {\nint creaks = 1;\n}\n", None),
    ("own-name", 3, "src/sync/lid.cpp", "namespace {\nbool oil(int much) {\n}\n}", None),
    ("dead-source", 1, "apps/lu/other.cpp", "int x;", None),
    ("dead-source", 1, "tests/unit/other.cpp", "int x;", None),
    ("syntax", 2, "tools/x.py", "def f(:", "def f():\n    return 1"),
]


class TidyTest(unittest.TestCase):
    """Plants files into a temporary tree and looks at what check() says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for path, text in CLEAN.items():
            self.plant(path, text)

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        if text.startswith("#!"):
            file.chmod(0o755)
        return file

    def faults(self):
        return [(f.rule, f.path, f.line) for f in check(Tree(self.root))]

    def test_clean_tree_is_clean(self):
        self.assertEqual(self.faults(), [])

    def faults_with(self, path, text):
        file = self.plant(path, text)
        try:
            return self.faults()
        finally:
            file.unlink()

    def test_every_rule_finds_its_fault_and_passes_the_mended_file(self):
        for rule, line, path, bad, good in CASES:
            head = {".hpp": HEAD, ".cpp": HEAD, ".py": PYTHON_HEAD}.get(Path(path).suffix, "")
            with self.subTest(rule=rule, bad=textwrap.shorten(bad, 60)):
                end = "" if bad.endswith("\n") else "\n"
                found = self.faults_with(path, head + bad + end)
                self.assertEqual(found, [(rule, path, line)])
            with self.subTest(rule=rule, good=textwrap.shorten(good or "", 60)):
                if good is not None:
                    found = self.faults_with(path, (head + good).rstrip("\n") + "\n")
                    self.assertEqual(found, [])

    def test_names_of_one_test_program(self):
        name = "\nnamespace {\nint creaks = 1;\n}\n"
        for path in ("tests/fault/lid_test.cpp", "tests/fault/pot_test.cpp"):
            self.plant(path, HEAD + name)
        programs = (
            "leveret_test(one fault\n  lid_test.cpp)\nleveret_test(two fault\n  pot_test.cpp)\n"
        )
        self.plant("tests/fault/CMakeLists.txt", programs)
        self.assertEqual(self.faults(), [])
        together = "leveret_test(one fault\n  lid_test.cpp\n  pot_test.cpp)\n"
        self.plant("tests/fault/CMakeLists.txt", together)
        self.assertEqual(self.faults(), [("own-name", "tests/fault/pot_test.cpp", 4)])

    def test_every_rule_has_a_case(self):
        tested = {case[0] for case in CASES} | {"file-head", "file-mode"}
        text = "".join(path.read_text() for path in (ROOT / "tools/tidy_rules").glob("*.py"))
        self.assertEqual(set(re.findall(r'(?:\bfault|_in_lines)\([^"]*?"([a-z-]+)"', text)), tested)

    def test_the_map_of_rooms_is_the_one_that_is_enforced(self):
        text = (ROOT / "ARCHITECTURE.md").read_text()
        rooms = re.findall(r"^\| src/(\w+)/", text, re.MULTILINE)
        self.assertEqual(rooms, ROOMS)
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(ROOMS))
        lone = [room for room in ROOMS if not list((ROOT / "src" / room).rglob("README.md"))]
        self.assertEqual(lone, [], "rooms without a README")

    def test_the_readme_of_a_room_names_its_files(self):
        for readme in sorted((ROOT / "src").rglob("README.md")):
            text = readme.read_text(encoding="utf-8").replace("CPU", "*")
            said = [a or b for a, b in re.findall(r"`([\w*]+)(?:\.[\w*]+)+`|`(\w+\*)`", text)]
            sources = [path for path in readme.parent.iterdir() if path.suffix in SOURCES]
            for stem in sorted({path.stem for path in sources}):
                with self.subTest(f"{readme.parent.name}: {stem}"):
                    self.assertTrue(any(fnmatch.fnmatch(stem, name) for name in said))

    def test_files_that_the_readme_of_a_room_names_are_there(self):
        elsewhere = [ROOT / "src", ROOT / "tests/model", ROOT]
        for readme in sorted((ROOT / "src").rglob("README.md")):
            text = readme.read_text(encoding="utf-8").replace("CPU", "*")
            for name in re.findall(r"`((?:[\w*]+/)*[\w*]+\.(?:hpp|cpp|S|toml|\*))`", text):
                with self.subTest(f"{readme.parent.name}: {name}"):
                    folders = [readme.parent, *elsewhere]
                    self.assertTrue(any(list(folder.glob(name)) for folder in folders))

    def test_file_head(self):
        cases = [
            ("src/base/x.hpp", "#pragma once\nint x;\n", "#pragma once\n" + HEAD),
            ("src/base/x.hpp", "// SPDX-License-Identifier: Apache-2.0\nint x;\n", HEAD),
            ("src/base/x.hpp", "// Short.\n", "/* What this file is for, in a sentence. */\n"),
            ("tools/x.py", "x = 1\n", PYTHON_HEAD),
            ("python/leveret/__init__.py", "x = 1\n", ""),
            ("tools/x", "#!/bin/sh\ntrue\n", SCRIPT),
        ]
        for path, bad, good in cases:
            with self.subTest(path=path, bad=bad):
                self.assertEqual(self.faults_with(path, bad), [("file-head", path, 1)])
                self.assertEqual(self.faults_with(path, good), [])

    def test_file_mode(self):
        script = self.plant("tools/x.sh", SCRIPT)
        script.chmod(0o644)
        self.assertEqual(self.faults(), [("file-mode", "tools/x.sh", 1)])
        script.chmod(0o755)
        self.assertEqual(self.faults(), [])
        header = self.plant("src/base/x.hpp", HEAD)
        header.chmod(0o755)
        self.assertEqual(self.faults(), [("file-mode", "src/base/x.hpp", 1)])

    def test_final_newline_and_empty_end(self):
        file = self.plant("src/base/x.hpp", HEAD + "int x;")
        self.assertEqual(self.faults(), [("white-space", "src/base/x.hpp", 2)])
        file.write_text(HEAD + "int x;\n\n")
        self.assertEqual(self.faults(), [("white-space", "src/base/x.hpp", 3)])

    def test_git_tells_the_files(self):
        self.plant(".gitignore", "/junk/\n")
        self.plant("junk/x.hpp", "\tint x;\n")
        if shutil.which("git") is None:
            self.skipTest("no git here")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.plant("src/base/new.hpp", HEAD + "\tint x;\n")
        self.assertEqual(self.faults(), [("white-space", "src/base/new.hpp", 2)])

    def test_command_prints_the_place_and_exits_1(self):
        self.plant("src/base/x.hpp", HEAD + "int x; \n")
        command = [sys.executable, str(ROOT / "tools/tidy"), "--root", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("src/base/x.hpp:2: white-space: ", done.stdout)
        (self.root / "src/base/x.hpp").unlink()
        self.assertEqual(subprocess.run(command, capture_output=True, check=False).returncode, 0)


class ReadingCodeTest(unittest.TestCase):
    """The two places where tidy reads C++ rather than lines."""

    def file(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "x.hpp").write_text(text)
        return SourceFile(folder.name, "x.hpp")

    def test_functions_are_found(self):
        file = self.file(
            'extern "C" {\n'
            "template <class T> requires(sizeof(T) > 1) struct alignas(64) box : base<int> {\n"
            "  explicit box(int a) : a_{a}, b_{1, 2} {\n  }\n"
            "  ~box() { if (a_) { for (;;) {} } }\n"
            "  bool operator()(int x) const noexcept {\n    return [=] { return x; }();\n  }\n"
            "  int a_{0}, c_ = f({1});\n};\n}\n"
            "enum class e { a, b };\n"
            "const char* text = R\"x({ \" { )x\"; char c = '{'; int n = 1'000;\n"
            "#define OPEN(x) void x() { \\\n  {\n"
            "#ifdef A\nvoid one(int x) {\n#else\nvoid one(long x) {\n#endif\n  f();\n}\n"
            "TEST(suite, name) {\n}\n"
        )
        found = [(line, length, name) for line, length, name in cpp_functions(file)]
        expected = [(3, 2, "box"), (5, 1, "~box"), (6, 3, "operator"), (19, 4, "one")]
        self.assertEqual(found, [*expected, (23, 2, "TEST")])

    def test_atomic_declarations_are_found(self):
        code = (
            "atomic<int> a; std::atomic<std::pair<int, int>> b{{}}; static atomic<int> c = 1;\n"
            "std::array<std::atomic<int>, 4> d; std::atomic_flag e; atomic<int> f(1), g;\n"
            "void h(atomic<int>& i, atomic<int>* j, span<const atomic<int>> k);\n"
            "using word = atomic<int>; template <class T> using atomic = std::atomic<T>;\n"
            "std::unique_ptr<atomic<int>[]> l; unique_ptr<atomic<int>[]> make(int); word m;\n"
        )
        names = [name for _, _, name in atomic_declarations(code)]
        self.assertEqual(names, ["a", "b", "c", "d", "e", "f", "l", "m"])


if __name__ == "__main__":
    unittest.main()
