"""Random numbers of workers: each process draws its own, and the same again from the same seed."""

from __future__ import annotations

import hashlib
import struct
import sys

_NUMPY_WORDS = struct.Struct("<16I")


def seed_all(*origin: object, is_given: bool) -> None:
    """Seeds the global generators by what `origin` names.

    is_given: by a seed of the user's: then also a generator that was not imported yet. Others seed
    themselves when they are imported.
    """
    digest = hashlib.sha512(repr(origin).encode()).digest()
    if is_given or "random" in sys.modules:
        import random

        random.seed(int.from_bytes(digest, "little"))
    if "numpy.random" in sys.modules or (is_given and "numpy" in sys.modules):
        import numpy.random

        numpy.random.seed(_NUMPY_WORDS.unpack(digest))
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)
