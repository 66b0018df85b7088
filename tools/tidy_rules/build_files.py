"""No dead source: every source file is named in some CMakeLists.txt or matched by a glob there.

A name counts when a CMakeLists.txt (or *.cmake) says it as a whole word: as a path from there, with
or without its ending (for helper functions that add it), or behind a variable (${dir}/file.cpp).
"""

import fnmatch
import posixpath
import re

FOLDERS = ("src", "apps", "bench", "examples", "tests", "python")
SOURCES = (".cpp", ".cc", ".c", ".cu", ".S")
GLOB = re.compile(r"\bfile\s*\(\s*(GLOB|GLOB_RECURSE)\b([^)]*)\)", re.IGNORECASE)
VARIABLE = re.compile(r"^(\$\{[^}]*\}/?)+")


class BuildFile:
    """The words and globs of one CMakeLists.txt, relative to its folder."""

    def __init__(self, file):
        code = re.sub(r"#[^\n]*", "", file.text)
        self.folder = file.path.rpartition("/")[0]
        self.globs = []
        for kind, words in GLOB.findall(code):
            recursive = kind.upper() == "GLOB_RECURSE"
            patterns = [word.strip('"') for word in words.split() if "*" in word or "?" in word]
            self.globs += [(VARIABLE.sub("", pattern), recursive) for pattern in patterns]
        words = set(re.findall(r"[^\s()\";]+", GLOB.sub("", code)))
        plain = {word for word in words if not word.startswith("${")}
        self.paths = {posixpath.normpath(posixpath.join(self.folder, word)) for word in plain}
        self.ends = {VARIABLE.sub("", word) for word in words - plain}

    def names(self, path):
        if path in self.paths or path.rpartition(".")[0] in self.paths:
            return True
        if self.folder and not path.startswith(self.folder + "/"):
            return False
        if any(end and ("/" + path).endswith("/" + end) for end in self.ends):
            return True
        inside = path[len(self.folder) + 1 :] if self.folder else path
        return any(matches(inside, pattern, recursive) for pattern, recursive in self.globs)


def matches(path, pattern, recursive):
    """Whether a glob of CMake finds the path; '*' does not cross a '/' unless recursive."""
    if recursive:
        folder, _, name = pattern.rpartition("/")
        inside = path.startswith(folder + "/") if folder else True
        return inside and fnmatch.fnmatchcase(path.rpartition("/")[2], name)
    if pattern.count("/") != path.count("/"):
        return False
    pairs = zip(path.split("/"), pattern.split("/"), strict=True)
    return all(fnmatch.fnmatchcase(part, piece) for part, piece in pairs)


def no_dead_source(tree):
    build_files = [BuildFile(file) for file in tree.of_kind("cmake")]
    for file in tree.of_kind("cpp"):
        if file.suffix not in SOURCES or not file.under(*FOLDERS):
            continue
        if not any(build_file.names(file.path) for build_file in build_files):
            message = "no CMakeLists.txt names this file: add it to its room's list, or delete"
            yield file.fault(1, "dead-source", message)


RULES = [no_dead_source]
