"""Refuses the import of the package in a subinterpreter.

The extension refuses that, too, but too late: by then nanobind, which it is made with, has taken
the subinterpreter for the one that all its types live in, and no method of leveret can be called
any more in the main interpreter either. So this is asked before the extension is loaded.
"""

import importlib
import sys

_NAME = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


def _is_here() -> bool:
    try:
        interpreters = importlib.import_module(_NAME)
    except ImportError:  # a Python without it; the extension asks, too
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


if not _is_here():
    raise ImportError(
        "leveret works in the main interpreter of a process only: import it there, not in a "
        "subinterpreter"
    )
