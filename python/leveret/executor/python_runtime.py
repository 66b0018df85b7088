"""The runtime behind an executor: its workers run Python functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import InvalidArgument, OutOfMemory, Unavailable
from ..launch import search_path, worker_command
from ..runtime import Runtime
from .environment import Zygote

# Python needs its cores for itself. (bench python-function: best of 0, 5, 20 and 50 us.)
SPIN_NS = 20_000


class PythonRuntime(Runtime):
    """A runtime whose workers run Python functions."""

    _ends_by_itself = False  # its pool does that

    def __init__(
        self, zygote: Zygote, deaths: _core.Obituaries, *args: Any, **options: Any
    ) -> None:
        self._zygote = zygote
        self._obituaries = deaths
        try:
            super().__init__(*args, **options)
        except (InvalidArgument, OutOfMemory, Unavailable) as error:
            error.args = (_for_executors(str(error), zygote),)
            raise

    def _command(self, machine: str) -> list[str]:
        of = self._zygote
        path = () if of.is_shared else search_path()
        return worker_command(("cloudpickle", *of.preload), True, of.env, of.unless_set, path)


def _for_executors(text: str, zygote: Zygote) -> str:
    """Why the workers could not be started, by the options of an executor."""
    if zygote.preload and "zygote process did not answer" in text:
        return f"{text}; it may be a module of preload that ends it: {', '.join(zygote.preload)}"
    if "Argument list too long" in text:
        return f"{text}; shorten the variables of env, or of os.environ (one has at most 128 KiB)"
    if "workers of another program" in text:
        return (
            "the pool's processes were started by another interpreter, another copy of leveret or "
            "with other flags, preload, max_workers or threads_per_worker: give the same, or "
            "another name as pool"
        )
    text = text.replace("lower local_store_bytes or workers", "lower max_workers")
    return text.replace("fewer workers (workers)", "fewer workers (max_workers)")
