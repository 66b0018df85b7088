"""Lengths: columns, files and functions; and that every file opens with what it is for.

Functions of C++ are found by counting braces over code without comments, strings, preprocessor
lines and brace initialisers; what stands between the last ';', '{' or '}' and a '{' tells whether
that brace opens a function. Functions of Python come from its own parser.
"""

import ast
import re

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
HEAD_TEXT_MIN = 20  # a head comment shorter than this says nothing

INITIALISER = re.compile(r"(?<=[\w>\])])\{[^{};]*\}")
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
BRANCH = {"if": "\1", "ifdef": "\1", "ifndef": "\1", "else": "\2", "elif": "\2", "endif": "\3"}
TYPE = re.compile(r"\b(class|struct|union|enum|namespace|concept)\b")
CONTROL = re.compile(r"^\s*(if|for|while|switch|catch|do|else|try|return|case|default)\b")
LICENCE = re.compile(r"SPDX\S*|Copyright.*")


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def _mark_branches(match):
    """A preprocessor line becomes blank, but for one character that tells #if, #else and #endif."""
    return BRANCH.get(match[1], " ") + _blank(match)[1:]


def _shrunk(head):
    """A declaration without the insides of its brackets, to see its own keywords."""
    previous = None
    while previous != head:
        previous = head
        head = re.sub(r"<[^<>(){};]*>|\([^()]*[^()\s][^()]*\)", lambda m: m[0][0] + m[0][-1], head)
        head = head.replace("<>", " ").replace("operator ()", "operator()")
    return head


def _function_name(head):
    """The name of the function that a brace behind this text opens; None for other braces."""
    small = _shrunk(re.sub(r"\b(public|private|protected)\s*:(?!:)|[\1-\3]", " ", head))
    if "(" not in small or small.count("(") > small.count(")"):
        return None
    if TYPE.search(small) or CONTROL.match(small):
        return None
    name = re.search(r"(~?[\w:]+)\s*\(", small)
    return name[1] if name else "lambda"


def cpp_functions(file):
    """(first line, number of lines, name) of every outermost function.

    The stack of open braces is put back at #else to what it was at #if, so that both branches may
    open the same brace.
    """
    code, previous = DIRECTIVE.sub(_mark_branches, file.code), None
    while previous != code:
        previous, code = code, INITIALISER.sub(_blank, code)
    stack, saved, head_start = [], [], 0
    for match in re.finditer(r"[;{}\1-\3]", code):
        mark = match[0]
        if mark == "\1":
            saved.append(list(stack))
        elif mark == "\2" and saved:
            stack = list(saved[-1])
        elif mark == "\3" and saved:
            saved.pop()
        elif mark == "{":
            head = code[head_start : match.start()]
            name = _function_name(head) if not any(stack) else None
            start = head_start + len(head) - len(head.lstrip(" \n\t\1\2\3"))
            stack.append((start, name) if name else None)
        elif mark == "}" and stack:
            opened = stack.pop()
            if opened:
                first = code.count("\n", 0, opened[0]) + 1
                yield first, code.count("\n", 0, match.start()) + 2 - first, opened[1]
        if mark in ";{}":
            head_start = match.end()


def python_functions(file):
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.end_lineno - node.lineno + 1, node.name


def short_functions(tree):
    for file in tree.of_kind("cpp", "python"):
        try:
            functions = cpp_functions(file) if file.kind == "cpp" else python_functions(file)
            for line, length, name in functions:
                if length > FUNCTION_LINES_MAX:
                    message = (
                        f"{name} has {length} lines, {FUNCTION_LINES_MAX} at most: "
                        "give its steps names and make them functions"
                    )
                    yield file.fault(line, "function-length", message)
        except SyntaxError as error:
            message = "Python cannot read this file; mend it"
            yield file.fault(error.lineno or 1, "syntax", message)


def lines_max(file):
    """(limit, what to do) for a file, or None where there is no limit."""
    if file.name == "README.md":
        return 200, "move detail to docs/"
    if file.under("examples") and file.kind in ("cpp", "python"):
        return 120, "an example shows one idea"
    if file.under("tests", "python/tests") and file.kind in ("cpp", "python"):
        return 500, "split it by subject"
    if file.kind == "cpp":
        header = file.suffix in (".hpp", ".h", ".cuh", ".inc")
        return (400 if header else 500), "split it: a file is named after its main type or verb"
    return (500, "split it by subject") if file.kind in ("python", "shell") else None


def short_files(tree):
    for file in tree.files:
        limit, advice = lines_max(file) or (None, None)
        if limit and len(file.lines) - 1 > limit:
            message = f"{len(file.lines) - 1} lines, {limit} at most: {advice}"
            yield file.fault(limit + 1, "file-length", message)


def narrow_lines(tree):
    for file in tree.of_kind("cpp", "python", "shell"):
        for number, line in enumerate(file.lines, 1):
            if len(line) > COLUMNS_MAX:
                message = f"{len(line)} columns, {COLUMNS_MAX} at most: break the line"
                yield file.fault(number, "columns", message)


def _head(file):
    """The text of a file's opening comment."""
    if file.kind == "python":
        try:
            return ast.get_docstring(ast.parse(file.text)) or ""
        except SyntaxError:
            return "unreadable, which short_functions reports"
    if file.kind == "shell":
        found = re.match(r"(?:#!.*\n)?\s*((?:[ \t]*#.*\n)+)", file.text)
        return found[1].replace("#", " ") if found else ""
    once = r"\s*(?:#pragma once\s+)?"
    found = re.match(
        once + r"((?://[^\n]*\n\s*)+|/\*.*?\*/|(?:#[ \t][^\n]*\n)+)", file.text, re.DOTALL
    )
    return re.sub(r"[/*]+", " ", found[1]) if found else ""


def heads(tree):
    for file in tree.of_kind("cpp", "python", "shell"):
        if file.name == "__init__.py" and not file.text.strip():
            continue
        if len(" ".join(LICENCE.sub("", _head(file)).split())) < HEAD_TEXT_MIN:
            what = "docstring" if file.kind == "python" else "comment"
            message = f"open the file with a {what} that says what it is for"
            yield file.fault(1, "file-head", message)


RULES = [short_functions, short_files, narrow_lines, heads]
