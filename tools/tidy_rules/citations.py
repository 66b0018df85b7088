"""A file that a comment or a document names exists: beside it, in src/, in tests/ or in the tree.

Only words with a folder and an ending count, and only in prose: in comments of code, and in
documents outside of their blocks of code.
"""

import posixpath
import re

from .source import blank

CITED = re.compile(
    r"(?<![\w./:<*{}$-])((?:[\w.-]+/)+[\w.-]+\.(?:md|cpp|hpp|h|py|cmake|pml|S))(?![\w/*])"
)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\([^)]*\)")  # the tests of the documents look at links
# What is no file of this tree: headers of the system and of other projects, names of examples.
FOREIGN = re.compile(
    r"^(room|sys|linux|asm|gtest|relacy|leveret|oneapi|tbb|boost|bits|experimental)/"
)


def named_files_exist(tree):
    for file in tree.files:
        lines = prose(file)
        for number, line in enumerate(lines, 1):
            for name in CITED.findall(line):
                if not FOREIGN.match(name) and not is_there(tree, file, name):
                    message = f"{name}: no such file; name one that exists"
                    yield file.fault(number, "cited-file", message)


def prose(file):
    if file.kind == "cpp":
        return file.comments
    if file.suffix == ".md":
        return LINK.sub("]", BLOCK.sub(lambda found: blank(found[0]), file.text)).split("\n")
    return []


def is_there(tree, file, name):
    folder = posixpath.dirname(file.path)
    starts = ("", folder, "src", "tests", "include", "python", "python/leveret", "apps", "bench")
    return any(posixpath.normpath(posixpath.join(start, name)) in tree.paths for start in starts)


RULES = [named_files_exist]
