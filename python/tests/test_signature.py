"""The language of signatures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leveret.signature import CODES, VALUES, Length, Parameter, parse

scalars = st.sampled_from(CODES)
lengths = st.one_of(
    st.none(), st.just(Length()), st.builds(Length, st.just("fixed"), st.integers(0, 10**17))
)
memory = st.sampled_from(["in", "out", "inout"])
simple = st.one_of(
    st.sampled_from(VALUES).map(lambda code: Parameter("value", code)),
    st.builds(Parameter, memory, scalars, st.just(0), lengths),
    scalars.map(lambda code: Parameter("result", code)),
    st.just(Parameter("range")),
)


@given(st.lists(simple, max_size=6), st.booleans())
def test_parsing_gives_back_what_was_written(parameters: list[Parameter], returns: bool) -> None:
    text = ", ".join(map(str, parameters)) + (" -> int" if returns else "")
    parsed = parse(text)
    assert list(parsed.parameters) == parameters
    assert parsed.returns_code == returns
    assert parse(str(parsed)) == parsed
    as_list = [str(p) for p in parameters] + (["-> int"] if returns else [])
    assert parse(as_list) == parsed


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except ValueError as error:
        assert "signature" in str(error)
    else:
        assert parse(str(parsed)) == parsed


def test_spaces_do_not_matter() -> None:
    assert parse(" f8 ,in f4,  count ( 1 )->int ") == parse("f8, in f4, count(1) -> int")


@pytest.mark.parametrize(
    ("signature", "index", "length"),
    [
        ("in f8, out f8, count(0)", 1, Length("count", 0)),
        ("in f8, out f8, count(0)", 0, Length()),
        ("in f8, out f8, count(1)", 0, Length("count", 1)),
        ("in f8, out f8, count(0), count(1)", 1, Length()),
        ("in f8, out f8, rows(0), count(0), stride(1)", 1, Length("shape", 0)),
        ("in f8, out f8, rows(0), stride(1)", 1, Length()),
        ("in f8, count(0), out f8[any]", 2, Length()),
        ("in f8, count(0), out f8[ 256 ]", 2, Length("fixed", 256)),
        ("in f8, rows(0), out f8 [rows ( 0 )]", 2, Length("rows", 0)),
        ("far in f8, out f8, count(0)", 1, Length()),
        ("f8, in f8, count(1)", 0, Length()),
    ],
)
def test_memory_is_as_long_as_the_function_is_told(
    signature: str, index: int, length: Length
) -> None:
    assert parse(signature).lengths[index] == length
    assert parse(str(parse(signature))) == parse(signature)


def test_nothing_is_a_signature() -> None:
    assert parse("").parameters == ()
    assert parse([]) == parse("")
    assert parse("-> int").returns_code
    assert not parse("f8 -> void").returns_code


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("f2", "passed as memory ('in f2[1]')"),
        ("c16", "'result c16'"),
        ("f3", "parameter 0"),
        ("i4[3]", "only in, out and inout"),
        ("far in f8[3]", "only in, out and inout"),
        ("in f8[3][4]", "one only"),
        ("in f8[]", "[rows(N)] or [any]"),
        ("in f8[count(1)]", "1 is nothing"),
        ("in f8[count(0)]", "must name another"),
        ("in f8, i4, out f8[rows(1)]", "1 is value"),
        ("in f8, count(0), in f8, count(2), out f8", "'out f8[count(0)]', or 'out f8[any]'"),
        ("i8,, f8", "parameter 1"),
        ("in", "parameter 0"),
        ("const f8", "parameter 0"),
        ("count(0)", "must name an in, out or inout"),
        ("f8, count(0)", "0 is value"),
        ("in f8, count(7)", "7 is nothing"),
        ("in f8, rows(1)", "1 is rows"),
        ("f8 -> float", "-> int"),
        ("in f8 -> f8", "is a parameter, such as 'result f8'"),
        ("f8 -> ", "-> int"),
        (", ".join(["f4"] * 9), "8 floating-point"),
        (", ".join(["i8"] * 15), "14 integers"),
        (", ".join(["range"] * 8), "14 integers"),
        (", ".join(["f8"] * 8 + ["i1"] * 11), "18 arguments"),
    ],
)
def test_bad_signatures_say_what_is_wrong(signature: str, message: str) -> None:
    with pytest.raises(ValueError, match="signature") as caught:
        parse(signature)
    assert message in str(caught.value)


def test_only_strings_make_a_signature() -> None:
    with pytest.raises(TypeError):
        parse(["f8", 3])  # type: ignore[list-item]
