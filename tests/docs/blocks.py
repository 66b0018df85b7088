"""Code blocks and links of Markdown pages, and what a fragment of C++ is wrapped into.

A block's language says what happens to it (see README.md beside this file). Line numbers are those
of the page, so that a compiler's or interpreter's message leads to the place to mend.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,})(?P<info>[^`]*)$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"^(?://|/\*) (\w+\.(?:c|cpp|hpp|h))(?: \*/)?$")
SKIPPED = {".git", ".venv", "build", "out", "dist", "node_modules"}

# What a `// fragment` may use besides the public headers.
PRELUDE = """\
#include <leveret/leveret.hpp>
#include <leveret/coroutine.hpp>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
"""
NAMES = """\
inline void fragment([[maybe_unused]] lev::runtime& runtime,
    [[maybe_unused]] lev::procedure<void(float, lev::in<float>, lev::inout<float>)> saxpy_procedure,
    [[maybe_unused]] lev::procedure<void()> nothing,
    [[maybe_unused]] std::vector<float>& x, [[maybe_unused]] std::vector<float>& y) {
"""


@dataclass(frozen=True)
class Block:
    """One fenced block. line: of its first line of text. output: what its program prints."""

    page: Path
    line: int
    language: str
    text: str
    output: str | None = None

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def first_line(self):
        return self.text.split("\n", 1)[0].strip()

    @property
    def is_program(self):
        return re.search(r"^int main\(", self.text, re.MULTILINE) is not None

    @property
    def is_for_mpi(self):
        """Whether it is a program of ranks, which test_mpi_blocks.py starts."""
        return "#include <mpi.h>" in self.text or "import MPI\n" in self.text

    @property
    def file_name(self):
        """The name a block gives itself in its first line, as `// kernels.c`."""
        named = NAMED.match(self.first_line)
        return named[1] if named else None


@dataclass
class Page:
    """A Markdown file, in the tree's terms. unclosed: line of a fence without an end, or 0."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    unclosed: int = 0

    def of(self, *languages):
        return [block for block in self.blocks if block.language in languages]

    @property
    def python_is_for_mpi(self):
        """All blocks of Python of a page are one program."""
        return any(block.is_for_mpi for block in self.of("python"))


def parse(text, path=Path("page.md")):
    """Reads a page. Links inside blocks are no links."""
    page = Page(path)
    fence, start, lines = None, 0, []
    for number, line in enumerate(text.split("\n"), 1):
        if fence is None:
            fence = FENCE.match(line)
            start, lines = number + 1, []
            if fence is None:
                found = LINK.findall(re.sub(r"`[^`]*`", "", line))
                page.links += [(number, first or second) for first, second in found]
        elif line.strip() == fence["mark"]:
            _add(page, fence["info"].strip(), start, lines)
            fence = None
        else:
            lines.append(line.removeprefix(fence["indent"]))
    page.unclosed = start - 1 if fence is not None else 0
    return page


def _add(page, language, line, lines):
    text = "\n".join(lines) + "\n"
    if language == "output" and page.blocks:
        last = page.blocks[-1]
        page.blocks[-1] = Block(last.page, last.line, last.language, last.text, text)
    else:
        page.blocks.append(Block(page.path, line, language, text))


def read(root, path):
    return parse((root / path).read_text(encoding="utf-8"), path)


def pages(root):
    """README.md and docs/: the pages whose code is tested."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [read(root, path.relative_to(root)) for path in found if path.exists()]


def all_pages(root):
    """Every Markdown file of the tree: their links are tested."""
    found = []
    for path in sorted(root.rglob("*.md")):
        parts = path.relative_to(root).parts
        if not any(part in SKIPPED or part.startswith(".") for part in parts):
            found.append(read(root, path.relative_to(root)))
    return found


def translation_unit(block):
    """The C++ or C that a block is compiled as; None when it does not say what it is."""
    here = f'#line {block.line} "{block.page}"\n'
    if block.is_program or block.file_name is not None:
        return here + block.text
    if block.language == "c":
        return f"#include <leveret/leveret.h>\n{here}{block.text}"
    if block.first_line == "// declarations":
        return PRELUDE + here + block.text
    if block.first_line == "// fragment":
        return PRELUDE + NAMES + here + block.text + "}\n"
    return None


def script(page, folder):
    """The Python blocks of a page as one script, each line at the page's own line number."""
    lines = [""] * (max((b.line + b.text.count("\n") for b in page.of("python")), default=0) + 1)
    for block in page.of("python"):
        for offset, line in enumerate(block.text.split("\n")):
            lines[block.line - 1 + offset] = line
    path = folder / f"{page.path.stem.replace('-', '_')}_page.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
