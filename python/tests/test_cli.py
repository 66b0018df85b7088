"""The command line: what it prints, its exit codes, its JSON."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_runner import command_line, invoke, invoke_json, runner

import leveret
from leveret import apps
from leveret.cli import commands, common
from leveret.cli import run as run_command
from leveret.cli.commands import app


def test_help() -> None:
    for command in ("info", "demo", "run", "top", "bench", "trace"):
        assert command in invoke("--help")
        assert "Usage" in invoke(command, "--help")
        assert invoke(command, "-h") == invoke(command, "--help")
    assert invoke("-h") == invoke("--help")


def test_the_list_of_commands_says_what_they_say() -> None:
    for name, what in commands.COMMANDS.items():
        module = importlib.import_module(f"leveret.cli.{name}")
        assert getattr(module, name).__doc__.splitlines()[0] == what
        assert " ".join(what.split()) in " ".join(invoke(name, "-h").split())
    assert "Did you mean 'run'" in runner.invoke(app, ["rum"]).stderr


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
        ("run", "likelihood", "--species", "1"),
        ("run", "lu", "--species", "40"),
        ("run", "fft", "--n", "1000"),
        ("run", "list-ranking", "--out", "x.png"),
        ("run", "lu", "--n", "0"),
        ("run", "lu", "--n", "many"),
        ("run", "lu", "--out", "x.png"),
        ("run", "mandelbrot", "--tasks", "-1"),
        ("run", "mandelbrot", "--tasks", "100000"),
        ("run", "mandelbrot", "--staging", "magic"),
        ("run", "mandelbrot", "--workers", "-1"),
        ("run", "mandelbrot", "--workers", "0"),
        ("run", "mandelbrot", "--machine", "sim", "--workers", "0"),
        ("demo", "--quick", "--workers", "0"),
        ("run", "mandelbrot", "--timeout", "-1"),
        ("run", "mandelbrot", "--machine", "processes", "--pool", "a b"),
        ("run", "mandelbrot", "--pool", "a"),
        ("run", "mandelbrot", "--machine", "sim", "--pool", "a"),
        ("run", "mandelbrot", "--sim-machine", "cell-ps3"),
        ("run", "mandelbrot", "--machine", "sim", "--sim-machine", "cell-ps4"),
        ("run", "mandelbrot", "--machine", "sim", "--sim-machine", "missing.toml"),
        ("run", "mandelbrot", "--machine", "sim", "--sim-machine", "/tmp"),
        ("run", "mandelbrot", "--machine", "sim", "--workers", "1025"),
        ("info", "--machine-file", "cell-ps4"),
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("issue =", "isue =", "did you mean 'mfc.issue'?"),
        ("read_latency =", "# read_latency =", "dma.read_latency is missing"),
        ("poll = { value = 40", "poll = { value = 0", "spe.poll is 0: it must be above 0"),
        ("poll = { value = 40", "poll = { value = -3", "spe.poll is -3: it must be above 0"),
        ("poll = { value = 40", "poll = { value = nan", "spe.poll is not a number"),
        ('unit = "Hz"', 'unit = "GHz"', "clock.rate is in 'GHz': it must be in 'Hz'"),
        ("spes = { value = 6", "spes = { value = 0", "machine.spes is 0"),
        ("spes = { value = 6", "spes = { value = 1025", "from 1 to 1024"),
        ("store = { value = 256", "store = { value = 20", "which spe.kernel and spe.stack need"),
        ('source = "assumed"', 'source = "known"', "must be published, derived, measured or"),
    ],
)
def test_a_machine_file_that_is_wrong_is_told(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = invoke("info", "--machine-file", "cell-ps3")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    arguments = ("run", "lu", "--n", "32", "--machine", "sim", "--sim-machine", str(path))
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == common.USAGE
    assert said in result.stderr and "mine.toml" in result.stderr


def test_a_machine_file_that_was_changed_is_run() -> None:
    def seconds(*arguments: str) -> float:
        report = invoke_json("run", "lu", "--n", "64", "--machine", "sim", *arguments)
        assert report["correct"] and report["machine"] == "sim"
        return float(report["seconds"])

    six, sixteen = seconds("--sim-machine", "cell-ps3"), seconds("--sim-machine", "cell-qs20")
    assert six == seconds("--sim-machine", "cell-ps3") != sixteen
    assert (
        invoke_json("run", "saxpy", "--machine", "sim", "--sim-machine", "cell-qs21")["workers"]
        == 16
    )


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
        ("likelihood", "--n", "60", "--species", "40", "--frames", "2", "--tasks", "3"),
        ("fft", "--n", "1024", "--tasks", "7", "--frames", "2"),
        ("saxpy", "--n", "10007"),
        ("sgemv", "--n", "65", "--no-dice"),
        ("conv2d", "--n", "70"),
        ("aes", "--n", "10007", "--tasks", "3", "--pool", "test-cli"),
        ("list-ranking", "--n", "3000", "--tasks", "20", "--contexts", "3", "--no-dice"),
        ("barnes-hut", "--n", "600", "--frames", "2", "--tasks", "4", "--depth", "2"),
    ],
)
def test_run(machine: str, arguments: tuple[str, ...]) -> None:
    if (arguments[0], machine) == ("list-ranking", "processes"):
        assert invoke("run", *arguments, "--machine", machine, code=common.ENVIRONMENT) == ""
        return
    if machine != "processes" and "--pool" in arguments:
        arguments = arguments[: arguments.index("--pool")]
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


def test_a_picture_is_no_part_of_the_trace(tmp_path: Path) -> None:
    """Drawing it would make the workers of the run look twice as busy as they were."""
    picture, trace = tmp_path / "p.png", tmp_path / "t.json"
    words = ("run", "mandelbrot", "--n", "64", "--tasks", "4", "--no-dice", "--trace", str(trace))
    invoke(*words, "--out", str(picture))
    assert invoke_json("trace", str(trace), "--no-html")["tasks"] == 4
    assert picture.exists()


def test_a_run_slower_than_the_serial_program_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_with(seconds: float, machine: str = "threads", tasks: int = 1_000_000) -> str:
        made = apps.LuReport("lu", seconds, 1.0, 0.0, True, tasks)
        monkeypatch.setattr(run_command, "run_app", lambda *_: made)
        return str(runner.invoke(app, ["run", "lu", "--machine", machine]).stderr)

    assert "slower than the serial program: 1000000 tasks of 1 us each" in run_with(1.5)
    assert "a larger --n or a smaller --tasks" in run_with(1.5)
    assert "is the computer busy with other programs" in run_with(1.5, tasks=10_000)
    assert run_with(0.5) == ""
    assert run_with(1.5, "sim") == ""


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
        result = runner.invoke(app, [*words[:-1], str(tmp_path)])
        assert result.exit_code == common.ENVIRONMENT
        assert f"{option} {tmp_path}: this is a folder" in result.stderr


def test_messages_name_the_next_step(tmp_path: Path) -> None:
    result = runner.invoke(app, ["trace", str(tmp_path / "t.json")])
    assert "`leveret run APP --trace" in result.stderr
    for timeout in ("0", "-1", "nan", "1e300"):
        for command in (["run", "lu"], ["bench", "null-task"], ["bench", "python"]):
            result = runner.invoke(app, [*command, "--timeout", timeout])
            assert result.exit_code == common.USAGE
            assert "--timeout must be seconds" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("saxpy --local-store 0", "--local-store = 0: must be"),
        ("saxpy --workers 100000", "--workers = 100000: must be"),
        ("saxpy --contexts 77", "--contexts = 77: must be"),
        ("saxpy --machine sim --sim-machine nope", "--sim-machine: there is no machine 'nope'"),
        ("saxpy --machine processes --pool a/b", "--pool: must be 1 to 60 letters"),
        ("saxpy --depth -1", "--depth must be from 0"),
        ("saxpy --local-store -1", "--local-store must be from 0"),
        ("saxpy --tasks 4294967296", "--tasks must be 1 to 4294967295"),
        ("saxpy --frames 4294967296", "--frames must be 1 to 4294967295"),
        ("barnes-hut --n 4294967296", "--n must be 1 to 4294967295"),
        ("likelihood --species 1", "--species must be 2 to 4096"),
        ("fft --n 5", "--n: the number of points must be a power of 4, not 5"),
        ("saxpy --staging magic", "--staging must be one of auto, in_place, copy, not 'magic'"),
    ],
)
def test_messages_name_the_option(words: str, said: str) -> None:
    result = runner.invoke(app, ["run", *words.split()])
    assert result.exit_code == common.USAGE
    assert f"leveret: {said}" in result.stderr


def test_memory_that_is_not_there_names_the_option() -> None:
    result = runner.invoke(app, ["run", "saxpy", "--local-store", "99999999999"])
    assert result.exit_code == common.ENVIRONMENT
    assert "leveret: --local-store = 99999999999: must be 1 to 2^32" in result.stderr


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
    assert names[3:] == [
        "LU by blocks",
        "Barnes-Hut",
        "Likelihood of a tree",
        "Fourier transform",
        "SAXPY",
        "SGEMV",
        "CONV2D",
    ]
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
