"""Traces as Runtime.write_trace() writes them: read with care, and summed up.

A trace file may come from anywhere and be cut off anywhere: TraceError says at which byte it stops
making sense. Memory is bounded by a constant times the file's size.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXECUTE = "execute"
TIME_US_MAX = 1e15  # 31 years
# 1024 workers, the service and the host, each with up to 32 contexts. With more the file is wrong.
LANES_MAX = 1026 * 32


class TraceError(ValueError):
    """The file is no trace. offset: the byte where that shows."""

    def __init__(self, path: str, offset: int, why: str) -> None:
        super().__init__(f"{path}: byte {offset}: {why}")
        self.offset = offset


@dataclass(frozen=True)
class Event:
    """One step of one task on one lane. Times in microseconds, from the first event."""

    lane: int
    step: str
    name: str
    begin_us: float
    duration_us: float
    task: int


@dataclass
class Trace:
    """events: by begin. lanes: number to name. ignored: entries that were no events of Leveret.

    start_us: of the first event, on the clock of the runtime, which began when it was opened.
    """

    events: list[Event] = field(default_factory=list)
    lanes: dict[int, str] = field(default_factory=dict)
    ignored: int = 0
    start_us: float = 0.0

    @property
    def length_us(self) -> float:
        return max((e.begin_us + e.duration_us for e in self.events), default=0.0)


@dataclass(frozen=True)
class LaneSummary:
    """busy_us: inside procedures; nested ones count once."""

    lane: int
    name: str
    tasks: int
    busy_us: float
    busy_share: float
    idle_share: float
    steps_us: dict[str, float]


@dataclass(frozen=True)
class ProcedureSummary:
    name: str
    tasks: int
    total_us: float
    mean_us: float
    median_us: float
    longest_us: float


@dataclass(frozen=True)
class Summary:
    length_us: float
    events: int
    ignored: int
    tasks: int
    lanes: list[LaneSummary]
    procedures: list[ProcedureSummary]


def _parse_integer(digits: str) -> float:
    return int(digits) if len(digits) < 20 else float(digits)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _depth_offset(text: str, depth_max: int = 64) -> int:
    """Where brackets are nested deeper than any trace nests them."""
    depth = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth += 1 if match[0] in "[{" else -1
        if depth > depth_max:
            return match.start()
    return 0


def _load_json(path: str, data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        why = "this is not UTF-8 text, and so no trace"
        raise TraceError(path, error.start, why) from None
    if not text.strip():
        raise TraceError(path, 0, "the file is empty")
    try:
        return json.loads(text, parse_int=_parse_integer, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        why = "the file ends too early" if error.pos >= len(text.rstrip()) else error.msg
        if text.lstrip()[0] not in "{[":
            offset = 0
            why = "this is no trace: it is not JSON, as Runtime.write_trace() and --trace write it"
        raise TraceError(path, offset, why) from None
    except RecursionError:
        offset = len(text[: _depth_offset(text)].encode())
        raise TraceError(path, offset, "nested too deeply for a trace") from None
    except ValueError as error:
        match = re.search(r"-?Infinity|NaN", text)
        offset = len(text[: match.start()].encode()) if match else 0
        raise TraceError(path, offset, str(error)) from None


def _number(entry: dict[str, Any], key: str) -> float | None:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= TIME_US_MAX else None


def _lane(entry: dict[str, Any]) -> int | None:
    value = entry.get("tid", 0)
    return value if isinstance(value, int) and 0 <= value < 2**32 else None


def _read_event(entry: dict[str, Any]) -> Event | None:
    begin, duration, lane = _number(entry, "ts"), _number(entry, "dur"), _lane(entry)
    name, step = entry.get("name"), entry.get("cat")
    if begin is None or duration is None or duration < 0 or lane is None:
        return None
    if not isinstance(name, str) or not isinstance(step, str):
        return None
    args = entry.get("args")
    task = args.get("task") if isinstance(args, dict) else None
    return Event(lane, step, name, begin, duration, task if isinstance(task, int) else -1)


def _read_lane_name(entry: dict[str, Any], trace: Trace) -> None:
    args, lane = entry.get("args"), _lane(entry)
    name = args.get("name") if isinstance(args, dict) else None
    if entry.get("name") == "thread_name" and isinstance(name, str) and lane is not None:
        trace.lanes[lane] = name


def parse_trace(data: bytes, path: str = "trace") -> Trace:
    """Reads a trace from its bytes; `path` is for messages. Raises TraceError."""
    top = _load_json(path, data)
    entries = top.get("traceEvents") if isinstance(top, dict) else top
    if not isinstance(entries, list):
        raise TraceError(path, 0, 'there is no list "traceEvents": this is no trace')
    trace = Trace()
    raw: list[Event] = []
    for entry in entries:
        event = None
        if isinstance(entry, dict) and entry.get("ph") == "M":
            _read_lane_name(entry, trace)
            continue
        if isinstance(entry, dict) and entry.get("ph") == "X":
            event = _read_event(entry)
        if event is None:
            trace.ignored += 1
        else:
            raw.append(event)
    if entries and not raw and not trace.lanes:
        why = f"none of its {len(entries)} entries is an event: this is no trace of Leveret"
        raise TraceError(path, 0, why)
    start = min((e.begin_us for e in raw), default=0.0)
    trace.start_us = start
    trace.events = sorted(
        (Event(e.lane, e.step, e.name, e.begin_us - start, e.duration_us, e.task) for e in raw),
        key=lambda e: (e.begin_us, -e.duration_us),
    )
    for lane in sorted({e.lane for e in raw}):
        trace.lanes.setdefault(lane, f"worker {lane}")
    if len(trace.lanes) > LANES_MAX:
        raise TraceError(path, 0, f"{len(trace.lanes)} lanes; a trace has one for each worker")
    return trace


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace file. Raises TraceError, or OSError when it cannot be read."""
    return parse_trace(Path(path).read_bytes(), os.fspath(path))


def covered_us(events: Iterable[Event]) -> float:
    """Time covered by events sorted by begin; where they are nested, once."""
    total = end = 0.0
    for event in events:
        begin = max(event.begin_us, end)
        end = max(end, event.begin_us + event.duration_us)
        total += max(0.0, end - begin)
    return total


def _summarise_lane(lane: int, name: str, events: list[Event], length_us: float) -> LaneSummary:
    executed = [e for e in events if e.step == EXECUTE]
    busy = covered_us(executed)
    steps: dict[str, float] = {}
    for event in events:
        steps[event.step] = steps.get(event.step, 0.0) + event.duration_us
    share = busy / length_us if length_us > 0 else 0.0
    return LaneSummary(lane, name, len(executed), busy, share, 1.0 - share, steps)


def _summarise_procedure(name: str, durations: list[float]) -> ProcedureSummary:
    durations.sort()
    total = math.fsum(durations)
    middle = durations[len(durations) // 2]
    count = len(durations)
    return ProcedureSummary(name, count, total, total / count, middle, durations[-1])


def summarise(trace: Trace) -> Summary:
    """Sums a trace up by lane and by procedure, procedures with most time first."""
    by_lane: dict[int, list[Event]] = {lane: [] for lane in trace.lanes}
    by_name: dict[str, list[float]] = {}
    for event in trace.events:
        by_lane[event.lane].append(event)
        if event.step == EXECUTE:
            by_name.setdefault(event.name, []).append(event.duration_us)
    length = trace.length_us
    lanes = [_summarise_lane(n, trace.lanes[n], by_lane[n], length) for n in sorted(by_lane)]
    procedures = [_summarise_procedure(name, times) for name, times in by_name.items()]
    procedures.sort(key=lambda p: -p.total_us)
    tasks = sum(p.tasks for p in procedures)
    return Summary(length, len(trace.events), trace.ignored, tasks, lanes, procedures)
