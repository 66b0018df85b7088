"""What a program and its workers load before they do anything: it is what a start consists of.

A module that is missing in a list below is one that each program, or each executor, waits for.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys

import pytest

import leveret
from leveret.wire import stored
from leveret.worker import seeding

PACKAGE = """_core errors interrupts launch machines main_interpreter nearest paths procedures
    runtime shared waiting"""
WIRE = """absent arrays beside blame by_value chunks class_steps class_watch classes described
    entries errors files foreign functions instead modules notes originals own page pickling replies
    settings setup sharing singletons spaces stored tables tensors unchanged watch"""
WORKER = """calls classes ending functions hosts imports large_replies memory multiprocess notes
    own_page program programs seeding tracebacks"""

# Modules of Python that take long to load.
NEVER = {
    *("_hashlib", "asyncio", "concurrent.futures", "ctypes", "hashlib", "json", "multiprocessing"),
    *("numpy", "pathlib", "random", "socket", "ssl", "tempfile", "urllib.parse"),
}


def modules_of(package: str, names: str) -> set[str]:
    return {package, *(f"{package}.{name}" for name in names.split())}


def own(loaded: list[str]) -> set[str]:
    return {name for name in loaded if name.partition(".")[0] == "leveret"}


def output_of(*words: str) -> str:
    """What a fresh interpreter prints, with this one's search path."""
    code = f"import sys; sys.path[:] = {sys.path!r}\n{words[-1]}"
    done = subprocess.run(
        [sys.executable, *words[:-1], "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_import_loads() -> None:
    code = "site = {*sys.modules}; import leveret; print(*sys.modules.keys() - site)"
    loaded = output_of(code).split()
    assert own(loaded) == modules_of("leveret", PACKAGE)
    assert not {*loaded} & {*NEVER, "dataclasses", "subprocess"}


def test_what_a_worker_loads_for_its_first_call() -> None:
    code = (
        "from leveret import ProcessExecutor\n"
        "with ProcessExecutor(1) as executor:\n"
        "    names = executor.submit(eval, '[*__import__(\"sys\").modules]').result()\n"
        "print(*names)"
    )
    loaded = output_of(code).split()
    parts = modules_of("leveret", f"said {PACKAGE}")
    assert own(loaded) == (
        parts | modules_of("leveret.wire", WIRE) | modules_of("leveret.worker", WORKER)
    )
    assert not {*loaded} & NEVER


def test_what_the_constructor_of_an_executor_loads() -> None:
    code = (
        "from leveret import ProcessExecutor\n"
        "before = {*sys.modules}\n"
        "with ProcessExecutor(1) as executor:\n"
        "    executor.submit(int).result()\n"
        "print(*{*sys.modules} - before)"
    )
    assert {*output_of(code).split()} <= {"_locale"}


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("-O", "-s", "-B"),
        ("-OO", "-E"),
        ("-I",),
        ("-b", "-W", "ignore::ImportWarning"),
        ("-X", "dev", "-X", "utf8"),
    ],
)
def test_workers_get_the_options_of_the_interpreter(given: tuple[str, ...]) -> None:
    code = (
        "from leveret.launch import interpreter_options\n"
        "ours = interpreter_options()\n"
        "import subprocess\n"
        "print(sorted(ours) == sorted(subprocess._args_from_interpreter_flags()), *ours)"
    )
    said = output_of(*given, code).split()
    assert said[0] == "True"
    assert len(said) > len(given) // 2


class Name(str):
    def __repr__(self) -> str:
        return "<Name>"


def test_workers_are_told_texts_of_every_kind() -> None:
    odd = Name("LEVERET_ODD"), Name("'\\\N{SNOWMAN}\n\udcff\"")
    with leveret.ProcessExecutor(1, env=dict([odd]), preload=[Name("colorsys")]) as executor:
        assert executor.submit(os.environ.get, odd[0]).result() == odd[1]
        assert executor.submit(eval, "'colorsys' in __import__('sys').modules").result()


def test_workers_collect_garbage() -> None:
    """It is off while what they need is loaded."""
    with leveret.ProcessExecutor(1) as executor:
        assert executor.submit(gc.isenabled).result()


def test_digests_are_those_of_hashlib() -> None:
    text = b"what is sent"
    assert stored.digest_of(text) == hashlib.blake2b(text, digest_size=16).digest()
    assert seeding._sha512(text).digest() == hashlib.sha512(text).digest()
