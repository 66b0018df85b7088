"""What the rules look at: the tree of files, and each file split into code, strings and comments.

The C++ lexer here knows comments, strings, raw strings, characters and digit separators. That is
enough to tell code from prose; it is no parser. All blanked views keep every newline and every
column, so that an offset in one view is the same place in all of them.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CPP = {".hpp", ".h", ".cpp", ".cc", ".c", ".cu", ".cuh", ".S", ".inc"}
PYTHON = {".py", ".pyi"}
SHELL = {".sh", ".bash"}
PLAIN = {".md", ".txt", ".cmake", ".json", ".toml", ".yml", ".yaml", ".cfg", ".ini", ".in", ".rst"}
SKIPPED_FOLDERS = {".git", ".venv", "build", "out", "dist", "__pycache__", "node_modules"}

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')""",
    re.DOTALL | re.VERBOSE,
)
NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Fault:
    """One place that breaks one rule; the message says what to write instead."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def blank(text):
    """The same shape with nothing in it: every character but the newlines becomes a space."""
    return NOT_NEWLINE.sub(" ", text)


class SourceFile:
    """One file of the tree with its views; made once per file and shared by all rules."""

    def __init__(self, root, path):
        self.path = path
        self.full = Path(root) / path
        self.name = os.path.basename(path)
        self.suffix = os.path.splitext(self.name)[1]
        status = self.full.stat()
        self.bytes = status.st_size
        self.executable = bool(status.st_mode & 0o100)

    @cached_property
    def data(self):
        return self.full.read_bytes() if self.bytes <= 1 << 20 else b"\0"

    @cached_property
    def text(self):
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def lines(self):
        return self.text.split("\n")

    @cached_property
    def kind(self):
        """cpp, python, shell, cmake, plain or other; scripts without an ending by first line."""
        if self.suffix in CPP:
            return "cpp"
        first = self.data[:80].split(b"\n")[0]
        if self.suffix in PYTHON or (first.startswith(b"#!") and b"python" in first):
            return "python"
        if self.suffix in SHELL or (first.startswith(b"#!") and first.rstrip().endswith(b"sh")):
            return "shell"
        if self.name == "CMakeLists.txt" or self.suffix == ".cmake":
            return "cmake"
        return "plain" if self.suffix in PLAIN else "other"

    @cached_property
    def is_text(self):
        return self.kind != "other" or (self.bytes <= 1 << 20 and b"\0" not in self.data)

    def _keep(self, kinds):
        def replace(match):
            return match[0] if match.lastgroup in kinds else blank(match[0])

        return TOKEN.sub(replace, self.text)

    @cached_property
    def code(self):
        """C++ without comments, strings and characters."""
        return self._keep(())

    @cached_property
    def code_and_strings(self):
        """C++ without comments."""
        return self._keep(("raw", "mark", "string", "char"))

    @cached_property
    def comments(self):
        """Per line, the text of the C++ comments on it ('' where there is none)."""
        kept, end = [], 0
        for match in TOKEN.finditer(self.text):
            if match.lastgroup == "comment":
                kept.append(blank(self.text[end : match.start()]))
                kept.append(match[0])
                end = match.end()
        kept.append(blank(self.text[end:]))
        return ["" if line.isspace() else line for line in "".join(kept).split("\n")]

    @cached_property
    def code_lines(self):
        return self.code.split("\n")

    def line_of(self, offset):
        """1-based line of an offset into text or any view of it."""
        return self.text.count("\n", 0, offset) + 1

    def under(self, *folders):
        return self.path.startswith(tuple(folder + "/" for folder in folders))

    def fault(self, line, rule, message):
        return Fault(self.path, line, rule, message)


class Tree:
    """All files of a checkout: tracked, or untracked and not ignored."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        paths = sorted(set(_git_paths(self.root) or _walk_paths(self.root)))
        real = [p for p in paths if (self.root / p).is_file() and not (self.root / p).is_symlink()]
        self.files = [SourceFile(self.root, path) for path in real]
        self.paths = set(real)

    def of_kind(self, *kinds):
        return [file for file in self.files if file.kind in kinds]

    def cpp_in_library(self):
        """C++ of the core: private rooms and public headers."""
        return [file for file in self.of_kind("cpp") if file.under("src", "include")]


def _git_paths(root):
    """Paths as git sees them; None where root is no checkout or there is no git."""
    command = ["git", "-c", f"safe.directory={root}", "ls-files", "-coz", "--exclude-standard"]
    if not (root / ".git").exists():
        return None
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [path for path in listed.decode("utf-8", "surrogateescape").split("\0") if path]


def _walk_paths(root):
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in SKIPPED_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return found
