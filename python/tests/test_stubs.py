"""The hand-written types of the extension module say what is there."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import leveret
from leveret import _core

STUB = ast.parse(Path(leveret.__file__).with_name("_core.pyi").read_text())


def defined(nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in nodes if isinstance(node, kinds)}


def stub_parameters(function: ast.FunctionDef) -> list[str]:
    """Names in order; * and ** as they are written."""
    given = function.args
    names = [a.arg for a in given.args]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [a.arg for a in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def real_parameters(function: object) -> list[str]:
    """The same from what nanobind tells: "def f(self, a: int, *args, b: int = 0) -> None"."""
    signature = getattr(function, "__nb_signature__")[0][0]  # noqa: B009
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    while re.search(r"\[[^\[\]]*\]", inside):
        inside = re.sub(r"\[[^\[\]]*\]", "", inside)
    names = [part.split(":")[0].split("=")[0].strip() for part in inside.split(",")]
    return [name for name in names if name not in ("", "/", "*")]


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_names_what_is_there() -> None:
    stub = defined(STUB.body)
    assert set(stub) == public(_core)
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef):
            members = {m for m in defined(node.body) if not m.startswith("_")}
            assert members == public(getattr(_core, name)), name


def functions() -> list[tuple[str, ast.FunctionDef, object]]:
    found = []
    for name, node in defined(STUB.body).items():
        real = getattr(_core, name)
        if isinstance(node, ast.FunctionDef):
            found.append((name, node, real))
        if isinstance(node, ast.ClassDef):
            for method, inner in defined(node.body).items():
                member = getattr(real, method, None)  # not __buffer__, before Python 3.12
                member = getattr(_core, "_bound").get(f"{name}.{method}", member)  # noqa: B009
                if isinstance(inner, ast.FunctionDef) and hasattr(member, "__nb_signature__"):
                    found.append((f"{name}.{method}", inner, member))
    return found


@pytest.mark.parametrize(("name", "stub", "real"), functions(), ids=[f[0] for f in functions()])
def test_the_stub_has_the_right_parameters(name: str, stub: ast.FunctionDef, real: object) -> None:
    assert stub_parameters(stub) == real_parameters(real), name


def test_everything_public_is_documented() -> None:
    for name in leveret.__all__:
        thing = getattr(leveret, name)
        if inspect.isclass(thing) or callable(thing):
            assert thing.__doc__, f"leveret.{name} has no docstring"
    for kind in (_core.Runtime, _core.Ticket, _core.Procedure):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name} has no docstring"
