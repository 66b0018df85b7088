"""Tables of the reference, and the code that they are about, as sets and dictionaries."""

import re
from pathlib import Path

import blocks

CODE = re.compile(r"`([^`]+)`")
ENUMERATOR = re.compile(r"^  (\w+) = (\d+),", re.MULTILINE)
FIELD = re.compile(r"^  (?:const )?[\w:]+\*? (\w+) =\s[^;]+;", re.MULTILINE)
WORDS = {"two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
EXPRESSION = re.compile(r"(0x[\da-f]+|\d+)(?:\s*<<\s*(\d+))?", re.IGNORECASE)


def rows(text):
    """Rows of all tables of a page, heads left out: lists of cells."""
    found = []
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        is_rule = re.fullmatch(r"\|[\s|:-]+\|", line.strip()) is not None
        is_head = re.fullmatch(r"\|[\s|:-]+\|", after.strip()) is not None
        if line.startswith("|") and not is_rule and not is_head:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found.append([cell.strip().replace("\\|", "|") for cell in cells])
    return found


def page_rows(root, path):
    return rows((root / path).read_text(encoding="utf-8"))


def code_of(cell):
    """The first words in back quotes of a cell, or the cell."""
    found = CODE.search(cell)
    return found[1] if found else cell


def enumerators(root, header, name):
    """Names and numbers of an enumeration of a public header."""
    text = (root / header).read_text(encoding="utf-8")
    body = re.search(rf"enum class {name}\b[^{{]*\{{(.*?)\n\}};", text, re.DOTALL)[1]
    return {word: int(number) for word, number in ENUMERATOR.findall(body)}


def config_fields(root):
    """Fields of lev::config and, as `processes.name`, those of its member."""
    text = (root / "include/leveret/config.hpp").read_text(encoding="utf-8")

    def fields(name):
        body = re.search(rf"\nstruct {name} \{{\n(.*?)\n\}};", text, re.DOTALL)[1]
        return FIELD.findall(body)

    return {*fields("config"), *(f"processes.{name}" for name in fields("processes_config"))}


def number(text):
    """The value of a literal of C++, or of one shifted by another; None for anything else."""
    plain = re.sub(r"(?<=[\da-f])(u|ul|ull)\b|'", "", text.strip(), flags=re.IGNORECASE)
    plain = re.sub(r"std::\w+\{(\d+)\}", r"\1", plain)
    parts = EXPRESSION.fullmatch(plain)
    return int(parts[1], 0) << int(parts[2] or "0", 0) if parts else None


def constants(root, header, name):
    """Values that a header gives a name: `name = value` or `name value`, in code."""
    text = (root / header).read_text(encoding="utf-8")
    given = re.findall(rf"(?<!\w){re.escape(name)}(?:\s*=\s*|\s+)([^;,)]+)", text)
    return {number(value) for value in given} - {None}


def command_options(root):
    """Options that docs/reference/cli.md gives each command, by its sections."""
    text = (root / "docs/reference/cli.md").read_text(encoding="utf-8")
    sections = re.split(r"^## `leveret (\w+)", text, flags=re.MULTILINE)[1:]
    return {
        command: {word for row in rows(body) for word in options_in(row[0])}
        for command, body in zip(sections[::2], sections[1::2], strict=True)
    }


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - {"--help"}


def options_of_help(text):
    """The options that a --help lists: those at the beginning of a line."""
    lines = (line.strip(" │") for line in text.split("\n"))
    return {
        word
        for line in lines
        if line.startswith("--")
        for word in options_in(re.split(r"  |<", line)[0])
    }


def paths_in(text):
    """Words in back quotes that are paths of the tree."""
    folders = ("include/", "src/", "apps/", "examples/", "python/", "docs/", "bench/", "tests/")
    words = CODE.findall(text)
    return [word for word in words if word.startswith(folders) and not set(word) & set(" *")]


def tests_in(text, path):
    """Names of the tests in a source: of GoogleTest, or the texts that scenarios are named by."""
    if path.endswith("_test.cpp"):
        return set(re.findall(r"^(?:LEV_)?TEST(?:_P|_F)?\(\w+, (\w+)\)", text, re.MULTILINE))
    if path.endswith("_model.cpp"):
        return set(re.findall(r'\.check<.+>\("([^"]+)"\)', text))
    return set(re.findall(r'"([^"\n]*)"', text))


def promises(root):
    """Names and headings of docs/reference/promises.md: I1, L1 and so on."""
    text = (root / "docs/reference/promises.md").read_text(encoding="utf-8")
    return re.findall(r"^### (\w+): ", text, re.MULTILINE)


def cited_promises(root):
    """The promises that the code names, with a file that does."""
    found = {}
    for folder in ("src", "include", "tests"):
        for path in sorted((root / folder).rglob("*.?pp")):
            text = path.read_text(encoding="utf-8")
            for words in re.findall(r"\bpromises?(?:\.md)?,? ([ILD]\d+(?: and [ILD]\d+)*)", text):
                found |= dict.fromkeys(re.findall(r"[ILD]\d+", words), path)
    return found


def places_in(text):
    """Pairs of a name and the path it is said to be in: `name` in `path`."""
    return re.findall(r"`([\w:]+)` in `(\w[\w./]*\.\w+)`", text)


def walk(root):
    """The walk of one task in ARCHITECTURE.md: the steps, their functions, and their files."""
    found = [row for row in page_rows(root, "ARCHITECTURE.md") if re.match(r"\d ", row[0])]
    return [(row[0], CODE.findall(row[1]), row[2].split(", ")) for row in found]


def definition(name):
    """Matches a function of that name with its body, and no call of it."""
    return re.compile(rf"^(?! *return)[^\n/;]*[\w>&*] {name}\([^;{{]*\{{", re.MULTILINE)


def pages(root):
    return {page.path: read(root, page.path) for page in blocks.pages(root)}


def inventory_ids():
    """Rows that docs/papers/inventory.md must have."""
    thesis = [f"JR-{n:02}" for n in range(5, 36) if n != 27]
    tpc = [f"TP-{n:02}" for n in range(1, 13)]
    gcell = [f"GC-{n:02}" for n in range(2, 14)]
    cellmt = [f"MT-{n:02}" for n in range(1, 26)]
    return [*thesis, *tpc, *gcell, *cellmt, *(f"SL-{n:02}" for n in range(1, 21))]


def read(root, path):
    return (root / Path(path)).read_text(encoding="utf-8")
