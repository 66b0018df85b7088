"""The trials of executors see what is there, and no more."""

from __future__ import annotations

from pathlib import Path

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


SEMAPHORE = """
import json, multiprocessing, os, signal
lock = multiprocessing.get_context("spawn").Lock()
print(json.dumps({"name": lock._semlock.name}), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_was_killed_leaves_no_semaphore() -> None:
    found, is_ended = contestants.run_apart(SEMAPHORE, LIMIT)
    assert not is_ended and found["name"].startswith("/mp-")
    assert not Path(f"/dev/shm/sem.{found['name'][1:]}").exists()
