"""A plugin of pytest: joblib's own test_parallel.py on the leveret backend in loky's place.

    python -m pytest -p joblib_suite -p no:cacheprovider <joblib>/test/test_parallel.py

with this folder on PYTHONPATH. Tests that ask for loky itself are left out: they are named below.
"""

from __future__ import annotations

from typing import Any

import joblib._parallel_backends
import joblib.parallel
import pytest

import leveret
from leveret.executor.joblib_parallel import LeveretBackend

# What begins so, and why it is not for this backend.
NOT_APPLICABLE = {
    "test_auto_memmap_on_arrays_from_generator[loky]": "asks for np.memmap, gets shared memory",
    "test_memmapping_leaks[loky]": "looks for files in temp_folder: there are none",
    "test_nested_parallelism_limit[parallel_config-loky]": "asks for the name LokyBackend",
    "test_nested_parallelism_limit[parallel_backend-loky]": "asks for the name LokyBackend",
    "test_nested_parallel_warnings[": "loky in loky has workers; ours runs here, and warns",
    "test_multiple_generator_call_separated_gc[": "asks that a second call fails; ours does not",
    "test_error_capture[loky]": "asks for new workers after an exception; ours stay if they can",
    "test_loky_reuse_workers[": "looks into loky's executor",
    "test_threadpool_limitation_in_child_override[": "closes loky's executor",
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        for begin, why in NOT_APPLICABLE.items():
            if item.name.startswith(begin):
                item.add_marker(pytest.mark.skip(reason="not for this backend: " + why))


leveret.register_joblib("loky")
for module in (joblib._parallel_backends, joblib.parallel):
    module.LokyBackend = LeveretBackend
