"""Inputs that make no sense are named in the error, with what was given."""

from __future__ import annotations

import decimal
import fractions
import inspect
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from conftest import hold, needs_processes

import leveret
from leveret import ProcessExecutor


@pytest.mark.parametrize(
    ("shape", "kind", "said"),
    [
        (-1, ValueError, "shape must have no negative number, not -1"),
        ((3, -2), ValueError, "not \\(3, -2\\)"),
        (2.5, TypeError, "shape must be an int or a tuple of them, not 2.5"),
        (1 << 62, leveret.OutOfMemory, "bytes: no machine has so much memory"),
        ((1 << 32, 1 << 32), leveret.OutOfMemory, "no machine has so much"),
    ],
)
def test_shapes(shape: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        leveret.shared_array(shape)


def test_shapes_that_make_sense() -> None:
    assert leveret.shared_array(0).shape == (0,)
    assert leveret.shared_array((2, 0, 3)).shape == (2, 0, 3)
    assert leveret.shared_array([2, 3]).shape == (2, 3)


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("preload", 3, TypeError),
        ("cwd", "\0", ValueError),
        ("forward_logs", len, TypeError),
        ("forward_output", len, TypeError),
        ("seed_calls", len, TypeError),
        ("preload", "", ValueError),
        ("initargs", np.array(2), TypeError),
        ("timeout", np.array([1, 2]), TypeError),
        ("timeout", -(10**400), ValueError),
        ("idle_worker_timeout", 10**400, ValueError),
    ],
)
def test_options_of_an_executor(option: str, value: Any, kind: type[Exception]) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(kind, match=option):
        ProcessExecutor(1, **options)


@needs_processes
def test_options_that_are_compared_item_by_item(pool: ProcessExecutor) -> None:
    """An array is none of the words, and neither true nor false."""
    words = np.array(["raise", "return"])
    with pytest.raises(TypeError, match="on_poison must be 'raise' or 'return', not array"):
        pool.map(abs, [1], on_poison=words)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="return_exceptions must be True or False, not array"):
        pool.map(abs, [1], return_exceptions=words)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="cancel must be 'waiting' or 'kill', not array"):
        pool.options(cancel=words)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not 'kil'; did you mean 'kill'"):
        pool.options(cancel="kil")  # type: ignore[arg-type]


@needs_processes
def test_seconds_of_any_kind_of_number() -> None:
    for_all: Any = decimal.Decimal("50.5")
    for_one: Any = fractions.Fraction(99, 2)
    with ProcessExecutor(1, timeout=for_all, preload=()) as executor:
        assert executor.options(timeout=for_one).submit(abs, -1).result() == 1


def test_none_for_an_array_or_tickets_and_no_address() -> None:
    with leveret.Runtime("threads", workers=1) as runtime:
        for array in (leveret.sliced(None), leveret.whole(None)):
            with pytest.raises(TypeError, match=r"argument 0 \(in f8\)"):
                runtime.submit(leveret.builtin("sum"), array)
    for wait in (leveret.wait_any, leveret.wait_all):
        with pytest.raises(TypeError, match="tickets"):
            wait(None)  # type: ignore[arg-type]
    for address in (-1, 1 << 64):
        with pytest.raises(ValueError, match="an address is a number of 64 bits"):
            leveret.procedure(address, "in f8")


@pytest.mark.parametrize("option", ["after", "locks", "priority", "key", "grain", "max_attempts"])
def test_none_for_an_option_of_a_task(library: Path, option: str) -> None:
    null: Any = leveret.builtin("null")
    squares = leveret.load(library, "square_range", "range, out u8")
    out = leveret.sliced(np.zeros(3, "u8"))
    given: Any = {option: None}
    with leveret.Runtime("threads", workers=1) as runtime:
        with pytest.raises(TypeError, match=f"^{option} must be .*, not NoneType"):
            runtime.submit(null, **given)
        with pytest.raises(TypeError, match=f"^{option} must be .*, not NoneType"):
            runtime.parallel(squares, 3, out, **given)
        if option != "after":
            with pytest.raises(TypeError, match=f"^{option} must be .*, not NoneType"):
                runtime.ordered().submit(null, **given)


def test_a_machine_to_simulate_that_is_none() -> None:
    with pytest.raises(TypeError, match="sim_machine must be a name, a path or None, not 3"):
        leveret.Runtime("sim", sim_machine=3)  # type: ignore[arg-type]


def test_a_machine_file_is_told_by_its_own_name() -> None:
    with pytest.raises(ValueError, match=r"no/config\.toml"):
        leveret.Runtime("sim", sim_machine="no/config.toml")


def test_a_null_character_ends_no_name() -> None:
    said = "must have no null character, not"
    for options in ({"machine": "sim\0x"}, {"pool": "a\0b"}, {"sim_machine": "cell-ps3\0x"}):
        (option,) = options
        with pytest.raises(ValueError, match=f"{option} {said} "):
            leveret.Runtime(**{"machine": "sim", **options})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"name {said} 'a.x00b'"):
        leveret.procedure(1, "u8", name="a\0b")


def test_files_whose_names_are_no_text(tmp_path: Path) -> None:
    trace, machine = (os.fsencode(tmp_path) + b"/" + name for name in (b"t\xff", b"m\xff"))
    Path(os.fsdecode(machine)).write_text(leveret._core.machine_file_text("cell-ps3"))
    simulated = os.fsdecode(machine)
    with leveret.Runtime("sim", sim_machine=simulated, trace_events=64) as runtime:
        runtime.submit(leveret.builtin("null")).wait()
        runtime.write_trace(os.fsdecode(trace))
        assert b"leveret.null" in Path(os.fsdecode(trace)).read_bytes()
        with pytest.raises(leveret.Unavailable, match=r"cannot write the trace to .*none/t"):
            runtime.write_trace(tmp_path / "none" / os.fsdecode(b"t\xff"))
        with pytest.raises(ValueError, match="path must have no null character"):
            runtime.write_trace(tmp_path / "t\0x")
        with pytest.raises(TypeError, match="path must be the path of a file, not 3"):
            runtime.write_trace(3)  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("method", ["submit", "submit_bulk", "parallel"])
def test_what_is_no_procedure(method: str) -> None:
    said = rf"{method}\(\) needs a procedure first, not None"
    with leveret.Runtime("threads", workers=1) as runtime, pytest.raises(TypeError, match=said):
        getattr(runtime, method)(None, 3)


@needs_processes
def test_timeouts_and_functions(pool: ProcessExecutor, tmp_path: Path) -> None:
    future = pool.submit(abs, -1)
    assert future.result(math.inf) == 1
    until = tmp_path / "until"
    held = pool.submit(hold, tmp_path / "begun", until)
    wrong: list[tuple[Any, type[Exception]]] = [("x", TypeError), (math.nan, ValueError)]
    for timeout, kind in wrong:
        with pytest.raises(kind, match="timeout must be a number of seconds"):
            held.result(timeout)
        with pytest.raises(kind, match="timeout must be a number of seconds"):
            pool.map(abs, [1], timeout=timeout)
    until.touch()
    assert held.result(1e300) is None
    methods: list[Callable[..., Any]] = [pool.map, pool.submit_many]
    for method in methods:
        with pytest.raises(TypeError, match="fn must be a callable, not None"):
            method(None, [1])


def test_signatures() -> None:
    wanted = {"submit": "procedure", "wait": "timeout", "result": "timeout"}
    for name, parameter in wanted.items():
        owner: Any = leveret.Runtime if name == "submit" else leveret.Ticket
        said = inspect.signature(getattr(owner, name))
        assert parameter in said.parameters, said
        assert not getattr(owner, name).__doc__.startswith("--")


def test_leveret_is_imported_again() -> None:
    text = """
        import sys, leveret
        for name in [each for each in sys.modules if each.partition(".")[0] == "leveret"]:
            del sys.modules[name]
        import leveret as again
        with again.Runtime("threads", workers=1) as runtime:
            print(again is not leveret, runtime.workers)
        """
    assert _run(text) == "True 1\n"


def test_a_subinterpreter_is_told() -> None:
    name = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    pytest.importorskip(name)
    text = f"""
        import leveret, numpy as np, {name} as interpreters
        number = interpreters.create()
        try:
            print(interpreters.run_string(number, "import leveret"))
        except Exception as error:
            print("ImportError" in repr(error) + str(error))
        # What was refused there has left everything here as it was.
        with leveret.Runtime("threads", workers=1) as runtime:
            print(runtime.submit(leveret.builtin("sum"), np.ones(3)).result())
        """
    said = _run(text)
    assert said == "True\n3.0\n" or ("main interpreter" in said and said.endswith("\n3.0\n"))


def _run(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@needs_processes
@pytest.mark.parametrize(
    ("limit", "value", "said"), [("NOFILE", 100, "max_workers"), ("FSIZE", 0, "ulimit -f")]
)
def test_limits_of_the_shell(limit: str, value: int, said: str) -> None:
    text = f"""
        import resource, signal, leveret
        most = resource.getrlimit(resource.RLIMIT_{limit})[1]
        resource.setrlimit(resource.RLIMIT_{limit}, ({value}, most))
        try:
            leveret.ProcessExecutor(90)
        except (OSError, leveret.OutOfMemory) as error:
            print(error)
        """
    assert said in _run(text)


@needs_processes
def test_a_file_beside_the_program_that_is_called_as_a_module_of_pythons(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("VALUE = 3\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import leveret, random\n"
        "with leveret.ProcessExecutor(1) as executor:\n"
        "    print(executor.submit(lambda: random.VALUE).result(60))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "3\n", done.stderr


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (5, TypeError),
        (None, TypeError),
        (["a.so"], TypeError),
        ("a\0b", ValueError),
        ("a\ud800", ValueError),
        (b"no.so", FileNotFoundError),
        ("no.so", FileNotFoundError),
    ],
)
def test_a_path_that_is_none(path: Any, error: type[Exception]) -> None:
    said = "there is no library /.*no.so" if error is FileNotFoundError else "path must "
    with pytest.raises(error, match=said):
        leveret.load(path, "f", "i4")


@pytest.mark.parametrize("names", [[5], [None], ["fifo", b"fifo"], 5])
def test_filters_that_are_no_names(threads: leveret.Runtime, names: Any) -> None:
    with pytest.raises(TypeError, match="names must be"):
        threads.set_filters(names)
