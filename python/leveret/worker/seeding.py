"""Random numbers of workers: each process draws its own, and the same again from the same seed."""

from __future__ import annotations

import importlib
import importlib.util
import struct
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any, Callable

_NUMPY_WORDS = struct.Struct("<16I")


def _seed_numpy(digest: bytes) -> None:
    # Not by its name in numpy: while it is imported it is not there.
    sys.modules["numpy.random"].seed(_NUMPY_WORDS.unpack(digest))


def _seed_torch(digest: bytes) -> None:
    torch = sys.modules["torch"]
    if hasattr(torch, "manual_seed"):
        torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)


_SEEDERS: dict[str, Callable[[bytes], None]] = {"numpy.random": _seed_numpy, "torch": _seed_torch}


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
        _watcher.digest = digest
        if _watcher not in sys.meta_path:
            sys.meta_path.insert(0, _watcher)


class _Watcher:
    """Seeds generators of modules that are imported after all."""

    digest = b""
    name = ""  # of the module that is looked for

    def find_spec(
        self, name: str, path: Any = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _SEEDERS or self.name:
            return None
        self.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.name = ""
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec


class _Loader:
    """A module's loader; what is loaded is seeded."""

    def __init__(self, loader: Any) -> None:
        self._own = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._own.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self._own
        if spec is not None:
            spec.loader = self._own
        self._own.exec_module(module)
        _SEEDERS[module.__name__](_watcher.digest)


_watcher = _Watcher()
