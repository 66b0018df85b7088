"""What the package needs: little; what is missing is named, and nothing is loaded for nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import leveret

# What a program that uses Leveret must not have to wait for.
LATE = ("apps", "cli", "dataclasses", "matplotlib", "numpy", "rich", "subprocess", "typer")
ENTRY = "import leveret_command; leveret_command.main()"


def python(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter; modules in the folder `path` come before all others."""
    before = [str(path)] if path is not None else []
    folders = os.pathsep.join([*before, *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": folders},
    )


def without(folder: Path, *modules: str) -> Path:
    """A folder that makes modules missing: interpreters import a sitecustomize when they start."""
    text = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"
    (folder / "sitecustomize.py").write_text(text)
    return folder


def test_the_import_loads_nothing_that_is_not_needed() -> None:
    done = python("-c", "import sys, leveret; print(*sys.modules)")
    loaded = {name.removeprefix("leveret.").partition(".")[0] for name in done.stdout.split()}
    assert "_core" in loaded
    assert not loaded & set(LATE)


def test_help_loads_no_command() -> None:
    code = "import sys; sys.argv[1:] = ['-h']\nfrom leveret.cli.commands import app\n"
    code += "try: app()\nfinally: print(*sys.modules)"
    done = python("-c", code)
    assert "Usage: " in done.stdout
    loaded = set(done.stdout.split())
    assert "leveret.cli.commands" in loaded
    assert not loaded & {"numpy", "matplotlib", "rich.console", "leveret.cli.run"}


def test_a_page_of_a_trace_loads_nothing_for_the_network() -> None:
    done = python("-c", "import sys, leveret.report.timeline; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "leveret.report.timeline" in loaded
    assert not loaded & {"http.client", "ssl", "urllib.request"}


def test_what_is_loaded_late_is_there() -> None:
    assert set(leveret.__all__) <= set(dir(leveret))
    for name in leveret.__all__:
        assert getattr(leveret, name) is not None
    assert leveret.apps.__name__ == "leveret.apps"
    assert leveret.progress.__name__ == "leveret.progress"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = leveret.nothing
    pytest.importorskip("distributed")
    assert leveret.dask.__name__ == "leveret.dask"


@pytest.mark.parametrize("module", ["typer", "rich"])
@pytest.mark.parametrize("command", [("-c", ENTRY), ("-m", "leveret")])
def test_without_the_extra_cli(tmp_path: Path, module: str, command: tuple[str, str]) -> None:
    done = python(*command, "info", path=without(tmp_path, module))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'leveret[cli]'" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--out", "{}"),
        ("demo", "--kill", "--out", "{}"),
        ("run", "mandelbrot", "--out", "{}"),
        ("bench", "host-wait", "--plot", "{}"),
    ],
)
def test_without_the_extra_plot(tmp_path: Path, words: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    given = [word.format(out) for word in words]
    done = python("-m", "leveret", *given, path=without(tmp_path, "matplotlib"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'leveret[plot]'" in done.stderr
    assert not out.exists()


def test_a_run_without_pictures_needs_no_extra_plot(tmp_path: Path) -> None:
    words = ("run", "mandelbrot", "--n", "16", "--json")
    done = python("-m", "leveret", *words, path=without(tmp_path, "matplotlib"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["typer", "numpy"])  # of the command line; of one command
def test_ctrl_c_while_modules_are_loaded(tmp_path: Path, module: str) -> None:
    """The module that is being loaded says so, and then takes its time."""
    (tmp_path / f"{module}.py").write_text("print('here', flush=True)\ninput()\n")
    folders = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-c", ENTRY, "demo", "--quick", "--out", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": folders},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert said == "leveret: interrupted\n"


def test_an_interpreter_without_the_gil_is_refused() -> None:
    code = "import sys; sys._is_gil_enabled = lambda: {}; import leveret; print('imported')"
    assert python("-c", code.format(True)).stdout == "imported\n"
    done = python("-c", code.format(False))
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("ImportError: leveret needs the GIL: start")
