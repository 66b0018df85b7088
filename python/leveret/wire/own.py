"""Attributes of classes that a process has for itself: locks, events and the like."""

from __future__ import annotations

import pickle
import threading
import weakref
from typing import Any

from cloudpickle import cloudpickle

from . import spaces

# Locks, and what is made of them.
_KINDS = frozenset(
    {
        *spaces.OWN,
        *(threading.Condition, threading.Event, threading.Semaphore, threading.BoundedSemaphore),
    }
)


def complete(pickler: Any, kind: type, made: Any) -> Any:
    """What cloudpickle makes of a class, with locks and the like that a process has for itself."""
    attributes = {
        name: _Own(kind, name, pickler.dump_own(value)) if type(value) in _KINDS else value
        for name, value in made[2][0].items()
    }
    return (*made[:2], (attributes, *made[2][1:]), *made[3:])


class _Own:
    """Stands for such an attribute."""

    def __init__(self, kind: type, name: str, pickled: bytes) -> None:
        self.about = cloudpickle._get_or_create_tracker_id(kind), name, pickled

    def __reduce__(self) -> Any:
        return of_class, self.about


# In a worker: such attributes by class, with what they were read from.
_own: weakref.WeakKeyDictionary[type, dict[str, tuple[bytes, Any]]] = weakref.WeakKeyDictionary()


def of_class(number: str, name: str, pickled: bytes) -> Any:
    """The one that is there: a thread that an earlier call has left may hold it."""
    kind = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[number]  # it is being made
    known = _own.setdefault(kind, {})
    if name not in known or known[name][0] != pickled:
        known[name] = pickled, pickle.loads(pickled)
    return known[name][1]
