"""Rules about memory shared between threads: the seam, the fields and the orders.

1. The standard's threads and atomics, and futexes, are used in src/sync and src/machines only.
2. Every atomic field says in a comment who writes it and who reads it.
3. Every acquire, release, acq_rel and seq_cst says in a comment what it pairs with.
"""

import re

from .layering import includes

SEAM = re.compile(
    r"\bstd\s*::\s*(?:atomic\w*|\w*mutex|condition_variable\w*|j?thread|this_thread|call_once"
    r"|once_flag|counting_semaphore|binary_semaphore|latch|barrier|future|promise|async)\b"
    r"|\bSYS_(?:futex|membarrier)\b|\bFUTEX_[A-Z_]+\b|(?<![\w:.>])futex\b"
)
SEAM_HEADERS = {
    *("atomic", "mutex", "thread", "shared_mutex", "condition_variable", "semaphore", "latch"),
    *("barrier", "future", "stop_token", "linux/futex.h", "linux/membarrier.h"),
}
ALIAS = re.compile(r"\busing\s+(\w+)\s*=[^;]*\batomic\s*<[^;]*;")
ORDER = re.compile(
    r"\bmemory_order(?:_|\s*::\s*)(?:acquire|release|acq_rel|seq_cst)\b"
    r"|[(,]\s*(?P<short>acquire|release|acq_rel|seq_cst)\s*(?=[,)])"
)
NO_OPERATION = re.compile(r"\bconstexpr\b[^;]*=|\busing\b|(\bcase|==|!=)\s*(std\s*::\s*)?$")
WRITER = re.compile(r"\bwrit", re.IGNORECASE)
READER = re.compile(r"\bread", re.IGNORECASE)
PAIR = re.compile(r"\bpairs with\b", re.IGNORECASE)
PAIR_LINES = 4


def seam(tree):
    for file in tree.cpp_in_library():
        if file.under("src/sync", "src/machines"):
            continue
        advice = "belongs to src/sync and src/machines; take it from Env, or from a type of sync"
        for match in SEAM.finditer(file.code):
            yield file.fault(file.line_of(match.start()), "seam", f"{match[0]} {advice}")
        for line, _, included in includes(file):
            if included in SEAM_HEADERS:
                yield file.fault(line, "seam", f"<{included}> {advice}")


def close_of(code, start):
    """Offset just behind the '>' that closes the '<' at start; -1 when it is no template list."""
    depth = 0
    for offset in range(start, min(len(code), start + 2000)):
        char = code[offset]
        if char in "<([{":
            depth += 1
        elif char in ")]}" or (char == ">" and code[offset - 1] != "-"):
            depth -= 1
        elif char == ";":
            return -1
        if depth == 0:
            return offset + 1
    return -1


def declared_name(code, end):
    """The name that a type ending at offset end declares, or None.

    A type nested in another (unique_ptr<atomic<T>[]>) is followed outwards to the outer '>'.
    """
    nested = False
    while True:
        match = re.compile(r"\s*(\w+)\s*([;{=(\[,:]|$)").match(code, end)
        if match and not (nested and match[2] in "(,:"):
            return match[1]
        if not re.compile(r"\s*(\[\s*\]\s*)?[,>]").match(code, end):
            return None
        depth = 1
        while depth and end < len(code) and code[end] not in ";{":
            depth += {"<": 1, ">": -1}.get(code[end], 0)
            end += 1
        if depth:
            return None
        nested = True


def atomic_declarations(code):
    """(offset of the type, offset behind it, name) of every variable of an atomic type."""
    aliases = set(ALIAS.findall(code)) - {"atomic"}
    types = re.compile(r"\b(" + "|".join(["atomic(?:_flag|_bool)?", *sorted(aliases)]) + r")\b\s*")
    for match in types.finditer(code):
        end = match.end()
        if code[end : end + 1] == "<":
            end = close_of(code, end)
        elif match[1] == "atomic":
            continue
        name = declared_name(code, end) if end > 0 else None
        if name:
            yield match.start(), end, name


def comment_about(file, start, end):
    """The comments on lines start..end (1-based) and in the comment block right above them."""
    text = file.comments[start - 1 : end]
    above = start - 2
    while above >= 0 and file.comments[above] and not file.code_lines[above].strip():
        text.insert(0, file.comments[above])
        above -= 1
    return " ".join(text)


def statement_start(code, offset):
    """Offset of the first character of the statement around offset."""
    start = max(code.rfind(mark, 0, offset) for mark in ";{}") + 1
    labels = re.compile(r"(?:\s*(?:public|private|protected)\s*:(?!:))*\s*")
    return labels.match(code, start).end()


def atomics_name_writer_and_reader(tree):
    for file in tree.cpp_in_library():
        for offset, behind, name in atomic_declarations(file.code):
            first = file.line_of(statement_start(file.code, offset))
            last = file.line_of(max(file.code.find(";", behind), behind))
            comment = comment_about(file, first, min(last, file.line_of(behind) + 3))
            if not (WRITER.search(comment) and READER.search(comment)):
                message = (
                    f"say right above {name} who writes it, who reads it and what it "
                    "publishes (// Written by ...; read by ...)"
                )
                yield file.fault(file.line_of(behind), "atomic-comment", message)


def orders_name_their_pair(tree):
    for file in tree.cpp_in_library():
        for match in ORDER.finditer(file.code):
            place = match.start("short") if match["short"] else match.start()
            start = statement_start(file.code, place)
            if NO_OPERATION.search(file.code[start:place]):
                continue
            line = file.line_of(place)
            if not PAIR.search(" ".join(file.comments[max(0, line - 1 - PAIR_LINES) : line])):
                order = match["short"] or match[0]
                message = (
                    f'{order} needs "Pairs with ..." in a comment on its line or within the '
                    f"{PAIR_LINES} lines above, saying what becomes visible"
                )
                yield file.fault(line, "pairs-with", message)


RULES = [seam, atomics_name_writer_and_reader, orders_name_their_pair]
