"""The command line: what it prints, its exit codes, its JSON."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import leveret
from leveret import apps
from leveret.cli import app, bench, common
from leveret.cli import run as run_command
from leveret.report import plots


def make_runner() -> CliRunner:
    """Standard output and error apart: older versions of click need to be asked."""
    try:
        options: dict[str, Any] = {"mix_stderr": False}
        return CliRunner(**options)
    except TypeError:
        return CliRunner()


runner = make_runner()


def invoke(*arguments: str, code: int = 0) -> str:
    """Runs the command in this process; standard output alone."""
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result.stdout


def invoke_json(*arguments: str) -> dict[str, Any]:
    printed = invoke(*arguments, "--json")
    read = json.loads(printed)
    assert isinstance(read, dict)
    assert printed == json.dumps(read) + "\n"
    return read


def test_help() -> None:
    for command in ("info", "demo", "run", "top", "bench", "trace"):
        assert command in invoke("--help")
        assert "Usage" in invoke(command, "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("run",),
        ("run", "tetris"),
        ("run", "lu", "--frames", "3"),
        ("run", "aes", "--frames", "3"),
        ("run", "aes", "--n", "0"),
        ("run", "aes", "--contexts", "17"),
        ("run", "list-ranking", "--tasks", "0"),
        ("run", "list-ranking", "--out", "x.png"),
        ("run", "lu", "--n", "0"),
        ("run", "lu", "--n", "many"),
        ("run", "lu", "--out", "x.png"),
        ("run", "mandelbrot", "--tasks", "-1"),
        ("run", "mandelbrot", "--tasks", "100000"),
        ("run", "mandelbrot", "--staging", "magic"),
        ("run", "mandelbrot", "--workers", "-1"),
        ("run", "mandelbrot", "--timeout", "-1"),
        ("run", "mandelbrot", "--machine", "processes", "--pool", "a b"),
        ("run", "mandelbrot", "--colour"),
        ("trace",),
        ("trace", "missing.json"),
        ("top", "me"),
        ("top", "0"),
        ("top", "99999999999"),
        ("top", "--json"),
        ("top", "--interval", "0"),
        ("top", "--timeout", "0"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert invoke(*arguments, code=common.USAGE) == ""


def test_info() -> None:
    facts = invoke_json("info")
    assert facts["version"] == leveret.__version__
    assert facts["cores"] == leveret.available_cores()
    assert {"name": "threads", "works": True, "why_not": None} in facts["machines"]
    printed = invoke("info")
    for machine in leveret.machines():
        assert machine.name in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("mandelbrot", "--n", "64"),
        ("mandelbrot", "--n", "64", "--tasks", "7", "--no-dice", "--frames", "2"),
        ("lu", "--n", "64"),
        ("lu", "--n", "64", "--tasks", "1", "--workers", "2"),
        ("barnes-hut", "--n", "600"),
        ("aes", "--n", "10007", "--tasks", "3", "--pool", "test-cli"),
        ("list-ranking", "--n", "3000", "--tasks", "20", "--contexts", "3", "--no-dice"),
        ("barnes-hut", "--n", "600", "--frames", "2", "--tasks", "4", "--depth", "2"),
    ],
)
def test_run(machine: str, arguments: tuple[str, ...]) -> None:
    if (arguments[0], machine) == ("list-ranking", "processes"):
        assert invoke("run", *arguments, "--machine", machine, code=common.ENVIRONMENT) == ""
        return
    facts = invoke_json("run", *arguments, "--machine", machine)
    assert facts["app"] == arguments[0]
    assert facts["correct"] is True
    assert facts["machine"] == machine
    assert facts["seconds"] > 0
    assert facts["tasks"] > 0
    assert facts["idle_shares"] is None


def test_run_with_files(tmp_path: Path) -> None:
    picture, trace, page = (tmp_path / name for name in ("p.png", "t.json", "t.html"))
    arguments = ("run", "mandelbrot", "--n", "100", "--out", str(picture), "--trace", str(trace))
    printed = invoke(*arguments)
    assert "right" in printed
    assert "speed-up" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    facts = invoke_json("trace", str(trace))
    assert facts["tasks"] > 0
    assert facts["html"] == str(page)
    assert page.read_text().startswith("<!doctype html>")
    page.unlink()
    assert "mandelbrot" in invoke("trace", str(trace), "--no-html")
    assert not page.exists()
    facts = invoke_json(*arguments)
    assert len(facts["idle_shares"]) >= 2
    assert all(0 <= share <= 1 for share in facts["idle_shares"])


def test_a_broken_trace(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"traceEvents": [')
    result = runner.invoke(app, ["trace", str(broken)])
    assert result.exit_code == common.USAGE
    assert "byte 17" in result.stderr
    assert not broken.with_suffix(".html").exists()


def test_missing_here(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "missing" / "trace.json")
    invoke("run", "lu", "--n", "16", "--trace", nowhere, code=common.ENVIRONMENT)
    file = tmp_path / "file"
    file.write_text("")
    invoke("demo", "--quick", "--out", str(file / "out"), code=common.ENVIRONMENT)


def test_a_wrong_result_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = apps.LuReport("lu", 1.0, 1.0, 0.5, False, 3)
    monkeypatch.setattr(run_command, "run_app", lambda *_: wrong)
    assert "WRONG" in invoke("run", "lu", code=common.FAILED)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (leveret.TaskFailed("it failed", leveret.Status.TASK_FAILED), common.FAILED),
        (leveret.TimeoutError("too late", leveret.Status.TIMED_OUT), common.TIMED_OUT),
        (leveret.Unavailable("no such device", leveret.Status.UNAVAILABLE), common.ENVIRONMENT),
        (leveret.InvalidArgument("too big", leveret.Status.TOO_BIG), common.USAGE),
        (OSError("disk full"), common.ENVIRONMENT),
        (KeyboardInterrupt(), common.INTERRUPTED),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(run_command, "run_app", fail)
    result = runner.invoke(app, ["run", "lu", "--json"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert str(error) in result.stderr


def command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "leveret", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_as_a_program(tmp_path: Path) -> None:
    done = command_line("info", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"] == leveret.__version__
    done = command_line("run", "mandelbrot", "--frames", "100000", "--timeout", "0.5")
    assert done.returncode == common.TIMED_OUT, done.stderr
    assert "not done after 0.5 s" in done.stderr
    assert done.stdout == ""


def test_the_version() -> None:
    assert invoke("--version") == f"leveret {leveret.__version__}\n"


def test_ctrl_c_ends_native_code() -> None:
    """The application runs in C++ for minutes: the signal must not wait for its end."""
    command = [sys.executable, "-m", "leveret", "run", "mandelbrot", "--frames", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until_busy(process.pid)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (common.INTERRUPTED, "")
    assert said == "leveret: interrupted\n"


def wait_until_busy(pid: int) -> None:
    """Until a second thread of the process has run for a tenth of a second: a worker."""
    ticks = os.sysconf("SC_CLK_TCK")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for stat_file in Path(f"/proc/{pid}/task").glob("*/stat"):
            fields = stat_file.read_text().rsplit(")", 1)[1].split()
            if stat_file.parent.name != str(pid) and int(fields[11]) > ticks // 10:
                return
    pytest.fail("no worker was busy within a minute")


def test_files_without_a_folder_are_refused_before_the_work(tmp_path: Path) -> None:
    for option in ("--trace", "--out"):
        path = str(tmp_path / "missing" / "file")
        words = ["run", "mandelbrot", "--frames", "100000", option, path]
        result = runner.invoke(app, words)
        assert result.exit_code == common.ENVIRONMENT
        assert f"{option} {path}: there is no folder" in result.stderr


def test_messages_name_the_next_step(tmp_path: Path) -> None:
    result = runner.invoke(app, ["trace", str(tmp_path / "t.json")])
    assert "`leveret run APP --trace" in result.stderr
    for timeout in ("0", "-1", "nan", "1e300"):
        for command in (["run", "lu"], ["bench", "null-task"], ["bench", "python"]):
            result = runner.invoke(app, [*command, "--timeout", timeout])
            assert result.exit_code == common.USAGE
            assert "--timeout must be seconds" in result.stderr


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    facts = invoke_json("demo", "--quick", "--out", str(out))
    assert facts["correct"] is True
    names = [row["name"] for row in facts["runs"]]
    assert names[:3] == [
        "Mandelbrot, 1 task, diced",
        "Mandelbrot, 128 tasks",
        "Mandelbrot, 1 task, whole",
    ]
    assert names[3:] == ["LU by blocks", "Barnes-Hut"]
    for file in facts["files"].values():
        assert Path(file).stat().st_size > 1000
    assert (out / "mandelbrot.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "trace.json").read_text())["traceEvents"]


def test_a_demo_with_a_wrong_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = apps.lu

    def wrong(*arguments: Any, **options: Any) -> apps.LuReport:
        return apps.LuReport(**{**vars(real(*arguments, **options)), "correct": False})

    monkeypatch.setattr(apps, "lu", wrong)
    assert "WRONG" in invoke("demo", "--quick", "--out", str(tmp_path), code=common.FAILED)


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
    for own in ("python", "python-native", "python-function", "python-array", "crash-test"):
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
    assert invoke("bench", code=common.ENVIRONMENT) == ""


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("python-native", "stream_over_ppe"),
        ("python-function", "p50_over_ppe"),
        ("python-array", "over_memcpy"),
        ("crash-test", "ppe_once_done"),
    ],
)
def test_the_benches_of_processes(name: str, figure: str) -> None:
    if all(m.name != "processes" or m.unavailable for m in leveret.machines()):
        pytest.skip("processes do not work here")
    done = command_line("bench", name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures[figure]["value"] > 0
    if name == "crash-test":
        assert figures["once_done"]["value"] == 20 and figures["always_done"]["value"] == 19


def test_the_bench_of_python_itself() -> None:
    done = command_line("bench", "python", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures["bulk_over_ppe"]["value"] < figures["one_over_ppe"]["value"] < 1


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
