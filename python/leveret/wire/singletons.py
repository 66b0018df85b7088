"""Objects that are pickled by their name in a module that workers cannot import.

There is one of each in a process. A worker makes it without calling its class, gives it the
attributes that it has in the host, and sends a reference back for it. Its class may be one that
workers can import: an object that marks what was not given, of a library, knows the module that has
made it.
"""

from __future__ import annotations

import contextlib
import copyreg
import pickle
import sys
from typing import Any

from .absent import is_absent
from .modules import Home, residents

known: dict[Home, Singleton] = {}  # in a worker: those of the host's


class Singleton:
    """One of the host's, and the digest of the attributes that were set."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.sent = b""


def found(home: Home) -> Any:
    """What is under that name; raises AttributeError."""
    thing: Any = sys.modules.get(home[0])
    for part in home[1].split("."):
        thing = getattr(thing, part)
    return thing


def host_object(module: str, name: str) -> Any:
    """What the host knows by that name; in a worker what it has made of it."""
    home = (module, name)
    one = known.get(home)
    here = residents.get(home) if one is None else one.value
    return found(home) if here is None else here


def reduces_itself(pickler: Any, kind: Any) -> bool:
    """Whether objects of this class say how they are pickled; copyreg says it before them."""
    if kind in pickler.dispatch_table:
        return False
    own, plain = (kind.__reduce__, kind.__reduce_ex__), (object.__reduce__, object.__reduce_ex__)
    return own[0] is not plain[0] or own[1] is not plain[1]


def reduce(pickler: Any, thing: Any, home: Home, is_of_host: bool) -> Any:
    """For one of them. is_of_host: what goes back is the host's own."""
    kind = type(thing)
    if pickler.is_of_digest or is_of_host:
        return host_object, home
    base = _base(kind)
    if base is None:
        text = (
            f"cannot pickle {home[1]!r} of {home[0]!r}, of type {kind.__qualname__!r}: it goes by "
            "its name in a module that processes do not run; have it in one that they can import"
        )
        raise pickle.PicklingError(text)
    about = (home, kind) if base is object else (home, kind, base, base(thing))
    state = _attributes(thing, kind)
    given = (home, state, pickler.digest(state))
    return _make, about, given, None, None, _set


def reduce_named(pickler: Any, thing: Any, name: str) -> Any:
    """For an object that is pickled by this name, and whose class the other process can import."""
    home: Home = (getattr(thing, "__module__", ""), name)
    if pickler.is_reply:
        is_known = home in known and known[home].value is thing
        return (host_object, home) if is_known else NotImplemented
    if not is_absent(home[0]):
        return NotImplemented
    with contextlib.suppress(AttributeError):
        if found(home) is thing:
            return reduce(pickler, thing, home, False)
    return NotImplemented


_VALUES = (int, float, complex, str, bytes, tuple, frozenset)


def _base(kind: type) -> Any:
    """What its objects can be made by, of what they are as that; None: only by compiled code."""
    for each in kind.__mro__:
        is_heap_type, has_no_maker = each.__flags__ & 1 << 9, each.__flags__ & 1 << 7
        if not is_heap_type or has_no_maker or getattr(each.__new__, "__self__", None) is each:
            return each if each is object or (each in _VALUES and each is not kind) else None
    return None


def _attributes(thing: Any, kind: type) -> dict[str, Any]:
    own = dict(getattr(thing, "__dict__", ()))
    for name in _slots(kind):
        with contextlib.suppress(AttributeError):  # nothing is in it
            own[name] = object.__getattribute__(thing, name)
    return own


def _slots(kind: type) -> list[str]:
    names: list[str] = getattr(copyreg, "_slotnames")(kind)  # noqa: B009
    return names


def _make(home: Home, kind: type, base: Any = object, value: Any = None) -> Any:
    if home not in known:
        try:
            return found(home)
        except AttributeError:
            made = object.__new__(kind) if base is object else base.__new__(kind, value)
            known[home] = Singleton(made)
    return known[home].value


def _set(made: Any, given: tuple[Home, dict[str, Any], bytes]) -> None:
    """The attributes that it has in the host, if they are others than were set here last: what
    calls have made of them since stays otherwise.
    """
    home, attributes, digest = given
    one = known.get(home)
    if one is None or one.value is not made or one.sent == digest:
        return
    one.sent = digest
    for name in _slots(type(made)):
        with contextlib.suppress(AttributeError):
            object.__delattr__(made, name)
        if name in attributes:
            object.__setattr__(made, name, attributes.pop(name))
    with contextlib.suppress(TypeError):  # it has none
        own = vars(made)
        own.clear()
        own.update(attributes)
