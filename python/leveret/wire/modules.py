"""Modules of the host's that a worker cannot import, and what of them goes with a function.

A function's globals go with it by their names. A body may ask for them in other ways: by
globals()["name"] or eval(), through sys.modules, by an import, or by pickling or unpickling an
object of a class of theirs, which is looked up by name then. So a worker has such modules in its
sys.modules, and of a function whose code asks in these ways functions and classes all go along.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import re
import sys
import types
import typing
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from cloudpickle.cloudpickle import _extract_code_globals, _find_imported_submodules

Home = tuple[str, str]  # a module and a name in it

# In a worker: functions and classes that came by value, by where the host finds them.
residents: weakref.WeakValueDictionary[Home, Any] = weakref.WeakValueDictionary()

_BY_TEXT = frozenset({"globals", "eval", "exec"})
_UNPICKLERS = frozenset({"pickle", "cloudpickle", "dill", "joblib"})
_LOADS = frozenset({"load", "loads", "Unpickler"})
_OF_TYPES = ("typing", "typing_extensions", "types")
_WORD = re.compile(r"\w+")
_CODE = (
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, functools.partial),
    *(type(functools.lru_cache(None)(len)), bool, int, float, complex, str, type(None)),
)


# In the host.


def asked_for(function: types.FunctionType, has_code: bool) -> dict[str, Any]:
    """Globals that a function may ask for without their names: code, constants, modules.

    Data goes only if the function has its name in a text. has_code: only that is asked for.
    """
    if not asks(function):
        return {}
    names = function.__globals__
    texts = _WORD.findall(" ".join(_texts_of(function.__code__) - {function.__doc__}))
    asked = {each: names[each] for each in texts if each in names}
    if not has_code:
        asked.update(each for each in list(names.items()) if issubclass(type(each[1]), _CODE))
    return asked


def asks(function: types.FunctionType) -> bool:
    """Whether its code may look for globals that it does not name."""
    code = function.__code__
    if not _BY_TEXT.isdisjoint(_named_in(code)):
        return True
    names = set(_names_of(code))
    if "shelve" in names or ("sys" in names and "modules" in names):
        return True
    return not (_UNPICKLERS.isdisjoint(names) or _LOADS.isdisjoint(names))


def named_by(function: types.FunctionType) -> Iterator[str]:
    """The globals that its code names, and the code inside of it."""
    yield from _named_in(function.__code__)


def variables(function: types.FunctionType) -> dict[str, Any]:
    """Those of functions around it that it has."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # nothing is in it yet
            found[name] = cell.cell_contents
    return found


def globals_of_bodies(function: types.FunctionType, known: dict[str, Any]) -> dict[str, Any]:
    """Those that only bodies of classes name, beside what cloudpickle knows."""
    names = function.__globals__
    return {each: names[each] for each in named_by(function) if each in names and each not in known}


_named: weakref.WeakKeyDictionary[types.CodeType, dict[str, None]] = weakref.WeakKeyDictionary()
_OF_BODIES = frozenset({"LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


def _named_in(code: types.CodeType) -> dict[str, None]:
    found = _named.get(code)
    if found is None:
        found = {**_extract_code_globals(code), **dict.fromkeys(_named_in_bodies(code, False))}
        _named[code] = found
    return found


def _named_in_bodies(code: types.CodeType, is_in_body: bool) -> Iterator[str]:
    """In the bodies of classes inside of it: a name there may be the body's own, or a global, and
    cloudpickle does not know it.
    """
    is_in_body = is_in_body or not code.co_flags & inspect.CO_OPTIMIZED
    if is_in_body:
        found = (each.argval for each in dis.get_instructions(code) if each.opname in _OF_BODIES)
        yield from (name for name in found if name != "__name__")
    for each in code.co_consts:
        if type(each) is types.CodeType:
            yield from _named_in_bodies(each, is_in_body)


def noted(function: types.FunctionType) -> dict[str, Any]:
    """Globals that annotations of a data class name which are texts: what reads its fields from
    elsewhere evaluates them, by typing.get_type_hints(). They are those of the function that
    dataclasses, or attrs, have made.

    Classes and what is made of them, modules and functions; a text may be data's name by chance.
    """
    if function.__name__ != "__init__" or not function.__code__.co_filename.startswith("<"):
        return {}
    names = function.__globals__
    texts = [text for each in function.__annotations__.values() for text in _texts_in(each)]
    found = {word: names[word] for text in texts for word in _WORD.findall(text) if word in names}
    return {word: each for word, each in found.items() if _is_of_types(each)}


def _texts_in(note: Any) -> Iterator[str]:
    if type(note) is str:
        yield note
    elif type(note) is typing.ForwardRef:
        yield note.__forward_arg__
    elif type(note).__module__ in _OF_TYPES:
        for each in getattr(note, "__args__", None) or ():
            yield from _texts_in(each)


def _is_of_types(value: Any) -> bool:
    kind = type(value)
    return issubclass(kind, _CODE[:4]) or kind.__module__ in _OF_TYPES


class _Parts:
    """The parts of the names of modules in packages, as long as no module is imported."""

    found: tuple[int, frozenset[str]] = 0, frozenset()  # of so many modules; set at once

    @classmethod
    def of_modules(cls) -> frozenset[str]:
        count, names = cls.found
        if count != len(sys.modules):
            known = list(sys.modules)
            names = frozenset(part for name in known for part in name.split(".")[1:])
            cls.found = len(known), names
        return names


def submodules(function: types.FunctionType, names: dict[str, Any]) -> list[types.ModuleType]:
    """Those that code inside of a function names: cloudpickle knows those of the outermost code."""
    code: Any = types.SimpleNamespace(co_names=set(_names_of(function.__code__)))
    if _Parts.of_modules().isdisjoint(code.co_names.difference(function.__code__.co_names)):
        return []
    found: list[types.ModuleType] = _find_imported_submodules(code, list(names.values()))
    return found


def _names_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if type(each) is types.CodeType:
            yield from _names_of(each)


def _texts_of(code: types.CodeType) -> set[str]:
    """With those in tuples and sets."""
    texts: set[str] = set()
    left: list[Iterable[Any]] = [code.co_consts]
    while left:
        for each in left.pop():
            if type(each) is str:
                texts.add(each)
            elif type(each) is tuple or type(each) is frozenset:
                left.append(each)
            elif type(each) is types.CodeType:
                left.append(each.co_consts)
    return texts


def imported_by(function: types.FunctionType) -> list[str]:
    """Modules of this process that a function may import, or has under their names.

    `import a.b` is a name of its own, and gives a.
    """
    names = list(_names_of(function.__code__))
    tops = [name.partition(".")[0] for name in names if "." in name]
    return [name for name in (*names, *tops) if name in sys.modules]


# In a worker.


class HostModule(types.ModuleType):
    """The globals that were sent, and functions and classes that came by value."""

    @property
    def __file__(self) -> str:  # type: ignore[override]
        """For children that multiprocessing spawns: they run the main module again.

        One that would then do as it does when it is run as a program has none.
        """
        file, package = (vars(self).get(name) for name in ("__file__", "__package__"))
        try:
            if not package:
                with open(file or "", encoding="utf-8", errors="replace") as text:  # noqa: PTH123
                    if "__main__" in text.read():
                        return str(file)
        except OSError:
            pass
        raise AttributeError("__file__")

    def __getattr__(self, name: str) -> Any:
        found = residents.get((self.__name__, name))
        if found is None:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r} in this worker process, which "
                "has of it what came with a call: have the function name it"
            )
        return found
