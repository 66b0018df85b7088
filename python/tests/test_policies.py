"""What a host thread does while it waits: a choice of the runtime, or of one wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leveret

NULL, SUM = (leveret.builtin(name) for name in ("null", "sum"))


@pytest.mark.parametrize("policy", [None, "help", "park", "spin", "yield", "directed"])
def test_policy_of_one_wait(machine: str, policy: Any) -> None:
    with leveret.Runtime(machine, workers=1) as runtime:
        x = np.arange(10.0)
        assert runtime.submit(SUM, x).result(60, policy=policy) == 45
        runtime.submit(NULL).wait(60, policy)
        tickets = [runtime.submit(SUM, x) for _ in range(4)]
        leveret.wait_any(tickets, 60, policy)
        leveret.wait_all(tickets, 60, policy=policy)
        more = [runtime.submit(SUM, x) for _ in range(4)]
        assert set(leveret.as_completed(more, 60, policy)) == set(more)


def test_policy_that_there_is_none_of(threads: leveret.Runtime) -> None:
    ticket = threads.submit(NULL)
    for wait in (ticket.wait, ticket.result):
        with pytest.raises(ValueError, match="policy must be one of help, park, spin, yield"):
            wait(60, "ask nicely")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="policy"):
            wait(60, 3)  # type: ignore[arg-type]
    for several in (leveret.wait_any, leveret.wait_all):
        with pytest.raises(ValueError, match="directed"):
            several([ticket], 60, "of_runtime")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="wait must be one of"):
        leveret.Runtime(wait="never")  # type: ignore[arg-type]
    ticket.wait(60)
