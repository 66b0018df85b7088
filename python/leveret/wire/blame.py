"""What an error of pickle's own says besides its text: what it was that could not be pickled."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from .modules import variables

if TYPE_CHECKING:
    from .pickling import _Pickler


def is_pickles(error: BaseException) -> bool:
    """Whether it is an error of pickle's own."""
    text = error.args[0] if len(error.args) == 1 else None
    if not isinstance(text, str):
        return False
    is_plain = type(error) in (TypeError, AttributeError, RuntimeError)  # the last is pybind11's
    return type(error) is pickle.PicklingError or (is_plain and "pickle" in text)


def say_of_what(error: BaseException, what: str) -> None:
    """Has such an error say what could not be pickled."""
    if is_pickles(error):
        text = error.args[0]
        verb = "" if "pickle" in text else " cannot be pickled"
        error.args = (f"{what}{verb}: {text}",)


def say_where(error: BaseException, pickler: _Pickler) -> None:
    """Has it name the class or function that has what it is about, if that goes by value."""
    if is_pickles(error):
        text = str(error)
        found = _attribute_at_fault(pickler, text) or _variable_at_fault(pickler, text)
        if found is not None:
            say_of_what(error, found[0])
            error.args = (f"{error.args[0]}; {found[1]}",)


def _attribute_at_fault(pickler: _Pickler, text: str) -> tuple[str, str] | None:
    for kind, attributes in reversed(pickler.whole):
        # Functions come last: one that names its class fails with it.
        for name in sorted(attributes, key=lambda name: callable(attributes[name])):
            if pickler.fails(attributes[name], text):
                what = f"the attribute {name!r} of class {kind.__qualname__!r}"
                return what, "a class of a module goes by its name"
    return None


def _variable_at_fault(pickler: _Pickler, text: str) -> tuple[str, str] | None:
    for function in reversed(pickler.closures):
        for name, value in variables(function).items():
            if pickler.fails(value, text):
                role = "of what decorates" if hasattr(function, "__wrapped__") else "of"
                what = f"the variable {name!r} {role} the function {function.__qualname__!r}"
                return what, "a function of a module goes by its name"
    return None


def say_which(error: BaseException, pickler: _Pickler, arguments: dict[Any, Any]) -> None:
    """Has it name the argument that it is about, where its text says nothing of one."""
    if not is_pickles(error) or "pickle" in error.args[0]:
        return
    for key, value in arguments.items():
        if pickler.fails(value, str(error)):
            say_of_what(error, f"argument {key!r}, of type {type(value).__qualname__!r},")
            return
