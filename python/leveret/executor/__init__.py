"""ProcessExecutor: Python functions in worker processes that may crash."""

from .failures import BrokenExecutor, RemoteTraceback
from .process_executor import ProcessExecutor

__all__ = ["BrokenExecutor", "ProcessExecutor", "RemoteTraceback"]
