"""Assertions: the rooms where a slot, a context or a process changes hands say what must be true.

Counted are the macros of base/assert.hpp and static_assert, against lines of code: neither blank
nor comment. What is missing is told at the file that is furthest behind.
"""

import re

ROOMS = ["src/flow", "src/machines/processes", "src/remote", "src/runtime", "src/worker"]
PER_THOUSAND_MIN = 18
CODE_LINES_MIN = 150  # a room below that is no room yet
ASSERTION = re.compile(r"\b(?:LEV_(?:ASSERT|EXPECTS|DCHECK(?:_LOOK)?)|static_assert)\s*\(")


def counts(file):
    """(assertions, lines of code) of a file."""
    lines = sum(1 for line in file.code_lines if line.strip())
    return len(ASSERTION.findall(file.code)), lines


def _missing(assertions, lines):
    return lines * PER_THOUSAND_MIN / 1000 - assertions


def rooms_assert(tree):
    for room in ROOMS:
        files = [(file, *counts(file)) for file in tree.of_kind("cpp") if file.under(room)]
        assertions = sum(found for _, found, _ in files)
        lines = sum(count for _, _, count in files)
        if lines < CODE_LINES_MIN or _missing(assertions, lines) <= 0:
            continue
        worst, found, count = max(files, key=lambda entry: _missing(*entry[1:]))
        message = (
            f"{room} has {assertions} assertions in {lines} lines of code, {PER_THOUSAND_MIN} a "
            f"thousand at least: say what must be true where something changes hands; this file "
            f"has {found} in {count}"
        )
        yield worst.fault(1, "assertions", message)


RULES = [rooms_assert]
