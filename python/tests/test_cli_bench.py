"""leveret bench: what it finds, runs, prints and draws."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import command_line, invoke, invoke_json, runner
from conftest import DEEP
from matplotlib.figure import Figure

import leveret
from leveret.cli import bench, common
from leveret.cli.commands import app
from leveret.report import plots

REPORT = {
    "bench": "null-task",
    "figures": {
        "ratio": {
            "value": 1.1,
            "unit": "ratio",
            "spread": [1.0, 1.2],
            "runs": 7,
            "rival": "ping-pong 100 ns",
            "goal": "<= 1.25",
        },
        "tail": {
            "value": 9.0,
            "unit": "us",
            "spread": None,
            "runs": 7,
            "rival": None,
            "goal": "< 5",
        },
        "none": {"value": None, "unit": "", "spread": None, "runs": 0, "rival": "no", "goal": ""},
    },
    "machine": {"cpu": "test", "cores": 2},
    "commit": "abc",
}


@pytest.fixture
def fake_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A leveret-bench that is a script of the test."""

    def install(script: str) -> None:
        path = tmp_path / "leveret-bench"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(bench, "find_bench", lambda: path)

    return install


def test_parts_of_a_figure_are_a_table_of_their_own(
    fake_bench: Callable[[str], None],
) -> None:
    parts = {"ratio": {"the host": 30.0, "the worker": 12.5}}
    fake_bench(f"echo '{json.dumps({**REPORT, 'parts': parts})}'")
    shown = invoke("bench", "null-task")
    assert "of ratio" in shown
    assert "the worker" in shown
    assert "12.5" in shown
    assert invoke_json("bench", "null-task")["parts"] == parts


def test_bench(fake_bench: Callable[[str], None]) -> None:
    fake_bench(f"cat <<'END'\n{json.dumps(REPORT)}\nEND")
    assert invoke_json("bench", "null-task") == REPORT
    printed = invoke("bench", "null-task")
    assert "<= 1.25" in printed
    assert "met" in printed
    assert "MISSED" in printed
    assert "ping-pong" not in printed
    assert "ping-pong" in invoke("bench", "null-task", "--peers")


def test_a_bench_is_drawn(fake_bench: Callable[[str], None], tmp_path: Path) -> None:
    figures = {
        f"{way}_idle_us_at_{length}": {"value": idle}
        for way, idle in (("ynr", 3.0), ("directed", 4.5))
        for length in (300, 1, 30)
    }
    assert plots.idle_times({"figures": figures})["directed"] == [(1, 4.5), (30, 4.5), (300, 4.5)]
    fake_bench(f"cat <<'END'\n{json.dumps({'bench': 'host-wait', 'figures': figures})}\nEND")
    picture = tmp_path / "idle.png"
    invoke("bench", "host-wait", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    invoke("bench", "null-task", "--plot", str(picture), code=common.USAGE)


def bandwidth_figures() -> dict[str, dict[str, Any]]:
    """Figures of get-compute-put: contexts read n times as fast as double buffering."""
    figures: dict[str, dict[str, Any]] = {"dep_64": {"value": 4.5}}
    for size in (1024, 16):
        figures[f"ro_simple_{size}"] = {"value": 1.0}
        figures[f"ro_double_{size}"] = {"value": 2.0}
        for count in (1, 2, 3, 15):
            figures[f"ro_contexts{count}_{size}"] = {"value": 2.0 * count}
        for cycles in (0, 16):
            for way, value in (("simple", 1.0), ("double", 3.0), ("contexts", None)):
                figures[f"rcw_{way}_{size}_{cycles}"] = {"value": value}
    figures["rcw_contexts_16_0"] = {"value": 1.5}
    return figures


def test_bandwidths_are_drawn(fake_bench: Callable[[str], None], tmp_path: Path) -> None:
    figures = bandwidth_figures()
    read, updated = plots.bandwidths({"figures": figures})
    assert read[("contexts", 15)] == {16: 30.0, 1024: 30.0}
    assert read[("simple", None)] == {16: 1.0, 1024: 1.0}
    assert len(read) == 6
    assert updated[("contexts", 0)] == {16: 1.5}
    assert ("contexts", 16) not in updated
    fake_bench(f"cat <<'END'\n{json.dumps({'bench': 'get-compute-put', 'figures': figures})}\nEND")
    picture = tmp_path / "bandwidth.png"
    invoke("bench", "get-compute-put", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_panels_show_ratios(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))
    report = {"bench": "get-compute-put", "figures": bandwidth_figures()}
    plots.save_bench(report, tmp_path / "no.png")
    panels = [
        {line.get_label(): list(line.get_ydata()) for line in axes.lines if len(line.get_xdata())}
        for axes in saved[0].axes
    ]
    lines = [{name: ys for name, ys in panel.items() if name[0] != "_"} for panel in panels]
    assert lines[0]["double"] == [2.0, 2.0]
    assert "contexts: 1" not in lines[0]
    assert lines[1]["contexts: 15"] == [15.0, 15.0]
    assert lines[2] == {"0 cycles per byte": [3.0, 3.0], "16 cycles per byte": [3.0, 3.0]}
    assert lines[3] == {"0 cycles per byte": [0.5]}


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    assert set(plots.BENCHES) == set(bench.DRAWN)
    for name in ("get-compute-put", "host-wait", "null-task"):
        with pytest.raises(ValueError, match=r"figures|no plot"):
            plots.save_bench({"bench": name, "figures": {}}, tmp_path / "no.png")
    assert not (tmp_path / "no.png").exists()


def test_bench_list(fake_bench: Callable[[str], None]) -> None:
    fake_bench("echo 'null-task   round trip'; echo 'wake   from sleep'")
    benches = invoke_json("bench")["benches"]
    for own in bench._OWN:
        assert benches.pop(own)
    assert benches == {"null-task": "round trip", "wake": "from sleep"}
    assert "from sleep" in invoke("bench")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo wrong answer >&2; exit 1", common.FAILED),
        ("exit 2", common.USAGE),
        ("kill -9 $$", common.ENVIRONMENT),
        ("echo no JSON", common.ENVIRONMENT),
        ("echo '{}'", common.ENVIRONMENT),
        ("exec sleep 30", common.TIMED_OUT),
    ],
)
def test_a_bench_that_goes_wrong(fake_bench: Callable[[str], None], script: str, code: int) -> None:
    fake_bench(script)
    assert invoke("bench", "null-task", "--timeout", "2", code=code) == ""


def test_no_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise FileNotFoundError("leveret-bench is not installed")

    monkeypatch.setattr(bench, "find_bench", missing)
    result = runner.invoke(app, ["bench", "--json"])
    assert "leveret-bench is not installed" in result.stderr
    assert set(json.loads(result.stdout)["benches"]) == set(bench._OWN)
    assert invoke("bench", "null-task", code=common.ENVIRONMENT) == ""


def test_the_bench_is_built_from_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    inside = tmp_path / ".venv" / "leveret" / "cli" / "bench.py"
    monkeypatch.setattr(bench, "__file__", str(inside))
    with pytest.raises(FileNotFoundError, match="no part of the package; build it in a checkout"):
        bench.find_bench()
    built = tmp_path / "build" / "release" / "bench" / "leveret-bench"
    for path in (tmp_path / "bench" / "CMakeLists.txt", built):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    assert bench.find_bench() == built


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("python-native", "stream_over_ppe"),
        ("python-function", "p50_over_ppe"),
        ("python-array", "over_memcpy"),
        ("crash-test", "ppe_once_done"),
        ("bad-inputs", "seconds"),
        ("ctrl-c", "seconds_to_exit"),
        ("time-out", "overrun_ms"),
        ("start", "first_result_over_ppe"),
        ("cluster", "slice_overhead"),
    ],
)
def test_the_benches_of_processes(name: str, figure: str) -> None:
    if name == "cluster" and not DEEP:
        pytest.skip("starts four clusters: LEVERET_DEEP=1 runs it")
    if name == "ctrl-c" and not DEEP:
        pytest.skip("rivals may hang when they are interrupted: LEVERET_DEEP=1 runs it")
    if all(m.name != "processes" or m.unavailable for m in leveret.machines()):
        pytest.skip("processes do not work here")
    done = command_line("bench", name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures[figure]["value"] > 0
    if name == "crash-test":
        assert figures["once_done"]["value"] == 20 and figures["always_done"]["value"] == 19
    if name == "bad-inputs":
        assert figures["results"]["value"] == 193 and figures["culprits"]["value"] == 7


def test_the_bench_of_programs_at_random(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    says = {
        "leveret-exercise": {"programs": 10, "failures": 1, "seconds": 0.5},
        "leveret-exercise-planted": {"planted": 3, "planted_found": 2},
    }
    for name, report in says.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{json.dumps(report)}'\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    figures = invoke_json("bench", "exercise")["figures"]
    values = {name: figure["value"] for name, figure in figures.items() if name != "seconds"}
    assert values == {"programs": 40, "failures": 4, "planted_found": 2, "planted": 3}
    assert figures["planted_found"]["goal"] == "= 3"
    assert "planted" not in invoke_json("bench", "exercise", "--quick")["figures"]
    (tmp_path / "leveret-exercise").write_text("#!/bin/sh\nexit 2\n")
    assert invoke("bench", "exercise", code=common.ENVIRONMENT) == ""


def test_the_bench_of_the_papers_has_a_key_for_each_row() -> None:
    figures = invoke_json("bench", "repro", "--quick")["figures"]
    rows = {"T5.2", "T5.3_start", "T5.3_end", "T6.8_SLED"}
    assert set(figures) == {"share_in_band", "predictions", "seconds", *rows}
    assert figures["T5.3_end"]["unit"] == "cycles" and figures["predictions"]["value"] == 3
    assert figures["share_in_band"]["value"] == pytest.approx(2 / 3)


def test_the_bench_of_python_itself() -> None:
    done = command_line("bench", "python", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    # How they compare with the executors of Python depends on what else the machine does now.
    assert 0 < figures["bulk_over_ppe"]["value"] < figures["one_over_ppe"]["value"]


@pytest.mark.parametrize(
    ("value", "goal", "met"),
    [
        (1.0, "<= 1", True),
        (1.1, "<=1", False),
        (0.9, ">= 0.9", True),
        (1.0, "< 1", False),
        (2.0, "> 1", True),
        (None, "<= 1", None),
        (1.0, "", None),
        (1.0, "as low as can be", None),
    ],
)
def test_goals(value: float | None, goal: str, met: bool | None) -> None:
    assert bench.is_met(value, goal) is met


def test_the_installed_bench_lists_itself() -> None:
    try:
        path = bench.find_bench()
    except FileNotFoundError:
        pytest.skip("this build has no leveret-bench")
    assert os.access(path, os.X_OK)
    assert "null-task" in invoke_json("bench")["benches"]
    result = runner.invoke(app, ["bench", "tetris"])
    assert (result.exit_code, result.stdout) == (common.USAGE, "")
    assert result.stderr == "leveret: there is no bench 'tetris'; `leveret bench` lists them\n"
