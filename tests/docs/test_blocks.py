"""The tests of the documents themselves: each fault below must be seen."""

import textwrap
import unittest
from pathlib import Path

import blocks
import tables
import test_docs
import test_shown

PAGE = """\
See [there](there.md#part) and `[not](a-link.md)`.

```cpp
// fragment
runtime.submit(saxpy_procedure, 2.0f, x, y).wait();
```

1. A list:

   ```sh
   echo "${1:-}" # [no](link.md)
   ```

```python
print("one")
```
```output
one
```
```python
two = 2
```
"""


def block(text, language="cpp", output=None):
    return blocks.Block(Path("page.md"), 1, language, textwrap.dedent(text), output)


class Reading(unittest.TestCase):
    def setUp(self):
        self.page = blocks.parse(PAGE)

    def test_blocks_and_their_places(self):
        found = [(b.language, b.line) for b in self.page.blocks]
        self.assertEqual(found, [("cpp", 4), ("sh", 11), ("python", 15), ("python", 21)])
        self.assertEqual(self.page.blocks[1].text.split()[0], "echo")
        self.assertEqual(self.page.blocks[2].output, "one\n")

    def test_links(self):
        self.assertEqual(self.page.links, [(1, "there.md#part")])

    def test_a_definition_is_no_call(self):
        found = tables.definition("take")
        self.assertTrue(found.search("inline bool take(engine& e,\n  job& j) noexcept {\n"))
        self.assertFalse(found.search("  return take(e, j);\n  if (!take(e, j)) {\n"))
        self.assertFalse(found.search("// The bool take() gives {\nbool take(engine& e);\n"))

    def test_a_block_without_end(self):
        self.assertEqual(blocks.parse("a\n```cpp\nint x;\n").unclosed, 2)

    def test_a_script_keeps_the_lines_of_its_page(self):
        folder = Path(self.enterContext(test_docs.tempfile.TemporaryDirectory()))
        lines = blocks.script(self.page, folder).read_text().split("\n")
        self.assertEqual((lines[14], lines[20]), ('print("one")', "two = 2"))

    def test_tables(self):
        self.assertEqual(tables.rows("| a | b |\n|---|---|\n| `x` | 1\\|2 |\n"), [["`x`", "1|2"]])

    def test_names_of_tests(self):
        source = 'LEV_TEST(full_test, fails)\nTEST(a, b)\n// TEST(a, no)\n"text"\n'
        self.assertEqual(tables.tests_in(source, "tests/x/y_test.cpp"), {"fails", "b"})
        scenario = '.check<two<1>>("two")\n.plant("fault", "two")\n'
        self.assertEqual(tables.tests_in(scenario, "tests/model/x_model.cpp"), {"two"})
        self.assertEqual(
            tables.tests_in('("bell", "A=1", "says")', "cases.py"), {"bell", "A=1", "says"}
        )

    def test_numbers(self):
        self.assertEqual(tables.number("1u << 24"), 1 << 24)
        self.assertEqual(tables.number("50'000"), 50000)
        self.assertIsNone(tables.number("sizeof(int)"))


class Shown(unittest.TestCase):
    def test_calls_of_leveret(self):
        text = "cc -O2 x.c\nleveret trace 'a b.json'  # sums\nenv leveret info\nleveret info\n"
        calls = test_shown.calls_of_leveret(block(text, "sh"))
        self.assertEqual(calls, [["trace", "a b.json"], ["info"]])

    def test_json(self):
        self.assertEqual(test_shown.wrong_json(block('{"a": 1}\n', "json")), "")
        self.assertIn("page.md:1", test_shown.wrong_json(block('{"a": 1,}\n', "json")))


class Compiling(unittest.TestCase):
    def setUp(self):
        test_docs.require(self, test_docs.library(), "no library: set LEVERET_BUILD")

    def check(self, *words, **options):
        return test_docs.check_block(block(*words, **options))

    def test_good_blocks(self):
        self.assertEqual(self.check("// fragment\nruntime.submit(nothing).wait();\n"), "")
        self.assertEqual(self.check("// declarations\nstruct where { lev::runtime* r; };\n"), "")
        program = '#include <cstdio>\nint main() { std::puts("1"); }\n'
        self.assertEqual(self.check(program, output="1\n"), "")
        self.assertEqual(self.check("int twice(int x) { return 2 * x; }\n", "c"), "")

    def test_a_call_that_does_not_compile(self):
        wrong = self.check("// fragment\nruntime.submit(saxpy_procedure, 2.0f, x).wait();\n")
        self.assertIn("page.md:2", wrong)

    def test_a_block_that_does_not_say_what_it_is(self):
        self.assertIn("// fragment", self.check("int x = 1;\n"))

    def test_a_program_that_fails(self):
        self.assertIn("exit status 3", self.check("int main() { return 3; }\n"))

    def test_a_program_that_prints_something_else(self):
        program = '#include <cstdio>\nint main() { std::puts("1"); }\n'
        self.assertIn("where the page says", self.check(program, output="2\n"))

    def test_c_that_does_not_compile(self):
        self.assertNotEqual(self.check("int twice(int x) { return x }\n", "c"), "")


if __name__ == "__main__":
    raise SystemExit(test_docs.main())
