"""Patches of source files that survive an edited comment, another line break and moved code.

1. read_patch() splits a unified diff into the hunks of each file, and a hunk into runs: lines that
   go, lines that come, and the context around them.
2. squeeze() takes comments and white space out of a text and remembers where each character stood.
3. place() looks for the squeezed old lines of a hunk in the squeezed file, first with all of its
   context, then with less. They must be there exactly once.
4. apply_patches() puts all runs of all patches of a file into the one original text. Thus the order
   of patches does not matter, and one may stand in the context of another.
"""

import difflib
import re
from dataclasses import dataclass, field

CONTEXT_LINES = 3
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
TARGET = re.compile(r"^\+\+\+ b/(\S+)")
PIECE = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>\s+)"
    r"""|(?P<string>"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL,
)


class PatchError(Exception):
    """A patch that cannot be applied: the message says which part of it, and why."""


@dataclass(frozen=True)
class Hunk:
    """A piece of one file as a diff shows it: each line is "-", "+" or " " and its text."""

    path: str
    lines: tuple[str, ...]


@dataclass
class Patch:
    """One patch: its name, the words above its first file, its hunks."""

    name: str
    head: str
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def paths(self):
        return sorted({hunk.path for hunk in self.hunks})

    @property
    def added(self):
        return "\n".join(line[1:] for h in self.hunks for line in h.lines if line[0] == "+")


@dataclass(frozen=True)
class Edit:
    """text[start:end] of a file becomes what is in `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]
    patch: str


def read_patch(name, text):
    """Reads a unified diff whose paths begin with a/ and b/; what stands above it is its head."""
    patch, path, lines, head = Patch(name, ""), None, None, []
    for line in [*text.splitlines(), "--- end"]:
        if lines is not None and line[:1] in {"-", "+", " ", ""} and line[:4] != "--- ":
            lines.append(line or " ")
            continue
        if lines is not None:
            patch.hunks.append(Hunk(path, tuple(lines)))
            lines = None
        if HUNK.match(line):
            lines = []
        elif found := TARGET.match(line):
            path = found[1]
        elif path is None and not line.startswith("--- "):
            head.append(line)
    patch.head = "\n".join(head).strip()
    if not patch.hunks:
        raise PatchError(f"{name} changes nothing: a patch is a unified diff, a/src/... b/src/...")
    return patch


def squeeze(text):
    """The text without comments and white space, and the offset in `text` of each character."""
    kept, places, end = [], [], 0
    for found in PIECE.finditer(text):
        if found.lastgroup != "string":
            kept.append(text[end : found.start()])
            places.extend(range(end, found.start()))
            end = found.end()
    kept.append(text[end:])
    places.extend(range(end, len(text)))
    return "".join(kept), places


def runs_of(lines):
    """The lines of a hunk as (old lines, [(first old, last old, new lines)]), changes in order."""
    old, changes, i = [], [], 0
    while i < len(lines):
        if lines[i][0] == " ":
            old.append(lines[i][1:])
            i += 1
            continue
        first, new = len(old), []
        while i < len(lines) and lines[i][0] != " ":
            (old if lines[i][0] == "-" else new).append(lines[i][1:])
            i += 1
        changes.append((first, len(old), tuple(new)))
    return old, changes


def place(hunk, squeezed):
    """The changes of a hunk as (start, end, new lines), offsets into the squeezed file."""
    old, changes = runs_of(hunk.lines)
    first, last = changes[0][0], changes[-1][1]
    parts = [squeeze(line)[0] for line in old]
    widths = [0]
    for part in parts:
        widths.append(widths[-1] + len(part))
    for less in range(max(first, len(old) - last) + 1):
        begin, end = min(less, first), max(len(old) - less, last)
        wanted = "".join(parts[begin:end])
        found = squeezed.find(wanted) if wanted else -1
        if found < 0:
            continue
        if squeezed.find(wanted, found + 1) >= 0:
            raise PatchError("this code is there more than once; give the hunk more context")
        return [(found + widths[a] - widths[begin], found + widths[b] - widths[begin], new)
                for a, b, new in changes]  # fmt: skip
    raise PatchError("this code is not there any more")


def edits_of(patch, path, text):
    """What a patch changes in the text of one file, and the hunks that found no place, with why."""
    squeezed, places = squeeze(text)
    edits, lost = [], []
    for hunk in patch.hunks:
        if hunk.path != path:
            continue
        try:
            found = place(hunk, squeezed)
        except PatchError as why:
            lost.append((hunk, str(why)))
            continue
        for start, end, new in found:
            if start == end:  # nothing goes: the new lines stand below the code before them
                at = text.find("\n", places[start - 1]) + 1 if start else 0
                edits.append(Edit(at, at, new, patch.name))
                continue
            begin, stop = places[start], places[end - 1] + 1
            edits.append(Edit(*whole_lines(text, begin, stop), new, patch.name))
    return edits, lost


def whole_lines(text, begin, end):
    """The range, and what else its first and last line have, if that is no code."""
    line_begin = text.rfind("\n", 0, begin) + 1
    if not text[line_begin:begin].strip():
        begin = line_begin
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if not squeeze(rest)[0]:
        end += len(rest) + 1
    return begin, min(end, len(text))


def apply_edits(text, edits):
    """The text with all edits made; two that meet are refused."""
    edits = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for one, next_one in zip(edits, edits[1:], strict=False):
        if next_one.start < one.end or (one.start == one.end == next_one.start):
            raise PatchError(
                f"{one.patch} and {next_one.patch} change the same lines: make them one"
            )
    for edit in reversed(edits):
        new = "".join(line + "\n" for line in edit.lines)
        after = text[edit.end :]
        if not text[: edit.end].endswith("\n") and edit.start != edit.end:
            new = new[:-1]
        text = text[: edit.start] + new + after
    return text


def make_diff(path, old, new):
    """A unified diff of one file, as git writes it."""
    lines = difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), f"a/{path}", f"b/{path}", n=CONTEXT_LINES
    )
    return "".join(lines)
