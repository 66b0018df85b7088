"""Names that a file has for itself, in an unnamed namespace, are the only ones of their folder.

A check compiles files of the library together, and files of a test program: a name that two of them
have for themselves would be defined twice. And a reader who searches for a name finds one thing.
"""

import re

OPEN = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{$")
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?)\s+(?:alignas\(.*?\)\s+)?(\w+)\b[^;]*\{")
ALIAS = re.compile(r"^using\s+(\w+)\s*=([^;]*)")
FUNCTION = re.compile(r"^[\w\[][^=;{}]*?[\s&*](\w+)\(([^{};]*)\)[^;{}]*\{")
VARIABLE = re.compile(r"^(?:[\w:<>,*&]+ )+\*?(\w+)(?:\[[^\]]*\])*\s*(?:=|\{|;)")
PARAMETER_NAME = re.compile(r"\b\w+\s*(?:=[^,]*)?(?=,|$)")
NOT_A_NAME = (" ", "}", "#", "")  # how lines begin that are inside of something, or define nothing
HEAD_LINES_MAX = 4  # of a definition, up to its brace


def _named(line, text):
    """The name that a line defines, and what else may be told apart by: an overload's types."""
    if found := TYPE.match(line):
        return found[1], ""
    if found := ALIAS.match(text):
        return found[1], found[2].strip()
    if found := FUNCTION.match(text):
        return found[1], re.sub(r"\s+", "", PARAMETER_NAME.sub("", found[2]))
    found = VARIABLE.match(text)
    return (found[1], "") if found else None


def own_names(file):
    """(line, namespaces around it, name, what tells it apart, whether it may come again)."""
    inside = []  # the names of the open namespaces; "" for one without
    lines = file.code_lines
    for number, line in enumerate(lines, 1):
        if opened := OPEN.match(line.rstrip()):
            inside.append(opened[1] or "")
        elif line.rstrip() == "}" and not lines[number - 2].startswith(" "):
            inside[-1:] = []
        elif "" in inside and line[:1] not in NOT_A_NAME:
            head = " ".join(
                part.strip() for part in lines[number - 1 : number - 1 + HEAD_LINES_MAX]
            )
            if named := _named(line, head):
                yield number, "::".join(inside), *named, bool(ALIAS.match(line))


def own_names_are_unique(tree):
    seen = {}
    for file in tree.of_kind("cpp"):
        if file.suffix != ".cpp" or not file.under("src", "tests/unit", "tests/conformance"):
            continue
        folder = "src" if file.under("src") else file.path.rsplit("/", 1)[0]
        for line, inside, name, apart, is_alias in own_names(file):
            first = seen.setdefault(
                (folder, inside, name, "" if is_alias else apart), (file, apart)
            )
            if first[0] is file or (is_alias and first[1] == apart):
                continue
            yield file.fault(
                line,
                "own-name",
                f"{name} is a name of {first[0].path}, too, and the files may be compiled as one; "
                "take another, or move it to where both find it",
            )


RULES = [own_names_are_unique]
