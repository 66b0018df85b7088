"""What an installed package must do with nothing beside it: import, native calls, survive a crash.

Run by the interpreter of an environment into which only the wheel was installed, in a folder of its
own: what it imports is what the wheel holds.
"""

import os
import signal
import subprocess
import sys

import numpy as np

import leveret


def die_of_seven(number: int) -> int:
    if number == 7:
        os.kill(os.getpid(), signal.SIGSEGV)
    return number * number


def check_place() -> None:
    assert leveret.__file__.startswith(sys.prefix), leveret.__file__
    header = os.path.join(leveret.include_folder(), "leveret", "leveret.h")
    assert os.path.exists(header), header
    assert not os.path.exists(os.path.join(os.path.dirname(leveret.__file__), "bin"))


def check_native_calls() -> None:
    x = np.arange(1000.0)
    for machine in ("threads", "sim", "processes"):
        y = np.ones(1000)
        with leveret.Runtime(machine, workers=2) as runtime:
            runtime.submit(leveret.builtin("axpy"), 2.0, x, y).wait()
        assert (y == 2 * x + 1).all(), machine


def check_crash() -> None:
    with leveret.ProcessExecutor(2, max_attempts=2) as executor:
        futures = [executor.submit(die_of_seven, number) for number in range(20)]
        failed = [number for number, future in enumerate(futures) if future.exception()]
        results = [future.result() for future in futures if not future.exception()]
    assert failed == [7], failed
    assert results == [number * number for number in range(20) if number != 7]
    assert isinstance(futures[7].exception(), leveret.Poison)


def check_command_line() -> None:
    """It works with the extra `cli`, and says what to install without it."""
    command = os.path.join(os.path.dirname(sys.executable), "leveret")
    done = subprocess.run([command, "info"], capture_output=True, text=True, check=False)
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        assert done.returncode == 3, done
        assert "pip install 'leveret[cli]'" in done.stderr, done
    else:
        assert done.returncode == 0, done


if __name__ == "__main__":
    check_place()
    check_native_calls()
    check_crash()
    check_command_line()
    print(f"leveret {leveret.__version__} works on Python {sys.version.split()[0]}")
