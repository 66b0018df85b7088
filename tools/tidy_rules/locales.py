"""Numbers and letters do not depend on the locale that the program has chosen.

In a program that has called setlocale(), printf() and strtod() write and read a comma, streams put
dots between thousands, and isalpha() knows other letters. src/base/decimal.hpp has what to take.
"""

import re

from .layering import includes

CALL = re.compile(
    r"\b(strto(?:d|f|ld)|ato[f]|sto(?:d|f|ld)|is(?:alnum|alpha|blank|cntrl|digit|graph|lower|print"
    r"|punct|space|upper|xdigit)|to(?:lower|upper)|strcoll|strxfrm|wcsto\w+)\s*\("
)
HEADERS = {"cctype", "ctype.h", "iomanip", "iostream", "locale", "sstream"}
# A conversion of printf() or scanf() that takes a fraction.
FRACTION = re.compile(r"%[-+#0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[lL]?[aAeEfFgG]")


def no_locale(tree):
    advice = "depends on the locale; take it from base/decimal.hpp"
    for file in tree.of_kind("cpp"):
        if not file.under("src", "include", "python/src") or file.path == "src/base/decimal.hpp":
            continue
        for match in CALL.finditer(file.code):
            yield file.fault(file.line_of(match.start()), "locale", f"{match[1]}() {advice}")
        for number, line in enumerate(file.code_and_strings.split("\n"), 1):
            found = FRACTION.search(line.replace("%%", "  ")) if '"' in line else None
            if found:
                yield file.fault(number, "locale", f"{found[0]} {advice}")
        for line, _, included in includes(file):
            if included in HEADERS:
                yield file.fault(line, "locale", f"<{included}> {advice}")


RULES = [no_locale]
