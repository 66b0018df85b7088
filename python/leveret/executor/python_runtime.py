"""The runtime behind an executor: its workers run Python functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import Unavailable
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
        except Unavailable as error:
            if zygote.preload and "zygote process did not answer" in str(error):
                names = ", ".join(zygote.preload)
                error.args = (f"{error}; it may be a module of preload that ends it: {names}",)
            raise

    def _command(self, machine: str) -> list[str]:
        return worker_command(("cloudpickle", *self._zygote.preload), True, self._zygote.env)
