"""Names that a file has for itself, in an unnamed namespace, are the only ones of their program.

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
PROGRAM = re.compile(
    r"^\s*(?:leveret_test|add_executable|add_library)\((\S+)([^)]*)\)", re.MULTILINE
)


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


def programs_of_tests(tree):
    """What is made of each source of a test, by its path: names of programs, by folder."""
    programs = {}
    for file in tree.files:
        if file.name == "CMakeLists.txt" and file.under("tests"):
            folder = file.path.rsplit("/", 1)[0]
            for name, sources in PROGRAM.findall(file.text):
                for source in sources.split():
                    programs.setdefault(f"{folder}/{source}", []).append(f"{folder}/{name}")
    return programs


def own_names_are_unique(tree):
    programs, seen = programs_of_tests(tree), {}
    for file in tree.of_kind("cpp"):
        compiled_with = ["src"] if file.under("src") else programs.get(file.path, ())
        if file.suffix != ".cpp" or not compiled_with:
            continue
        for line, inside, name, apart, is_alias in own_names(file):
            for program in compiled_with:
                first = seen.setdefault(
                    (program, inside, name, "" if is_alias else apart), (file, apart)
                )
                if first[0] is file or (is_alias and first[1] == apart):
                    continue
                yield file.fault(
                    line,
                    "own-name",
                    f"{name} is a name of {first[0].path}, too, and the files may be compiled as "
                    "one; take another, or move it to where both find it",
                )
                break


RULES = [own_names_are_unique]
