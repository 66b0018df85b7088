"""Random numbers of workers: each process draws its own, and the same again from the same seed."""

from __future__ import annotations

import importlib
import struct
import sys
import types
from typing import Any, Callable

from .imports import change_when_imported

_NUMPY_WORDS = struct.Struct("<16I")


def _seed_numpy(digest: bytes) -> None:
    # Not by its name in numpy: while it is imported it is not there.
    sys.modules["numpy.random"].seed(_NUMPY_WORDS.unpack(digest))


def _seed_torch(digest: bytes) -> None:
    torch = sys.modules["torch"]
    if hasattr(torch, "manual_seed"):
        torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


_SEEDERS: dict[str, Callable[[bytes], None]] = {"numpy.random": _seed_numpy, "torch": _seed_torch}


class _Latest:
    """What modules are seeded by that are imported from now on."""

    digest = b""


def _seed_new(module: types.ModuleType) -> None:
    _SEEDERS[module.__name__](_Latest.digest)


def _find_sha512() -> Callable[[bytes], Any]:
    """As hashlib's, which would load OpenSSL, too: that takes longer than a short call."""
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha512"
    try:
        found: Callable[[bytes], Any] = importlib.import_module(name).sha512
    except ImportError:
        from hashlib import sha512 as found
    return found


_sha512 = _find_sha512()


def seed_all(*origin: object, is_given: bool) -> None:
    """Seeds the global generators by what `origin` names.

    is_given: by a seed of the user's: then also a generator that is imported later. Others seed
    themselves when they are imported.
    """
    if not is_given and not any(name in sys.modules for name in ("random", *_SEEDERS)):
        return
    digest = _sha512(repr(origin).encode()).digest()
    if is_given or "random" in sys.modules:
        import random

        seed_own = getattr(random, "seed", None)
        if callable(seed_own):  # a file of the program's may have that name
            seed_own(int.from_bytes(digest, "little"))
    for name, seed in _SEEDERS.items():
        if name in sys.modules:
            seed(digest)
    if is_given:
        _Latest.digest = digest
        change_when_imported(_SEEDERS, _seed_new)
