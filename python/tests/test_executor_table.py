"""The trials of executors see what is there, and no more."""

from __future__ import annotations

import pytest
from conftest import needs_processes

from leveret.report import contestants

pytestmark = needs_processes

TRIALS = [
    ("leveret", "cancel", "yes"),
    ("ppe", "cancel", "no"),
    ("leveret", "culprit", "by name and arguments"),
    ("ppe", "culprit", "no"),
    ("leveret", "others_kept", "19"),
]


@pytest.mark.parametrize(("name", "question", "answer"), TRIALS)
def test_trial(name: str, question: str, answer: str) -> None:
    program = f"from leveret.report import executor_table as t; t.ask({name!r}, {question!r})"
    found, is_ended = contestants.run_apart(program, 120.0)
    assert not is_ended and found == {"answer": answer}
