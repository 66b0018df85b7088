"""The bench "bad-inputs": 200 inputs, 7 of which are bad in five ways, on 2 workers.

Three make the function crash, one makes it run without an end, one leaks 2 GB, one calls exit(),
one frees memory twice. Each executor gets a time limit and a memory limit for its calls where it
has such options. Counted are the good inputs whose results come, and the bad ones that are told
apart: whose future fails otherwise than those of good inputs. Executors that do not end are ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from typing import Any

from . import contestants
from .figures import figure, report

INPUTS = 200
BAD = {
    31: "segfault",
    62: "endless",
    83: "segfault",
    104: "leak",
    125: "exit",
    146: "double free",
    177: "segfault",
}
RIVALS = ("ppe", "loky", "pebble", "mpire")
CALL_SECONDS, CALL_BYTES = 5.0, 1 << 30
LEAK_BYTES, PIECE_BYTES = 2 << 30, 64 << 20
_leaked: list[bytes] = []


def treat(i: int, kind: str) -> int:
    """The function: native code, as it were, that some inputs upset."""
    libc = ctypes.CDLL(None)
    if kind == "segfault":
        ctypes.string_at(8)
    elif kind == "endless":
        while True:
            pass
    elif kind == "leak":
        while len(_leaked) * PIECE_BYTES < LEAK_BYTES:
            _leaked.append(b"\1" * PIECE_BYTES)
    elif kind == "exit":
        libc.exit(3)
    elif kind == "double free":
        libc.malloc.restype = ctypes.c_void_p
        place = ctypes.c_void_p(libc.malloc(64))
        libc.free(place)
        libc.free(place)
    return i * i


def contest(name: str, seconds: float) -> None:
    """One executor; prints what it did as JSON, and ends the process."""
    begin = time.monotonic()
    executor = contestants.ALL[name](2, CALL_SECONDS, CALL_BYTES)
    inputs = [(i, BAD.get(i, "")) for i in range(INPUTS)]
    found = judge(executor.outcomes(treat, inputs, seconds))
    found["seconds"] = time.monotonic() - begin
    print(json.dumps(found), flush=True)
    with contextlib.suppress(BaseException):
        executor.close()
    os._exit(0)  # who hangs here hangs


def judge(outcomes: list[Any]) -> dict[str, Any]:
    """What came of the inputs."""
    innocent = {type(outcomes[i]) for i in range(INPUTS) if i not in BAD} - {int}
    culprits = [
        i
        for i in BAD
        if isinstance(outcomes[i], BaseException) and type(outcomes[i]) not in innocent
    ]
    return {
        "results": sum(outcomes[i] == i * i for i in range(INPUTS) if i not in BAD),
        "culprits": len(culprits),
        "tracebacks": sum(map(has_traceback, (outcomes[i] for i in culprits))),
    }


def has_traceback(error: BaseException) -> bool:
    """Whether an error says where in the worker: of its process, or of the exception there."""
    cause = str(error.__cause__ or "")
    return bool(getattr(error, "traceback", None)) or "in treat" in cause


def measure(quick: bool) -> dict[str, Any]:
    """Runs the bench and returns its report."""
    seconds = 30.0 if quick else 60.0
    figures: dict[str, Any] = {}
    for name in ("leveret", *RIVALS):
        if name not in contestants.installed():
            continue
        program = f"from leveret.report import bad_inputs; bad_inputs.contest({name!r}, {seconds})"
        found, is_ended = contestants.run_apart(program, 2 * seconds)
        is_ours = name == "leveret"
        key = "" if is_ours else f"{name}_"
        for what, goal in (("results", "= 193"), ("culprits", "= 7"), ("tracebacks", "= 7")):
            if is_ours or what != "tracebacks":
                value = float(found.get(what, 0))
                figures[key + what] = figure([value], "calls", goal if is_ours else "")
        figures[key + "seconds"] = figure([found.get("seconds", 2 * seconds)], "s")
        if is_ended or not found:
            print(f"{name} did not end by itself, or took its host with it", file=sys.stderr)
    return report("bad-inputs", figures)
