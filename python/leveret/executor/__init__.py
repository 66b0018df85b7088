"""ProcessExecutor: Python functions in worker processes that may crash.

Before a call
    caller             what can be asked of an executor: submit(), map(), run() ...
    process_executor   its constructor and its end
    options            of single calls; environment: of processes; checking: whether they make sense

A call
    work               as its worker gets it; names: as messages name it
    future             as its caller has it; event_loop: on an event loop
    mapping            calls for many items (items); sources: those that have calls to make

While it runs
    pool               the queue, and what is under way: pace (how many), replies (room for their
                       results), search_path, python_runtime
    ends               what becomes of calls that ended: failures, mortem (whose fault a death is)
    notes              what was logged; telling: the user's callbacks; counting: what they are told
    ending             ends what runs; closing: all pools, at the end of the program

For joblib
    joblib_backend     registers what joblib talks to (joblib_parallel)
    joblib_calls       its batches; joblib_arrays: their arrays; joblib_pools: executors that stay
"""

from .failures import BrokenExecutor, RemoteTraceback
from .process_executor import ProcessExecutor

__all__ = ["BrokenExecutor", "ProcessExecutor", "RemoteTraceback"]
