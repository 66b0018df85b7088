"""Reading traces: whole ones, truncated at each byte, and files that are something else."""

from __future__ import annotations

import json
import tracemalloc
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leveret
from leveret.report.timeline import LENGTH_NAMES, Phase, timeline_html
from leveret.report.timeline_svg import busy_workers, columns_of, timeline_svg
from leveret.report.traces import LANES_MAX, TraceError, parse_trace, read_trace, summarise


def event(
    lane: int, name: str, begin: float, duration: float, step: str = "execute"
) -> dict[str, object]:
    return {
        "ph": "X",
        "pid": 1,
        "tid": lane,
        "cat": step,
        "name": name,
        "ts": begin,
        "dur": duration,
        "args": {"task": 1},
    }


def lane_name(lane: int, name: str) -> object:
    return {"ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": {"name": name}}


SMALL = json.dumps(
    {
        "displayTimeUnit": "ns",
        "traceEvents": [
            lane_name(0, "worker 0"),
            lane_name(1, "h\u00f6st"),
            event(0, "a", 100.5, 10),
            event(0, "b", 102, 3),
            event(0, "stage", 98, 2, "stage"),
            event(1, "a", 110.5, 20),
        ],
    },
    ensure_ascii=False,
).encode()


def test_summary() -> None:
    summary = summarise(parse_trace(SMALL))
    assert (summary.events, summary.tasks, summary.ignored) == (4, 3, 0)
    assert summary.length_us == pytest.approx(32.5)
    first, second = summary.lanes
    assert (first.name, first.tasks, second.name) == ("worker 0", 2, "h\u00f6st")
    assert first.busy_us == pytest.approx(10)  # b ran inside a
    assert second.busy_share == pytest.approx(20 / 32.5)
    assert first.steps_us["stage"] == 2
    assert [(p.name, p.tasks) for p in summary.procedures] == [("a", 2), ("b", 1)]
    assert summary.procedures[0].mean_us == pytest.approx(15)


def test_a_trace_of_the_runtime(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with leveret.Runtime(machine, workers=2, trace_events=1024) as runtime:
        runtime.submit_bulk(leveret.builtin("spin"), [(20_000,)] * 40).wait(60)
        runtime.write_trace(path)
    trace = read_trace(path)
    summary = summarise(trace)
    assert trace.ignored == 0
    assert summary.tasks == 40
    assert summary.procedures[0].name == "leveret.spin"
    assert all(0 <= lane.busy_share <= 1 for lane in summary.lanes)


def test_truncated_at_each_byte() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(TraceError) as caught:
            parse_trace(SMALL[:length], "cut.json")
        assert 0 <= caught.value.offset <= length
        assert f"cut.json: byte {caught.value.offset}: " in str(caught.value)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=3))
def test_any_byte_changed(place: int, new: bytes) -> None:
    data = SMALL[:place] + new + SMALL[place + len(new) :]
    try:
        trace = parse_trace(data)
    except TraceError as error:
        assert 0 <= error.offset <= len(data)
    else:
        timeline_html(trace)
        json.dumps(summarise(trace).length_us, allow_nan=False)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        parse_trace(data)
    except TraceError as error:
        assert 0 <= error.offset <= len(data)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"   ", 0),
        (b"\xff\xfe", 0),
        (b'{"a": \xff}', 6),
        (b"null", 0),
        (b"# Changelog", 0),
        (b"17 cats", 0),
        (b"[1, 2, 3]", 0),
        (b'{"traceEvents": [{"ph": "B", "ts": 1}]}', 0),
        (b"{}", 0),
        (b'{"traceEvents": 3}', 0),
        (b'{"traceEvents": [NaN]}', 17),
        (b'{"traceEvents": [1e5, -Infinity]}', 22),
        (b"[" * 100_000, 64),
        (b'{"a":' * 100_000, 64 * 5),
    ],
)
def test_what_is_no_trace(data: bytes, offset: int) -> None:
    with pytest.raises(TraceError) as caught:
        parse_trace(data)
    assert caught.value.offset == offset


@pytest.mark.parametrize("data", [b"\x7fELF\x02", b"\x89PNG", b"# Changelog", b"[1, 2]", b"{}"])
def test_other_files_are_said_to_be_no_trace(data: bytes) -> None:
    with pytest.raises(TraceError, match="no trace"):
        parse_trace(data)


def test_events_that_make_no_sense_are_counted() -> None:
    good = event(0, "a", 1, 1)
    bad: list[object] = [3, None, [], {}, {"ph": "X"}, {"ph": "B", "ts": 1}, "text"]
    for key, value in (
        ("ts", "1"),
        ("ts", True),
        ("ts", 1e300),
        ("dur", -1),
        ("dur", None),
        ("tid", -1),
        ("tid", 10**30),
        ("tid", "x"),
        ("name", 5),
        ("cat", None),
    ):
        bad.append({**good, key: value})
    strange = {**good, "args": [1]}
    trace = parse_trace(json.dumps({"traceEvents": [good, *bad, strange]}).encode())
    assert len(trace.events) == 2
    assert trace.ignored == len(bad)


def test_huge_numbers_are_no_problem() -> None:
    digits = b"9" * 100_000
    data = b'{"traceEvents": [{"ph": "X", "ts": ' + digits + b"}]}"
    good = json.dumps(event(0, "a", 1, 1)).encode()
    assert parse_trace(data.replace(b"]}", b", " + good + b"]}")).ignored == 1


def test_too_many_lanes() -> None:
    # As they are numbered: worker, or 1024 and 1025, and 2048 for each context but the first.
    lanes = [worker + 2048 * context for worker in range(1026) for context in range(32)]
    entries = [event(lane, "a", 1, 1) for lane in lanes]
    assert len(parse_trace(json.dumps(entries).encode()).lanes) == LANES_MAX
    entries.append(event(1026, "a", 1, 1))
    with pytest.raises(TraceError, match=f"{LANES_MAX + 1} lanes"):
        parse_trace(json.dumps(entries).encode())


def test_memory_is_bounded_by_the_size_of_the_file() -> None:
    claims = b'{"count": 18446744073709551615, "traceEvents": [' + b"[]," * 50_000 + b"[]]}"
    tracemalloc.start()
    with pytest.raises(TraceError, match="50001 entries"):
        parse_trace(claims)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * len(claims)


def test_the_page_stands_alone() -> None:
    nasty = "</script><script>alert(1)</script>"
    page = timeline_html(parse_trace(json.dumps([event(0, nasty, 0, 1)]).encode()), nasty)
    assert nasty not in page
    assert page.count("<script") == 2
    assert "http://" not in page
    assert "https://" not in page
    assert 'src="' not in page
    start = page.index('id="data">') + len('id="data">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["names"] == [nasty]


def page_data(page: str) -> dict[str, Any]:
    start = page.index('id="data">') + len('id="data">')
    return cast("dict[str, Any]", json.loads(page[start : page.index("</script>", start)]))


def test_a_title_may_be_any_text() -> None:
    for title, shown in (
        ("@DATA@", "@DATA@"),
        ("a\udcff<", "a?&lt;"),
        ("\\1\\g<0>", "\\1\\g&lt;0&gt;"),
    ):
        page = timeline_html(parse_trace(SMALL), title)
        assert f"<title>{shown}</title>" in page and page.encode()
    assert page_data(timeline_html(parse_trace(SMALL), "@DATA@"))["names"]


def test_the_page_has_phases_and_a_table_of_procedures() -> None:
    trace = parse_trace(json.dumps([event(0, "a", 0, 5), event(1, "a", 1, 50)]).encode())
    data = page_data(timeline_html(trace, phases=[Phase("first", 0, 20.5)]))
    assert data["phases"] == [["first", 0, 20.5]]
    (row,) = data["procedures"]
    assert (row["name"], row["tasks"], row["longest_us"]) == ("a", 2, 50)
    assert len(row["lengths"]) == len(data["length_names"]) == len(LENGTH_NAMES)
    assert row["lengths"][1:3] == [1, 1]
    assert page_data(timeline_html(trace))["phases"] == []


def test_a_column_of_the_picture_is_what_the_lane_executed() -> None:
    entries = [event(0, "a", 0, 50), event(0, "inside", 10, 20), event(0, "b", 75, 25)]
    trace = parse_trace(json.dumps(entries).encode())
    a, none, b = (sum(column.values()) for column in columns_of(trace, 0, 4)[1:])
    assert (a, none, b) == pytest.approx((1, 0, 1))
    assert columns_of(trace, 7, 3) == [{}, {}, {}]


def test_contexts_of_a_worker_are_one_busy_worker() -> None:
    entries = [event(0, "a", 0, 100), event(1, "a", 50, 50), event(2, "b", 0, 50)]
    trace = parse_trace(json.dumps(entries).encode())
    lanes = [columns_of(trace, lane, 2) for lane in range(3)]
    count, busy = busy_workers(lanes, ["worker 0", "worker 0, context 1", "host"])
    assert count == 2
    assert busy == pytest.approx([2, 1])
    assert busy_workers([], []) == (0, [])


def test_the_picture_is_xml_of_bounded_size() -> None:
    nasty = "</svg><script>&'\""
    entries = [event(i % 4, f"{nasty} {i % 30}", i, 0.9) for i in range(20_000)]
    trace = parse_trace(json.dumps(entries).encode())
    picture = timeline_svg(trace, nasty, [Phase(nasty, 0, trace.length_us)])
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert nasty in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")} | {
        text.text for text in root.iter("{http://www.w3.org/2000/svg}title")
    }
    assert len(picture) < 200_000
    ElementTree.fromstring(timeline_svg(parse_trace(b'{"traceEvents": []}'), "empty"))


def test_the_page_leaves_out_the_shortest_events() -> None:
    entries = [event(0, "a", i, 0.5 + (i % 10)) for i in range(100)]
    page = timeline_html(parse_trace(json.dumps(entries).encode()), events_max=20)
    start = page.index('id="data">') + len('id="data">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert len(data["events"]) == 20
    assert data["dropped"] == 80
    assert min(e[4] for e in data["events"]) >= 8


def test_an_empty_trace() -> None:
    trace = parse_trace(b'{"traceEvents": []}')
    assert summarise(trace).tasks == 0
    assert "0 events" in timeline_html(trace) or timeline_html(trace)
