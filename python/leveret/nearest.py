"""Names that are not known: an error that says which one may be meant."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Callable, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def nearest(value: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not known."""
    import difflib  # here: most programs name nothing that is not known

    names = tuple(known)
    found = difflib.get_close_matches(str(value), names, 1)
    return f"; did you mean {found[0]!r}?" if found else f"; there are {', '.join(names)}"


def names_options(called: str) -> Callable[[Function], Function]:
    """For a function that is `called` so in messages: an unknown option is a TypeError that says
    which one may be meant. What help() and editors show is the function's own signature."""

    def decorate(function: Function) -> Function:
        code = function.__code__
        every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        options = tuple(name for name in every[code.co_posonlyargcount :] if name != "self")
        known = frozenset(options)

        @functools.wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            if not known.issuperset(given):
                name = next(each for each in given if each not in known)
                raise TypeError(f"{called}() has no option {name!r}{nearest(name, options)}")
            return function(*args, **given)

        return cast(Function, checked)

    return decorate
