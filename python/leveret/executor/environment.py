"""What the processes of an executor find around them: environment, modules, caps on threads."""

from __future__ import annotations

import importlib.util
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Callable, NamedTuple, Optional, Union

from .. import _core
from ..mpi import worker_environment

Environment = Mapping[str, Optional[str]]
GivenEnvironment = Union[Environment, Callable[[int], Environment], None]

# Read when a library that starts threads is loaded. The same as loky's.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Zygote(NamedTuple):
    """What workers are forked from: the modules and the environment of that process.

    unless_set: variables that stay if they are there. is_shared: whether programs share it, which
    may search for modules elsewhere each.
    """

    preload: tuple[str, ...]
    env: Environment
    unless_set: Mapping[str, str]
    is_shared: bool


def thread_caps(workers: int, threads_per_worker: int | None) -> dict[str, str]:
    """Variables that keep libraries from starting more threads than there are cores.

    threads_per_worker: None: each worker gets its share of the cores; a variable that the program
    has set is to stay.
    """
    if threads_per_worker is not None:
        if isinstance(threads_per_worker, bool) or not isinstance(threads_per_worker, int):
            raise TypeError(f"threads_per_worker must be an integer, not {threads_per_worker!r}")
        if threads_per_worker < 1:
            raise ValueError("threads_per_worker must be >= 1, or None for a share of the cores")
        return dict.fromkeys(THREAD_VARIABLES, str(threads_per_worker))
    share = str(max(1, _core.available_cores() // workers))
    return dict.fromkeys(THREAD_VARIABLES, share)


def environments(env: GivenEnvironment, workers: int) -> list[dict[str, str | None]]:
    """What is set in each worker, in order; empty: nothing."""
    if env is None:
        return []
    return [_checked(env(i) if callable(env) else env) for i in range(workers)]


def _checked(env: Environment) -> dict[str, str | None]:
    if not isinstance(env, Mapping):
        kinds = "a dict, or a function that makes one from a worker's number"
        raise TypeError(f"env must be {kinds}, not {env!r}")
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, (str, type(None))):
            text = f"env: names are strings, and values strings or None, not {name!r}: {value!r}"
            raise TypeError(text)
        if not name or "=" in name or "\0" in name + (value or ""):
            raise ValueError(f"env: no variable can be called {name!r}, or be {value!r}")
    return dict(env)


def common_environment(environments: list[dict[str, str | None]]) -> dict[str, str | None]:
    """What all workers have alike: set before modules are preloaded, which may read it."""
    first = environments[0] if environments else {}
    return {k: v for k, v in first.items() if all(k in e and e[k] == v for e in environments)}


def zygote_of(
    workers: int,
    threads_per_worker: int | None,
    environments: list[dict[str, str | None]],
    preload: Iterable[str] | None,
    is_shared: bool,
) -> Zygote:
    """Of a shared one each program has its own environment."""
    caps = thread_caps(workers, threads_per_worker)
    common = {} if is_shared else common_environment(environments)
    env = {**worker_environment(), **common}
    if threads_per_worker is not None:
        env, caps = {**caps, **env}, {}
    return Zygote(modules(preload, is_shared), env, caps, is_shared)


def check_shared(pool: str | None, seed: int | None, seed_calls: bool) -> None:
    """What an executor cannot have whose processes run calls of other programs, too."""
    if pool is not None and seed is not None and not seed_calls:
        text = "seed: processes of a shared pool draw numbers for the calls of all its programs"
        raise ValueError(f"{text}; add seed_calls=True, which seeds each call by its number")


def checked_seed(seed: int | None) -> int:
    """The seed of all workers; one that nobody else has when none is given."""
    if seed is None:
        return int.from_bytes(os.urandom(16), "little")
    try:
        return operator.index(seed)
    except TypeError:
        raise TypeError(f"seed must be an integer or None, not {seed!r}") from None


def modules(preload: Iterable[str] | None, is_shared: bool) -> tuple[str, ...]:
    """The modules to preload; warns of those that are not installed.

    Programs that share processes have the same: with NumPy where it is installed.
    """
    if preload is None:
        has_numpy = "numpy" in sys.modules or (is_shared and _is_there("numpy"))
        return ("numpy",) if has_numpy else ()
    try:
        names = (preload,) if isinstance(preload, str) else tuple(preload)
    except TypeError:
        raise TypeError(f"preload must be names of modules, not {preload!r}") from None
    for name in names:
        if not isinstance(name, str) or not name:
            kind = ValueError if name == "" else TypeError
            raise kind(f"preload must be names of modules, not {name!r}")
        if not _is_there(name):
            text = f"preload: there is no module named {name!r}; workers start without it"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
    return names


def _is_there(name: str) -> bool:
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
