"""Paths that users give."""

from __future__ import annotations

import os
from typing import Any


def path_bytes(option: str, value: Any, what: str = "the path of a file") -> bytes:
    """A path in the bytes of the file system, which need not be text."""
    try:
        path = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{option} must be {what}, not {value!r}") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"{option} must be {what}, not {value!r}: {error}") from None
    if b"\0" in path:  # what is behind it would be lost: another file
        raise ValueError(f"{option} must have no null character, not {value!r}")
    return path
