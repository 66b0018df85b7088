"""The language of signatures: what a C function takes, parameter by parameter.

    signature  = [ parameter { "," parameter } ] [ "->" ( "int" | "void" ) ]
    parameter  = CODE                      a value
               | ( "in" | "out" | "inout" ) CODE [ "[" LENGTH "]" ]    a pointer to elements
               | "far" ( "in" | "out" | "inout" ) CODE    memory it gets parts of itself
               | "task"                    the calls by which it does
               | "result" CODE             a pointer to one value that the task hands back
               | "range"                   two uint64_t: begin and end
               | ( "count" | "rows" | "stride" ) "(" N ")"    a size_t about parameter N
    CODE       = b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16    NumPy's codes: kind and bytes
    LENGTH     = N | "count(" N ")" | "rows(" N ")" | "any"

Parameters are counted from 0. count(N) is all elements of the memory, rows(N) its rows (1 for an
array with one axis) and stride(N) the elements from row to row. "-> int" makes a code other than
0 fail the task.

The length of memory is how many elements an array has at least, or the task is refused: so many,
as many as parameter N has elements, as it has rows, or any number. Memory without one must be as
long as what the function is told: where the signature has count() of one parameter, memory that
has neither count() nor rows() of its own has at least as many elements as that parameter. If it
has stride() and so has rows to be stepped through, that is at least as many rows, of that length.
With count() of several parameters such memory needs a length.

Far memory is a `const lev_argument *` and task a `const lev_task_calls *` of leveret.h, which is
in include_folder(); see docs/how-to/get-data-inside-a-task.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

Signature = Union[str, Sequence[str]]

VALUES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
# What else memory and results may be; how these are passed differs between CPUs and compilers.
CODES = (*VALUES, "f2", "c8", "c16")
MEMORY = ("in", "out", "inout")
FAR = tuple(f"far {each}" for each in MEMORY)
DERIVED = ("count", "rows", "stride")
INTEGERS_MAX = 14
FLOATS_MAX = 8
ARGUMENTS_MAX = 18

_DERIVED_FORM = re.compile(r"(count|rows|stride)\s*\(\s*(\d{1,3})\s*\)")
_LENGTH_FORM = re.compile(
    r"(.*?)\[\s*(?:(any)|(\d{1,18})|(count|rows)\s*\(\s*(\d{1,3})\s*\))\s*\]", re.DOTALL
)


@dataclass(frozen=True)
class Length:
    """How many elements memory has at least.

    what: "any", "fixed" (n elements), "count" or "rows" (as many as parameter n has elements or
    rows), "shape" (as many rows as parameter n, and each as long). Nobody writes "shape".
    """

    what: str = "any"
    n: int = 0

    def __str__(self) -> str:
        return {"any": "any", "fixed": str(self.n)}.get(self.what, f"{self.what}({self.n})")


@dataclass(frozen=True)
class Parameter:
    """One parameter of the C function. `of` is the parameter that count, rows or stride names.

    length: as it is written; None: it is not.
    """

    what: str
    code: str = "u8"
    of: int = 0
    length: Length | None = None

    def __str__(self) -> str:
        if self.what in DERIVED:
            return f"{self.what}({self.of})"
        if self.what in ("range", "task"):
            return self.what
        if self.what == "value":
            return self.code
        written = "" if self.length is None else f"[{self.length}]"
        return f"{self.what} {self.code}{written}"


@dataclass(frozen=True)
class Parsed:
    """A signature after parsing; str() gives it back in one spelling."""

    parameters: tuple[Parameter, ...]
    returns_code: bool
    lengths: tuple[Length, ...] = ()  # of each parameter, also where none is written

    def __str__(self) -> str:
        text = ", ".join(map(str, self.parameters))
        return f"{text} -> int".strip() if self.returns_code else text


def _parse_parameter(index: int, text: str) -> Parameter:
    with_length = _LENGTH_FORM.fullmatch(text.strip())
    if with_length:
        memory, is_any, fixed, what, of = with_length.groups()
        parsed = _parse_parameter(index, memory)
        if parsed.what not in MEMORY or "[" in memory:
            raise ValueError(
                f"signature, parameter {index}: {text.strip()!r}: only in, out and inout have a "
                "length in brackets, and one only"
            )
        length = Length("any") if is_any else Length("fixed", int(fixed or 0))
        return Parameter(parsed.what, parsed.code, 0, Length(what, int(of)) if what else length)
    words = text.split()
    derived = _DERIVED_FORM.fullmatch(text.strip())
    if derived:
        return Parameter(derived[1], of=int(derived[2]))
    if words in (["range"], ["task"]):
        return Parameter(words[0])
    if len(words) == 1 and words[0] in CODES:
        return Parameter("value", words[0])
    if len(words) == 2 and words[0] in (*MEMORY, "result") and words[1] in CODES:
        return Parameter(words[0], words[1])
    if len(words) == 3 and words[0] == "far" and words[1] in MEMORY and words[2] in CODES:
        return Parameter(f"far {words[1]}", words[2])
    raise ValueError(
        f"signature, parameter {index}: {text.strip()!r} is not understood; write a code "
        f"({' '.join(CODES)}), 'in CODE', 'out CODE', 'inout CODE', 'result CODE', 'range', "
        "'count(N)', 'rows(N)', 'stride(N)', 'far in CODE' (or out, inout) or 'task'; in, out and "
        "inout may have a length behind: [N], [count(N)], [rows(N)] or [any]"
    )


def _named(parameters: tuple[Parameter, ...], what: str) -> list[int]:
    return [each.of for each in parameters if each.what == what]


def _length_of(parameters: tuple[Parameter, ...], index: int) -> Length:
    """What is written, or else what the function cannot but assume."""
    parameter = parameters[index]
    if parameter.what not in MEMORY or parameter.length is not None:
        return parameter.length or Length()
    counts, rows = _named(parameters, "count"), _named(parameters, "rows")
    counted = {each for each in counts if parameters[each].what in MEMORY}
    if not counted or index in counted or index in rows:
        return Length()
    if len(counted) > 1:
        raise ValueError(
            f"signature, parameter {index}: '{parameter}' has no count() of its own, and several "
            "others have; write the one that it must be as long as, such as "
            f"'{parameter}[count({min(counted)})]', or '{parameter}[any]'"
        )
    of = counted.pop()
    has_rows = of in rows and index in _named(parameters, "stride")
    return Length("shape" if has_rows else "count", of)


def _check_length(parameters: tuple[Parameter, ...], index: int) -> None:
    length = parameters[index].length
    if length is None or length.what not in ("count", "rows"):
        return
    named = parameters[length.n].what if length.n < len(parameters) else "nothing"
    if named not in MEMORY or length.n == index:
        raise ValueError(
            f"signature, parameter {index}: [{length}] must name another in, out or inout "
            f"parameter by its position, counted from 0; {length.n} is {named}"
        )


def _check(parameters: tuple[Parameter, ...]) -> None:
    integers = floats = arguments = 0
    for index, parameter in enumerate(parameters):
        where = f"signature, parameter {index}: "
        if parameter.what in DERIVED:
            named = parameters[parameter.of].what if parameter.of < len(parameters) else "nothing"
            if named not in MEMORY and not (named in FAR and parameter.what == "count"):
                raise ValueError(
                    f"{where}{parameter} must name an in, out or inout parameter by its position, "
                    f"counted from 0; {parameter.of} is {named}"
                )
        elif parameter.what != "task":
            arguments += 1
        _check_length(parameters, index)
        if parameter.what == "value" and parameter.code not in VALUES:
            raise ValueError(
                f"{where}a {parameter.code} is passed as memory ('in {parameter.code}[1]') or "
                f"handed back ('result {parameter.code}'), not as a value"
            )
        if parameter.what == "value" and parameter.code[0] == "f":
            floats += 1
        else:
            integers += 2 if parameter.what == "range" else 1
        if floats > FLOATS_MAX:
            raise ValueError(f"{where}more than 8 floating-point values; pass them as 'in f8'")
        if integers > INTEGERS_MAX:
            raise ValueError(f"{where}more than 14 integers and pointers; pass values as memory")
        if arguments > ARGUMENTS_MAX:
            raise ValueError(f"{where}a task takes at most 18 arguments")


def parse(signature: Signature) -> Parsed:
    """Parses a signature, as one string or as a list of parameters. ValueError says what is wrong.

    In a list, the last item may be "-> int".
    """
    if isinstance(signature, str):
        text, arrow, returned = signature.partition("->")
        parts = text.split(",") if text.strip() else []
    else:
        is_list = isinstance(signature, Sequence)
        parts = list(signature) if is_list else []
        if not is_list or not all(isinstance(part, str) for part in parts):
            raise TypeError(
                "a signature is a string such as 'f8, in f8, inout f8, count(1)', or a list of "
                f"its parameters, not {signature!r}"
            )
        has_arrow = bool(parts) and parts[-1].strip().startswith("->")
        _, arrow, returned = parts.pop().partition("->") if has_arrow else ("", "", "")
    if arrow and returned.strip() not in ("int", "void"):
        raise ValueError(
            f"signature: '-> {returned.strip()}' must be '-> int' or '-> void': what a function "
            "returns is a code, 0 if all is well; a number that it computes is a parameter, such "
            "as 'result f8', for which it gets a pointer"
        )
    parameters = tuple(_parse_parameter(i, part) for i, part in enumerate(parts))
    _check(parameters)
    lengths = tuple(_length_of(parameters, i) for i in range(len(parameters)))
    return Parsed(parameters, returned.strip() == "int", lengths)
