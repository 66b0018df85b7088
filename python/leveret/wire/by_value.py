"""Functions and classes that workers cannot import: they go by value, and come back as themselves.

These are what a notebook or the main module defines, under whatever name it runs, what is made
inside of functions, and modules that a worker's search path does not have. What a worker made of
such an object of the host's goes back as a reference to it: the class of a result is the host's
class, which a worker's copy must not overwrite.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import os
import sys
import threading
import types
import weakref
from typing import Any, Callable

from cloudpickle import cloudpickle

from . import absent, class_steps, classes, entries, foreign, modules, own, singletons, spaces
from .absent import is_absent
from .modules import Home, residents
from .singletons import found, host_object

ORDINARY_MAX = 1024

# In a worker: what it made of objects of the host's, and where those are found there.
_classes: weakref.WeakSet[type] = weakref.WeakSet()
_homes: weakref.WeakKeyDictionary[Any, Home] = weakref.WeakKeyDictionary()
# The attributes of classes, as they were sent last: what the host has deleted since is deleted.
sent_names: weakref.WeakKeyDictionary[type, list[str]] = weakref.WeakKeyDictionary()


class Made:
    """What was made in a worker while something of the host's was loaded."""

    def __init__(self) -> None:
        self.functions: list[types.FunctionType] = []
        self.given: list[tuple[spaces.Space, dict[str, Any]]] = []  # globals
        self.has_classes = False  # whole ones: others came beside it, and are watched


class Loading(threading.local):
    """In a worker, while something of the host's is loaded."""

    made: Made | None = None


loading = Loading()
ordinary: set[type] = set()  # whose instances are pickled as they themselves say
_named: set[Any] = set()  # classes and functions that are pickled by their name


def forget_searches() -> None:
    """After sys.path changed."""
    spaces.forget_modules()
    absent.forget()
    ordinary.clear()
    _named.clear()


def note_ordinary(kind: type) -> None:
    """For a class that the other process can import, and whose instances nobody else reduces."""
    _note(ordinary, kind)


def _note(known: set[Any], thing: Any) -> None:
    if len(known) >= ORDINARY_MAX:
        known.clear()
    known.add(thing)


def is_importable(thing: Any) -> bool:
    """Whether a worker finds this very object under its module and name."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if type(module) is not str or type(name) is not str or is_absent(module):
        return False
    return home_of(thing) is not None


# Functions and classes.


def reduce_function(pickler: Any, function: types.FunctionType, is_reply: bool) -> Any:
    if is_reply and function in _homes:
        return host_object, _homes[function]
    if function in _named and _is_at_its_name(function):
        return NotImplemented
    is_elsewhere = is_absent(function.__module__)
    if is_elsewhere and pickler.beside is not None:
        made = pickler.beside.reduce_function(function)
        if made is not None:
            return made
    if not is_elsewhere and cloudpickle._should_pickle_by_reference(function):
        _note(_named, function)
        return NotImplemented
    if function.__closure__:
        pickler.closures.append(function)
    made = pickler._dynamic_function_reduce(function)
    own, slots = made[2]
    slots["__globals__"].update(modules.globals_of_bodies(function, slots["__globals__"]))
    slots["_cloudpickle_submodules"] += modules.submodules(function, slots["__globals__"])
    key: str | None = None if is_reply else spaces.key_of(function.__globals__)
    home = imported_home(function)
    if home is not None:
        slots["__globals__"], key = {}, None
        if not is_reply:
            slots["_entries"] = entries.entries_of(pickler, function, modules.named_by(function))
        made = (made[0], (made[1][0], home, *made[1][2:]))
    elif key is not None and not (is_elsewhere if "#" in key else is_absent(key)):
        key = None
    if key is not None:
        _give_globals(pickler, function, key, slots)
    # Copies of what is the function's alone, so that it is in common to no two globals.
    slots["__annotations__"] = dict(slots["__annotations__"])
    how = (home_of(function), key, () if key is None else _imports(function))
    return (_make_function, (how, *made[1]), (dict(own), slots), None, None, _set_function)


def _give_globals(
    pickler: Any, function: types.FunctionType, key: str, slots: dict[str, Any]
) -> None:
    """Has what a function names of its globals come with it, or in front."""
    names = slots["__globals__"]
    for name, value in modules.noted(function).items():
        if name not in names:
            pickler.needed[key, name] = value  # one that cannot be pickled is left out
    is_noted = (key, function.__name__) in pickler.needed  # and so is all code beside it
    asked = modules.asked_for(function, is_noted)
    names.update(spaces.need(key, asked, pickler.needed))
    if slots["__defaults__"] or slots["__kwdefaults__"]:
        _join_defaults(slots, functools.partial(pickler.alias, key, names))
    inline = spaces.split(key, names, pickler.needed, pickler.is_row)
    gone = spaces.gone(key, modules.named_by(function), function.__globals__)
    slots["__globals__"] = key, {**inline, **gone}


def imported_home(function: types.FunctionType) -> types.ModuleType | None:
    """The module that has its globals, if workers can import that: they are its own there.

    A decorated function of the main module has those of the decorator. Not where an importer of
    somebody else's has changed its code, as pytest does: they would be others there.
    """
    key = spaces.key_of(function.__globals__)
    if "#" in key or is_absent(key):
        return None
    module = sys.modules.get(key)
    return module if type(module) is types.ModuleType and absent.is_of_python(module) else None


def _imports(function: types.FunctionType) -> tuple[types.ModuleType, ...]:
    """What its code may import, but workers cannot."""
    names = modules.imported_by(function)
    return tuple(sys.modules[name] for name in names if is_absent(name))


def reduce_module(module: types.ModuleType, is_reply: bool, needed: spaces.Needed) -> Any:
    """For one that the other process cannot import: there it has the globals of its functions."""
    name = module.__name__
    if not is_reply and _is_hidden(module):
        return types.ModuleType, (name,), _contents(module)
    if sys.modules.get(name) is not module or not is_absent(name):
        return NotImplemented
    if is_reply:
        return _module_here, (name,)
    return spaces.module_of, (name, spaces.need(name, vars(module), needed))


def _is_hidden(module: types.ModuleType) -> bool:
    """Whether its name leads to a module of another file: both were loaded as `utils`, say."""
    other = sys.modules.get(module.__name__)
    if other is None or other is module:
        return False
    files = [getattr(each, "__file__", None) for each in (module, other)]
    if not all(isinstance(each, str) for each in files):
        return False
    return bool(os.path.realpath(str(files[0])) != os.path.realpath(str(files[1])))


def _contents(module: types.ModuleType) -> dict[str, Any]:
    """Without what the import system has put there, but for the file."""
    own = ("__builtins__", "__loader__", "__spec__", "__cached__")
    return {name: value for name, value in vars(module).items() if name not in own}


def _module_here(name: str) -> types.ModuleType:
    return sys.modules[name]


def _join_defaults(slots: dict[str, Any], alias: Callable[[Any], Any]) -> None:
    """Lets defaults be the globals that they are."""
    if slots["__defaults__"]:
        slots["__defaults__"] = tuple(map(alias, slots["__defaults__"]))
    if slots["__kwdefaults__"]:
        by_name = {name: alias(value) for name, value in slots["__kwdefaults__"].items()}
        slots["__kwdefaults__"] = by_name


def _make_function(
    how: tuple[Home | None, str | None, Any],
    code: Any,
    given: dict[str, Any] | types.ModuleType,
    *about: Any,
) -> types.FunctionType:
    home, key, _ = how
    names = given if isinstance(given, dict) else vars(given)
    if loading.made is not None and key is not None:
        names = spaces.space_of(key, names).names
    function = _resident_function(home, code, names)
    if function is None:
        function = cloudpickle._make_function(code, names, *about)
    if loading.made is not None:
        loading.made.functions.append(function)
        if home is not None:
            _homes[function] = home
            residents[home] = function
    return function


def _resident_function(
    home: Home | None, code: types.CodeType, names: dict[str, Any]
) -> types.FunctionType | None:
    """The one that is there of it, as it was made: pickle asks whether its name finds itself."""
    known = None if loading.made is None or home is None else residents.get(home)
    if type(known) is not types.FunctionType or known.__globals__ is not names:
        return None
    if known.__closure__ is not None or known.__code__ != code:
        return None
    vars(known).clear()
    return known


def _set_function(function: types.FunctionType, state: Any) -> None:
    slots = state[1]
    entries.take_entries(function.__globals__, slots.pop("_entries", ()))
    if type(slots["__globals__"]) is tuple:
        key, given = slots["__globals__"]
        slots["__globals__"] = {n: each for n, each in given.items() if each is not spaces.Gone}
        if loading.made is not None:
            slots["__globals__"] = {}
            spaces.space_of(key, {}).receive(given)
            loading.made.given.append((spaces.space_of(key, {}), given))
    cloudpickle._function_setstate(function, state)


def reduce_class(pickler: Any, kind: type, is_reply: bool) -> Any:
    if pickler.is_of_digest:
        return class_beside, (str(id(kind)),)
    if kind in _named and _is_at_its_name(kind):
        return NotImplemented
    if pickler.beside is not None and is_absent(kind.__module__):
        made = pickler.beside.reduce(kind)
        if made is not None:
            return made
    made = foreign.reduce_type(kind) if foreign.has_ctypes() else None
    if made is not None:
        return made
    if is_reply and kind in _classes:
        number = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS.get(kind)
        return _host_class, (number, kind.__module__, kind.__qualname__)
    is_elsewhere = is_absent(kind.__module__)
    other = None if is_elsewhere or is_importable(kind) else classes.other_home(kind)
    if other is not None and not is_absent(other.__name__):
        return getattr, (other, kind.__qualname__)
    made = classes.reduce(kind, is_elsewhere)
    if made is NotImplemented:
        _note(_named, kind)
    if made is NotImplemented or len(made) < 3:
        return made
    made = classes.complete(kind, made)
    if foreign.has_ctypes():
        made = foreign.complete(kind, made)
    if not is_reply and is_elsewhere:
        names = spaces.names_of(kind.__module__)
        key = spaces.key_of(names)
        attributes = {name: pickler.alias(key, names, each) for name, each in made[2][0].items()}
        made = classes.with_attributes(made, attributes)
    if not is_reply:
        made = own.complete(pickler, kind, made)
    pickler.whole.append((kind, made[2][0]))
    if pickler.beside is None or not pickler.beside.is_alone:
        made = class_steps.in_steps(kind, made)
    reduce = None if is_reply else copyreg.dispatch_table.get(kind)
    if reduce is not None:
        made = (*made[:2], (made[2], made[5], reduce), *made[3:5], _set_registered)
    names_own = None if is_reply else classes.own_names(kind)
    return (_make_class, (*made[:2], home_of(kind), kind.__qualname__, names_own), *made[2:])


def class_beside(number: str) -> type:
    """One that has come beside the pickle."""
    kind: type | None = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(number)
    if kind is None:
        raise TypeError("a class that this needs is gone")
    return kind


def function_beside(number: str, name: str) -> Any:
    """A function of such a class."""
    found = vars(class_beside(number))[name]
    return getattr(found, "__func__", found)


def class_with_function(function: types.FunctionType) -> type | None:
    """The class whose attribute it is, under its own name, if that class is found at its name."""
    where = function.__qualname__.rpartition(".")[0]
    if not where or "<" in where:
        return None
    try:
        kind = found((function.__module__, where))
    except AttributeError:
        return None
    own = vars(kind).get(function.__name__) if isinstance(kind, type) else None
    return kind if getattr(own, "__func__", own) is function else None


def skeleton_of(kind: type) -> Any:
    """How a class is pickled where what is in it comes another way."""
    made = classes.complete(kind, classes.reduce(kind, True))
    return _make_class, (*made[:2], home_of(kind), kind.__qualname__)


def _is_at_its_name(thing: Any) -> bool:
    """It is not where its module was loaded again, or replaced, or is to go by value since."""
    found = getattr(sys.modules.get(thing.__module__), thing.__name__, None)
    return found is thing and not cloudpickle._PICKLE_BY_VALUE_MODULES


def _set_registered(kind: type, state: Any) -> type:
    """copyreg knows the class here, too."""
    state, set_state, reduce = state
    copyreg.pickle(kind, reduce)
    set_state(kind, state)
    return kind


def home_of(thing: Any) -> Home | None:
    home = (thing.__module__, thing.__qualname__)
    try:
        return home if found(home) is thing else None
    except (AttributeError, TypeError):
        return None


_qualname: Any = vars(type)["__qualname__"]


def _make_class(
    maker: Any, about: Any, home: Home | None, qualname: str, names: list[str] | None = None
) -> type:
    """names: what its attributes are to be; None: it is only named."""
    # cloudpickle would make one without contents first, which is among __subclasses__() of its base
    # until garbage is collected, and drop it for the one that is there.
    kind: type | None = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(about[-2])
    if kind is None:
        bases = about[2] if maker is cloudpickle._make_skeleton_class else ()
        try:
            with classes.made_before(bases, _classes):
                kind = maker(*about)
        except TypeError as error:  # its metaclass makes it of nothing but the source
            text = f"class {qualname!r} cannot be made: {error}; have it in a module that processes"
            raise TypeError(f"{text} can import") from error
        assert kind is not None
        # By it an object of a nested one is pickled, and shown. A metaclass has no say in it.
        _qualname.__set__(kind, qualname)
    if loading.made is None:
        return kind
    _classes.add(kind)
    if names is not None:
        loading.made.has_classes = True
        _forget_others(kind, names)
        _follow_bases(kind, about)
    if home is not None:
        residents[home] = kind
    return kind


def _forget_others(kind: type, names: list[str]) -> None:
    """Deletes what was sent of a class before, and is not now; what calls have added stays."""
    for name in set(sent_names.get(kind, ())).difference(names):
        with contextlib.suppress(AttributeError, TypeError):
            type.__delattr__(kind, name)
    sent_names[kind] = names


def _follow_bases(kind: type, about: Any) -> None:
    """Has a class that was there the bases that it has now."""
    bases = about[2]
    if not isinstance(bases, tuple) or "__orig_bases__" in vars(kind) or bases == kind.__bases__:
        return
    with contextlib.suppress(TypeError):
        kind.__bases__ = bases


def note_of_host(kind: type) -> None:
    """For a class that a cluster's driver has sent: it goes back as the driver's own."""
    _classes.add(kind)


def is_of_host(kind: type) -> bool:
    """Whether this process has made it of one of the host's."""
    return kind in _classes


def _host_class(number: str, module: str, name: str) -> type:
    kind: type | None = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(number)
    if kind is None:
        raise TypeError(f"the class {module}.{name}, which a call had brought along, is gone")
    return kind


def goes_by_value(kind: type, is_reply: bool) -> bool:
    """Whether a class is one of those that the other process cannot import."""
    return (is_reply and kind in _classes) or is_absent(kind.__module__)


def reduce_other(pickler: Any, thing: Any, kind: type) -> Any:
    """For an object whose class goes by value, and says itself how it is pickled."""
    if not singletons.reduces_itself(pickler, kind):
        return NotImplemented
    made = thing.__reduce_ex__(5)
    if type(made) is not str:
        return made
    is_of_host = pickler.is_reply and kind in _classes
    return singletons.reduce(pickler, thing, (kind.__module__, made), is_of_host)


def reduce_importable(pickler: Any, thing: Any, kind: type) -> Any:
    """For one whose class the other process can import: its own pickle."""
    if not singletons.reduces_itself(pickler, kind) or issubclass(kind, types.BuiltinFunctionType):
        note_ordinary(kind)
        return NotImplemented
    made = thing.__reduce_ex__(5)
    if type(made) is str:
        return singletons.reduce_named(pickler, thing, made)
    note_ordinary(kind)
    return made
