"""The runtime behind an executor: its workers run Python functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import OutOfMemory, Unavailable
from ..launch import worker_command
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
        except (OutOfMemory, Unavailable) as error:
            error.args = (_for_executors(str(error), zygote),)
            raise

    def _command(self, machine: str) -> list[str]:
        return worker_command(("cloudpickle", *self._zygote.preload), True, self._zygote.env)


def _for_executors(text: str, zygote: Zygote) -> str:
    """Why the workers could not be started, by the options of an executor."""
    if zygote.preload and "zygote process did not answer" in text:
        return f"{text}; it may be a module of preload that ends it: {', '.join(zygote.preload)}"
    if "Argument list too long" in text:
        return f"{text}; shorten the variables of env, or of os.environ (one has at most 128 KiB)"
    text = text.replace("lower local_store_bytes or workers", "lower max_workers")
    return text.replace("fewer workers (workers)", "fewer workers (max_workers)")
