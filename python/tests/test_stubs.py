"""The hand-written types of the extension module say what is there."""

from __future__ import annotations

import inspect
import subprocess
import sys

import leveret
import pytest
from leveret import _core


def test_stubs_agree_with_the_module() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "leveret._core", "--ignore-disjoint-bases"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_everything_public_is_documented() -> None:
    for name in leveret.__all__:
        thing = getattr(leveret, name)
        if inspect.isclass(thing) or callable(thing):
            assert thing.__doc__, f"leveret.{name} has no docstring"
    for kind in (_core.Runtime, _core.Ticket, _core.Procedure):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name} has no docstring"
