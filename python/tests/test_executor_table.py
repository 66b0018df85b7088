"""The trials of executors see what is there, and no more."""

from __future__ import annotations

import pytest
from conftest import LIMIT, needs_processes

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
    # Longer than the table's own time for an answer: other programs may have the cores.
    program = (
        "from leveret.report import executor_table as t; "
        f"t.GIVE_UP_SECONDS = {LIMIT / 2}; t.ask({name!r}, {question!r})"
    )
    found, is_ended = contestants.run_apart(program, LIMIT)
    assert not is_ended and found == {"answer": answer}
