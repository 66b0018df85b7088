"""Tests of tools/site: what it makes of headers, and which links it finds broken."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from site_parts import links, pages, reference
from tidy_rules.source import Tree

ROOT = Path(__file__).resolve().parents[2]
HEADER = """// Boxes: what holds things.
#ifndef LEVERET_BOX_HPP
#define LEVERET_BOX_HPP
#include <cstdint>

namespace lev {

// How a box is closed.
enum class lid : std::uint8_t {
  open,  // not at all
};

namespace detail {
// Nobody's business.
struct hidden {};
}  // namespace detail

// A box. `size_` is *never* 0.
//   box b(3);
class box {
 public:
  explicit box(int size) noexcept : size_(size) {}
  ~box();

  // put() keeps a thing.
  bool put(int thing = 0) {
    if (thing == 0) return false;
    return true;
  }

 private:
  // Its own.
  int size_;
};

// Makes one.
box make(const char* name = "}");

}  // namespace lev

#endif
"""


class ReferenceTest(unittest.TestCase):
    def setUp(self):
        self.page = reference.page("leveret/box.hpp", HEADER)

    def test_comments_are_text_and_declarations_code(self):
        self.assertTrue(
            self.page.startswith("# `<leveret/box.hpp>`\n\nBoxes: what holds things.\n")
        )
        self.assertIn(
            "How a box is closed.\n\n```cpp\nenum class lid : std::uint8_t {\n", self.page
        )
        self.assertIn("put() keeps a thing.\n\n```cpp\nbool put(int thing = 0);\n```", self.page)
        self.assertIn("A box. `size_` is \\*never\\* 0.\n\n```text\n  box b(3);\n```", self.page)
        self.assertIn('Makes one.\n\n```cpp\nbox make(const char* name = "}");\n```', self.page)

    def test_what_has_no_comment_stays_together(self):
        self.assertIn("```cpp\nexplicit box(int size) noexcept;\n~box();\n```", self.page)

    def test_what_is_private_is_left_out(self):
        for word in ("hidden", "Nobody", "Its own", "size_;", "return"):
            self.assertNotIn(word, self.page)

    def test_each_public_header_has_its_classes(self):
        for header in sorted((ROOT / "include/leveret").glob("*.hpp")):
            with self.subTest(header.name):
                page = reference.page(f"leveret/{header.name}", header.read_text())
                self.assertEqual(page.count("```") % 2, 0)
                self.assertNotIn("private:", page)
        page = reference.page(
            "leveret/ticket.hpp", (ROOT / "include/leveret/ticket.hpp").read_text()
        )
        for words in ("## class `ticket`", "status cancel() noexcept;", "outcome wait_all("):
            self.assertIn(words, page)


class PagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        pages.write(self.root / path, text)

    def test_links_lead_to_copies_and_to_lists_of_folders(self):
        self.write(
            "tree/docs/a.md", "[b](b.md) [code](../src/x.cpp) [all](../src/) [web](https://x.y)"
        )
        self.write("tree/docs/b.md", "b")
        self.write("tree/src/x.cpp", "int x;")
        self.write("tree/include/leveret/box.hpp", HEADER)
        tree, out = Tree(self.root / "tree"), self.root / "out"
        made = pages.gather(tree, out)
        pages.copy_linked(tree, out)
        self.assertIn("reference/leveret/box.md", made)
        self.assertIn("[all](../src/folder.md)", (out / "docs/a.md").read_text())
        self.assertEqual((out / "src/folder.md").read_text(), "# src/\n\n- [x.cpp](x.cpp)\n")
        self.assertEqual((out / "src/x.cpp").read_text(), "int x;")

    def test_broken_links_are_found(self):
        self.write("site/index.html", '<a href="a/b.html#here">1</a> <a href="https://x.y/z">2</a>')
        self.write(
            "site/a/b.html", '<p id="here"></p><a href="../gone.html"></a><a href="#no"></a>'
        )
        found = [(page, link) for page, link, _ in links.broken_links(self.root / "site")]
        self.assertEqual(found, [("a/b.html", "../gone.html"), ("a/b.html", "#no")])


if __name__ == "__main__":
    unittest.main()
