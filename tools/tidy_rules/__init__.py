"""The rules of tools/tidy, one module per subject; each module has a list RULES of functions.

A rule takes the whole tree (a tidy_rules.source.Tree) and yields Faults; it never changes a file.
"""

from . import (
    assertions,
    build_files,
    citations,
    layering,
    leftovers,
    lengths,
    locales,
    memory,
    own_names,
)

RULES = [
    *layering.RULES,
    *memory.RULES,
    *lengths.RULES,
    *leftovers.RULES,
    *locales.RULES,
    *build_files.RULES,
    *assertions.RULES,
    *citations.RULES,
    *own_names.RULES,
]


def check(tree):
    """All faults of a tree, sorted by place."""
    faults = [fault for rule in RULES for fault in rule(tree)]
    return sorted(set(faults), key=lambda fault: (fault.path, fault.line, fault.rule))
