"""What is left over from writing: marks, silenced checks, dead code, sleeps, stray bytes, modes.

The words that are looked for are put together from halves, so that this file is clean itself.
"""

import re

FILE_BYTES_MAX = 1 << 20

MARK = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
SILENCED = re.compile("NO" + "LINT")
SKIP_WITHOUT_REASON = re.compile(
    r"GTEST_SKIP\(\)\s*;|(?:pytest\.mark\.skip|unittest\.skip)\b(?!if|unless|test)(?!\(.*[\"'])"
    r"|pytest\.skip\(\s*\)"
)
DISABLED = re.compile(r"\bDISABLED_\w+")
SLEEP = re.compile(
    r"\b(sleep_for|sleep_until|usleep|nanosleep|time\.sleep|asyncio\.sleep)\b|::sleep\s*\("
)
OWN_PATH = re.compile(r"(?<![\w.}$-])/(?:" + "wo" + "rk|ho" + "me" + r")/\w")
ONE_SPACE = re.compile(r"^//+ ?(?! )(.*\S.*)$")
CODE_END = re.compile(r"([=(]|->|::|^(return|break|continue|delete|goto|using)\b).*;$|^[{}]+;?$")
CODE_OPEN = re.compile(r"^(if|for|while|switch)\s*\(.*\{$|^#\s*(include|if|endif|define)\b")
TYPE_WORD = "(?:const|constexpr|static|inline|unsigned|signed|long|int|auto|return|bool|char|void)"
PROSE = re.compile(rf"(?:\b(?!{TYPE_WORD}\b)[a-z]+,? ){{2}}[a-z]+\b")


def _in_lines(files, pattern, rule, advice):
    """A fault for every line of the files on which the pattern occurs."""
    for file in files:
        if not pattern.search(file.text):
            continue
        for number, line in enumerate(file.lines, 1):
            found = pattern.search(line)
            if found:
                yield file.fault(number, rule, f"{found[0].strip()}: {advice}")


def marks(tree):
    files = [file for file in tree.files if file.is_text]
    yield from _in_lines(files, MARK, "leftover", "do it now, or open an issue and drop the mark")
    sources = tree.of_kind("cpp", "python", "shell")
    yield from _in_lines(sources, SILENCED, "leftover", "mend what the linter says")
    advice = "name no path of one machine; take it from an argument or relative to the repository"
    yield from _in_lines(files, OWN_PATH, "own-path", advice)


def skipped_tests(tree):
    sources = tree.of_kind("cpp", "python")
    advice = 'say why: GTEST_SKIP() << "reason", or skip(reason="...")'
    yield from _in_lines(sources, SKIP_WITHOUT_REASON, "skip-reason", advice)
    for file in tree.of_kind("cpp"):
        for match in DISABLED.finditer(file.code):
            line = file.line_of(match.start())
            if not any(file.comments[max(0, line - 2) : line]):
                message = f"{match[0]}: say in a comment right above why the test is off"
                yield file.fault(line, "skip-reason", message)


def no_sleep_in_tests(tree):
    for file in tree.of_kind("cpp", "python"):
        if file.under("tests", "python/tests"):
            text = file.code.split("\n") if file.kind == "cpp" else file.lines
            for number, line in enumerate(text, 1):
                found = SLEEP.search(line)
                if found:
                    message = f"{found[0]}: wait for a state instead (an event, a ticket, a gate)"
                    yield file.fault(number, "sleep", message)


def dead_code(tree):
    for file in tree.of_kind("cpp"):
        for number, comment in enumerate(file.comments, 1):
            found = ONE_SPACE.match(comment.strip())
            said = found[1].strip() if found else ""
            if (CODE_END.search(said) and not PROSE.search(said)) or CODE_OPEN.match(said):
                message = "code in a comment: delete it; an example is indented by three spaces"
                yield file.fault(number, "dead-code", message)


def white_space(tree):
    for file in tree.files:
        if not file.is_text or not file.bytes or file.suffix == ".patch":
            continue  # an empty line of a patch's context is a space
        if "\r" in file.text:
            line = file.line_of(file.text.index("\r"))
            yield file.fault(line, "white-space", "carriage return: lines end with \\n alone")
        if not file.text.endswith("\n"):
            yield file.fault(len(file.lines), "white-space", "end the last line with a newline")
        elif file.text.endswith("\n\n"):
            yield file.fault(len(file.lines) - 1, "white-space", "empty lines at the end: drop")
        for number, line in enumerate(file.lines, 1):
            if line.rstrip("\r") != line.rstrip():
                yield file.fault(number, "white-space", "white space at the end of the line: drop")
            if "\t" in line and file.name != "Makefile" and file.kind != "other":
                yield file.fault(number, "white-space", "tab: write spaces")


def sizes(tree):
    for file in tree.files:
        if file.bytes > FILE_BYTES_MAX:
            message = f"{file.bytes} bytes, {FILE_BYTES_MAX} at most: make it in a script instead"
            yield file.fault(1, "file-size", message)


def modes(tree):
    for file in tree.files:
        script = file.data[:2] == b"#!"
        if script and not file.executable:
            yield file.fault(1, "file-mode", "a file with #! is run: chmod +x")
        if file.executable and not script:
            yield file.fault(1, "file-mode", "no #! here, so this is not run: chmod -x")


RULES = [marks, skipped_tests, no_sleep_in_tests, dead_code, white_space, sizes, modes]
