"""The interpreters of this machine that Leveret can have a wheel for."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 9)
STABLE = (3, 12)  # from here on one wheel is for all: wheel.py-api in pyproject.toml
ASK = (
    "import sys, sysconfig, venv, ensurepip; print(*sys.version_info[:3], "
    "sys.implementation.name, sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
)


@dataclass(frozen=True)
class Python:
    """An interpreter. free_threaded: built without the GIL; its wheel is for it alone."""

    path: Path
    version: tuple
    free_threaded: bool

    @property
    def name(self):
        return f"{self.version[0]}.{self.version[1]}" + ("t" if self.free_threaded else "")

    @property
    def is_stable(self):
        return self.version[:2] >= STABLE and not self.free_threaded


def ask(path):
    """What the interpreter is; None for one that cannot make environments, or is too old."""
    try:
        done = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False)
    except OSError:
        return None
    words = done.stdout.split()
    if done.returncode or len(words) != 5 or words[3] != "cpython":
        return None
    version = tuple(map(int, words[:3]))
    return Python(Path(path), version, words[4] == "1") if version[:2] >= OLDEST else None


def candidates():
    """Paths of what may be an interpreter: on the PATH, and those of pyenv."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/*/bin"))
    for folder in folders:
        for path in sorted(folder.glob("python3.*")):
            if re.fullmatch(r"python3\.\d+t?", path.name) and "shims" not in path.parts:
                yield path


def find(named):
    """Those that are named, or one for each version that is here, oldest first."""
    if named:
        found = [ask(shutil.which(name) or name) for name in named]
        for name, python in zip(named, found):
            if python is None:
                raise SystemExit(f"wheel: {name} is no CPython 3.9 or later with venv and pip")
        return found
    newest = {}
    for path in candidates():
        python = ask(path)
        if python and python.version > getattr(newest.get(python.name), "version", ()):
            newest[python.name] = python
    return sorted(newest.values(), key=lambda python: (python.version, python.free_threaded))
