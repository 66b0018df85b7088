"""The command line where its output can go nowhere, or an input makes no sense: a sentence."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
COMMAND = f'"{sys.executable}" -m leveret'


def _run(line: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["info", "info --json", "--version"])
def test_standard_output_is_closed(command: str, tmp_path: Path) -> None:
    code, said = _run(f"{COMMAND} {command} >&-", tmp_path)
    assert code == 3 and said == "leveret: cannot write to standard output: it is closed\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
@pytest.mark.parametrize("command", ["info", "info --json", "--version", "--help"])
def test_standard_output_is_full(command: str, tmp_path: Path) -> None:
    for buffers in ("PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"):
        code, said = _run(f"{buffers} {COMMAND} {command} >/dev/full", tmp_path)
        assert code == 3
        assert re.fullmatch("leveret: cannot write to standard output: .* space .*\n", said), said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
@pytest.mark.parametrize(
    ("command", "file"),
    [("repro --row T5.5 --out there", "results.md"), ("demo --quick --out there", "trace.json")],
)
def test_files_are_written_where_nobody_reads_the_tables(
    command: str, file: str, tmp_path: Path
) -> None:
    if "demo" in command:
        pytest.importorskip("matplotlib")
    code, said = _run(f"{COMMAND} {command} >/dev/full", tmp_path)
    assert code == 3 and "leveret: cannot write to standard output: " in said
    assert (tmp_path / "there" / file).stat().st_size > 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
def test_a_time_out_that_cannot_be_told_ends_the_process(tmp_path: Path) -> None:
    for buffers in ("PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"):
        line = f"{buffers} {COMMAND} run mandelbrot --frames 100000 --timeout 0.1 2>/dev/full"
        assert _run(line, tmp_path)[0] == 124


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
@pytest.mark.parametrize("buffers", ["PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"])
def test_standard_error_is_full(buffers: str, tmp_path: Path) -> None:
    assert _run(f"{buffers} {COMMAND} run nothing 2>/dev/full", tmp_path)[0] == 2
    assert _run(f"{buffers} {COMMAND} info >/dev/full 2>/dev/full", tmp_path)[0] == 3


@pytest.mark.parametrize("buffers", ["PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"])
@pytest.mark.parametrize("command", ["info", "info --json"])
def test_nobody_reads_standard_output(buffers: str, command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    line = f"exec 3<>pipe 4>pipe 3<&-; {buffers} {COMMAND} {command} >&4"
    code, said = _run(line, tmp_path)
    assert code == 3 and said.startswith("leveret: cannot write to standard output: "), said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "option"), [("run lu", "--trace t.json"), ("run mandelbrot", "--out x.png")]
)
def test_the_working_folder_has_been_removed(command: str, option: str, tmp_path: Path) -> None:
    if "--out" in option:
        pytest.importorskip("matplotlib")
    (tmp_path / "gone").mkdir()
    line = f'cd gone; rmdir "$PWD"; {COMMAND} {command} {option}'
    code, said = _run(line, tmp_path)
    assert code == 3
    assert (
        said == f"leveret: {option}: the working folder has been removed; name a file in another\n"
    )


def _trace(path: Path, name: str = "a") -> Path:
    entry = {"ph": "X", "tid": 0, "cat": "execute", "name": name, "ts": 1, "dur": 1}
    lane = {"ph": "M", "tid": 0, "name": "thread_name", "args": {"name": name}}
    path.write_text(json.dumps([lane, entry]))
    return path


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red]a[/red]", b"[red]a[/red]"),
        ("[/a]", b"[/a]"),
        ("\x1b[2J\r\0\ud800", b"?[2J???"),
        ("\u00e9", b"\\xe9"),  # where the terminal has no such letter
    ],
)
def test_names_of_a_trace_are_shown_as_they_are(name: str, shown: bytes, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leveret", "trace", str(_trace(tmp_path / "t.json", name))],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.count(b" " + shown + b" ") == 2  # the lane, the procedure


def test_a_page_is_not_written_over_its_trace(tmp_path: Path) -> None:
    before = _trace(tmp_path / "t.html").read_text()
    code, said = _run(f"{COMMAND} trace t.html", tmp_path)
    assert code == 2 and "written over t.html; name another with --out" in said
    assert (tmp_path / "t.html").read_text() == before


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"t\xff.json")
    _trace(tmp_path / name)
    code, said = _run(f"{COMMAND} trace $(printf 't\\377.json')", tmp_path)
    assert code == 0 and "timeline: t\\udcff.html" in said
    assert "t?.json" in (tmp_path / name).with_suffix(".html").read_text("utf-8")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is none")
def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    _trace(tmp_path / "t.json")
    code, said = _run(f"{COMMAND} trace t.json --out /dev/full", tmp_path)
    assert code == 3 and "/dev/full cannot be written: No space left" in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("trace t.json --out", "it cannot be written; name another file"),
        ("run mandelbrot --frames 100000 --trace", "it cannot be written; name another file"),
        ("run mandelbrot --frames 100000 --out", "it cannot be written; name another file"),
        ("demo --out", "is a link to nothing; name a folder"),
        ("repro --out", "name a folder"),
    ],
)
def test_links_that_lead_nowhere(command: str, said: str, tmp_path: Path) -> None:
    _trace(tmp_path / "t.json")
    (tmp_path / "link").symlink_to(tmp_path / "no" / "where")
    code, told = _run(f"{COMMAND} {command} link", tmp_path)
    assert code == 3 and said in told


def test_a_link_to_itself(tmp_path: Path) -> None:
    _trace(tmp_path / "t.json")
    (tmp_path / "loop").symlink_to("loop")
    code, said = _run(f"{COMMAND} trace t.json --out loop", tmp_path)
    assert code == 3 and "loop cannot be written: Too many levels" in said


# Its worker would wait for calls for ever.
TIMED_OUT = """
import concurrent.futures, multiprocessing, os
from leveret.cli.common import time_limit

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
    print(pool.submit(os.getpid).result(), flush=True)
    input()
    with time_limit(0.001):
        input()
"""


def test_no_process_of_a_rival_outlives_the_time_out(tmp_path: Path) -> None:
    script = tmp_path / "timed_out.py"
    script.write_text(TIMED_OUT)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, str(script)], stdin=pipe, stdout=pipe) as program:
        assert program.stdin is not None and program.stdout is not None
        worker = os.pidfd_open(int(program.stdout.readline()))
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.wait(60) == 124
    try:
        assert select.select([worker], [], [], 60)[0], "it is still there"
    finally:
        os.close(worker)


def test_standard_error_is_closed(tmp_path: Path) -> None:
    assert _run(f"{COMMAND} info --json 2>&-", tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("command", "code", "wanted"),
    [
        ("trace .", 2, "is a folder"),
        ("trace /dev/null", 2, "/dev/null"),
        ("trace missing.json", 2, "there is no file missing.json"),
        ("run mandelbrot --machine threads --n 99999999999999999999", 2, "--n"),
        ("run mandelbrot --machine threads --out a.png --trace a.png", 2, "the same file"),
        ("run aes --machine threads --n 1099511627776", 3, "memory"),
        ("run saxpy --machine threads --n 99999999999999", 2, "n must be 1 to 4294967295"),
        ("demo --quick --out /dev/null", 3, "--out /dev/null: /dev/null is a file"),
        ("repro --row T1.1 --out /dev/null", 3, "--out /dev/null: it is a file"),
    ],
)
def test_what_makes_no_sense(command: str, code: int, wanted: str, tmp_path: Path) -> None:
    found, said = _run(f"{COMMAND} {command}", tmp_path)
    assert found == code and wanted in said, (found, said)
    assert "must be 1 or more" not in said
