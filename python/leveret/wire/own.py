"""Attributes of classes that a process has for itself: locks, events and the like."""

from __future__ import annotations

import pickle
import threading
import weakref
from typing import Any

from cloudpickle import cloudpickle

from . import spaces
from .classes import with_attributes
from .instead import Instead

# Locks, and what is made of them.
_KINDS = frozenset(
    {
        *spaces.OWN,
        *(threading.Condition, threading.Event, threading.Semaphore, threading.BoundedSemaphore),
    }
)


def complete(pickler: Any, kind: type, made: Any) -> Any:
    """What cloudpickle makes of a class, with locks and the like that a process has for itself."""
    given = made[2][0]
    own = {name: value for name, value in given.items() if type(value) in _KINDS}
    if not own:
        return made
    pickled = pickler.dump_own(own)  # of all together: one may be made of another
    number = cloudpickle._get_or_create_tracker_id(kind)
    attributes = {**given, **{name: Instead(of_class, number, name, pickled) for name in own}}
    return with_attributes(made, attributes)


# In a worker: such attributes by class, with what they were read from.
_own: weakref.WeakKeyDictionary[type, tuple[bytes, dict[str, Any]]] = weakref.WeakKeyDictionary()


def of_class(number: str, name: str, pickled: bytes) -> Any:
    """The one that is there, unless it is another one in the host now: a thread that an earlier
    call has left may hold it.
    """
    kind = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[number]  # it is being made
    known = _own.get(kind)
    if known is None or known[0] != pickled:
        known = _own[kind] = pickled, pickle.loads(pickled)
    return known[1][name]
