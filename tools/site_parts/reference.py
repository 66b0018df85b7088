"""A public header as a page of Markdown: its comments as text, its declarations as code.

1. declarations() cuts the header into declarations, each with the comment that stands above it.
   What is in lev::detail, in macros, or private is left out.
2. A class or struct with functions gets a heading and its members, one after the other; bodies of
   functions are cut off. Anything else is shown as it stands.
"""

import re
from dataclasses import dataclass

SKIPPED = re.compile(r"^\s*(#|namespace lev \{|\}  // namespace lev|extern \"C\" \{|\}$)")
DETAIL = re.compile(r"^namespace detail \{")
END_OF_DETAIL = re.compile(r"^\}  // namespace detail")
TYPE = re.compile(
    r"^\s*(?:template <[^>]*(?:<[^>]*>[^>]*)*>\s*)?(class|struct)\s+(?:\[\[\w+\]\]\s+)?"
    r"([\w<>:,\s]+?)\s*(?:final\s*)?(?::[^:{]+)?\{"
)
WHOLE = re.compile(r"\s*(enum|struct|class|union|typedef|constexpr|inline constexpr|using)\b")
HIDDEN = re.compile(r"^\s*(private|protected):")
SHOWN = re.compile(r"^\s*public:")
NAME = re.compile(r"([~\w]+|operator\s*\S+?)\s*\(")
NOT_CODE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'')


@dataclass
class Declaration:
    """Lines of a declaration, and of the comment above it without its slashes."""

    comment: list[str]
    code: list[str]

    @property
    def text(self):
        return "\n".join(self.code)


def plain(line):
    return NOT_CODE.sub("", line)


def declarations(lines):
    """The declarations of a header or of a class's inside, in order."""
    found, comment, code, depth, is_detail = [], [], [], 0, False
    for line in lines:
        if is_detail:
            is_detail = not END_OF_DETAIL.match(line)
            continue
        stripped = line.strip()
        if not code and stripped.startswith("//"):
            comment.append(re.sub(r"^\s*// ?", "", line))
            continue
        if not code and DETAIL.match(line):
            is_detail, comment = True, []
            continue
        if not code and (not stripped or SKIPPED.match(line)):
            comment = []
            continue
        code.append(line)
        bare = plain(line)
        depth += sum(bare.count(c) for c in "({[") - sum(bare.count(c) for c in ")}]")
        is_end = bare.rstrip().endswith((";", "}")) or SHOWN.match(line) or HIDDEN.match(line)
        if depth == 0 and is_end:
            found.append(Declaration(comment, code))
            comment, code = [], []
    return found


def without_body(text):
    """A function's declaration without its body and without its initialisers."""
    depth = 0
    bare = NOT_CODE.sub(lambda found: " " * len(found[0]), text)
    for i, c in enumerate(bare):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and c == "{":
            return re.sub(r"\s*\n?\s*:\s[^:].*$", "", text[:i], flags=re.DOTALL).rstrip() + ";"
    return text


def prose(lines):
    """A comment as Markdown: what is indented is shown as it is, the rest is text."""
    made, block = [], []
    for line in [*lines, ""]:
        if line.startswith("  ") and line.strip():
            block.append(line)
            continue
        if block:
            made += ["", "```text", *block, "```", ""]
            block = []
        parts = line.split("`")
        parts[::2] = [re.sub(r"([*_<>#\[\]])", r"\\\1", part) for part in parts[::2]]
        made.append("`".join(parts))
    return "\n".join(made).strip()


def code_of(declaration, is_member):
    """The declaration as it is shown: without a function's body, moved to the left."""
    text = declaration.text
    bare = plain(text)
    if ("{" in bare and not WHOLE.match(text)) or (is_member and re.search(r"\)[^;]*\{", bare)):
        text = without_body(text)
    indent = len(text) - len(text.lstrip())
    return re.sub(rf"^ {{{indent}}}", "", text, flags=re.MULTILINE)


def shown(listed, is_member):
    """Declarations, each below its comment; those without one stay together."""
    made = []
    for declaration in listed:
        code, said = code_of(declaration, is_member), prose(declaration.comment)
        if made and not said:
            made[-1][1].append(code)
        else:
            made.append((said, [code]))
    blocks = ((said, "\n".join(codes)) for said, codes in made)
    return "\n".join(f"{said}\n\n```cpp\n{code}\n```\n".lstrip() for said, code in blocks)


def members(code):
    """What is public inside a class or struct."""
    is_shown = "class" not in TYPE.match("\n".join(code))[1]
    inside = []
    for declaration in declarations(code_inside(code)):
        text = declaration.text
        if SHOWN.match(text) or HIDDEN.match(text):
            is_shown = bool(SHOWN.match(text))
            rest = declaration.code[1:]
            if rest:
                inside += declarations(rest) if is_shown else []
        elif is_shown and not text.strip().startswith("friend"):
            inside.append(declaration)
    return inside


def code_inside(code):
    """The lines between the braces of a class."""
    text = "\n".join(code)
    begin, end = text.index("{") + 1, text.rindex("}")
    return text[begin:end].split("\n")


def page(path, text):
    """The page of one header."""
    lines = text.split("\n")
    head = []
    while lines and lines[0].startswith("//"):
        head.append(re.sub(r"^// ?", "", lines.pop(0)))
    made, loose, is_after = [f"# `<{path}>`\n", prose(head) + "\n"], [], False
    for declaration in [*declarations(lines), None]:
        found = declaration and TYPE.match(declaration.text)
        if declaration and not (found and "(" in plain(declaration.text)):
            loose.append(declaration)
            continue
        if loose:
            made += ["## Functions and constants\n"] if is_after else []
            made.append(shown(loose, False))
        loose = []
        if declaration:
            made.append(f"## {found[1]} `{found[2].strip()}`\n")
            made += [prose(declaration.comment) + "\n"] if declaration.comment else []
            made.append(shown(members(declaration.code), True))
            is_after = True
    return "\n".join(made)
