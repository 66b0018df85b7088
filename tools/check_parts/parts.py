"""The parts of tools/check, in the order in which they run; each is a function over its Steps.

Every test runs in one part: the preset `dev` has all of ctest but the labels that have parts, and
presets, of their own.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tidy_rules.source import Tree

from .steps import (
    read_cases,
    read_counts,
    read_ctest,
    read_googletest,
    read_junit,
    read_unittest,
)

OUTPUT_BYTES = 1 << 26  # of one test, more than any prints: cases are counted in it
MODEL_FACTOR = "20"  # how many times as many schedules the model tests explore with LEVERET_DEEP=1
BUILT = set()  # presets and environments that this process has made
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")


def venv_tool(steps, name):
    return steps.root / ".venv" / "bin" / name


def tidy(steps):
    """The rules of STYLE.md, white space, spelling, and what the checkers of Python say."""
    tree = Tree(steps.root)
    python = [file.path for file in tree.of_kind("python")]
    shell = [file.path for file in tree.of_kind("shell")]
    spelled = [file.path for file in tree.files if file.is_text]
    words = steps.root / "tools" / "codespell_words.txt"
    steps.run("rules", ["tools/tidy"])
    unittest = [sys.executable, "-B", "-m", "unittest", "discover", "tests/tidy"]
    steps.run("own-tests", unittest, read=read_unittest)
    steps.run("format", ["tools/format"])
    steps.run("spelling", [venv_tool(steps, "codespell"), "--ignore-words", words, *spelled])
    steps.run("ruff", [venv_tool(steps, "ruff"), "check", *python])
    project = tomllib.loads((steps.root / "pyproject.toml").read_text())
    settings = project.get("tool", {}).get("mypy", {})
    said = {"files", "packages", "modules"} & set(settings)
    steps.run("mypy", [venv_tool(steps, "mypy"), *([] if said else ["python"])])
    if shutil.which("shellcheck"):
        steps.run("shellcheck", ["shellcheck", *shell])


def build(steps, preset, prefix=()):
    """Configures and builds a preset, once."""
    if preset in BUILT:
        return True
    if not configure(steps, preset, prefix):
        return False
    command = [*prefix, "cmake", "--build", "--preset", preset, "-j", steps.jobs]
    if not steps.run(f"build-{preset}", command):
        return False
    BUILT.add(preset)
    return True


def configure(steps, preset, prefix=()):
    """Configures a preset; a cache that another place left is made anew."""
    folder = steps.root / "build" / preset
    fresh = []
    cache = folder / "CMakeCache.txt"
    if cache.exists() and f"CMAKE_HOME_DIRECTORY:INTERNAL={steps.root}\n" not in cache.read_text():
        fresh = ["--fresh"]
    launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    command = [*prefix, "cmake", "--preset", preset, *fresh]
    return steps.run(f"configure-{preset}", command, counts=False, env=launcher)


def ctest(steps, preset, prefix=(), env=None):
    results = steps.logs / f"{steps.part}-ctest.xml"
    results.unlink(missing_ok=True)
    command = [*prefix, "ctest", "--preset", preset, "-j", steps.jobs, "--output-junit", results]
    command += ["--test-output-size-passed", OUTPUT_BYTES]
    command += ["--test-output-size-failed", OUTPUT_BYTES]
    if steps.deep:
        command += ["--timeout", "1500"]
    return steps.run("ctest", command, read=read_cases(results), env=env)


def dev(steps):
    """Builds everything with warnings as errors and runs the tests."""
    if build(steps, "dev"):
        ctest(steps, "dev")


def asan(steps):
    """The tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer."""
    if build(steps, "asan"):
        ctest(steps, "asan")


def fixed_addresses():
    """Words before a command that ThreadSanitizer needs where addresses are very random.

    GCC 12's cannot start when the kernel randomises more than 28 bits of mappings.
    """
    try:
        bits = int(Path("/proc/sys/vm/mmap_rnd_bits").read_text())
    except (OSError, ValueError):
        return ()
    words = ("setarch", "-R")
    if bits <= 28 or not shutil.which("setarch"):
        return ()
    works = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if works else ()


def tsan(steps):
    """Unit, conformance and stress tests under ThreadSanitizer."""
    prefix = fixed_addresses()
    if build(steps, "tsan", prefix):
        ctest(steps, "tsan", prefix=prefix)


def model(steps):
    """The protocol classes under the model checker."""
    build_it = ["cmake", "--build", "--preset", "model", "-j", steps.jobs]
    if configure(steps, "dev") and steps.run("build", build_it):
        ctest(steps, "model", env={"LEVERET_MODEL_FACTOR": MODEL_FACTOR} if steps.deep else None)


def instructions(steps):
    """What a task takes, in instructions, beside the budgets of bench/budgets.toml."""
    if not configure(steps, "release"):
        return
    build_it = ["cmake", "--build", "--preset", "release", "-j", steps.jobs]
    if not steps.run("build", [*build_it, "--target", "leveret_counted"]):
        return
    program = steps.root / "build/release/bench/leveret-counted"
    budgets = [sys.executable, "-B", "tools/check_parts/budgets.py", program]
    steps.run("budgets", budgets, read=read_counts)


def spin(steps):
    """What processes agree on, in Promela: every order of steps, kills, planted faults."""
    steps.run("run", ["tests/spin/run", "-j", steps.jobs], read=read_counts)


def package(steps):
    """Installs, and builds and runs what a user would: three ways from C++, and one from C."""
    old_headers(steps)
    if not build(steps, "dev"):
        return
    consumers = steps.root / "tests" / "package"
    with tempfile.TemporaryDirectory(prefix="leveret-package-") as name:
        temporary = Path(name)
        prefix = temporary / "prefix"
        if not steps.run("install", ["cmake", "--install", "build/dev", "--prefix", prefix]):
            return
        found = [f"-DCMAKE_PREFIX_PATH={prefix}"]
        inside = [f"-DLEVERET_SOURCE_DIR={steps.root}"]
        for way, words in (("find_package", found), ("add_subdirectory", inside)):
            folder = temporary / way
            configure = ["cmake", "-G", "Ninja", "-S", consumers / way, "-B", folder, *words]
            build_it = ["cmake", "--build", folder, "-j", steps.jobs]
            test_it = ["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error"]
            if steps.run(f"{way}-configure", configure, counts=False) and steps.run(
                f"{way}-build", build_it, counts=False
            ):
                steps.run(way, test_it, read=read_ctest)
        by_pkg_config(steps, consumers, prefix, temporary)


def old_headers(steps):
    """What calls the system must compile with the headers of glibc 2.28 and Linux 4.18.

    tests/package/old_headers hides what came later in the headers of this machine.
    """
    system = re.compile(r"#include <((sys|linux)/|fcntl|unistd|cstring|string\.h)")
    sources = [path for path in steps.root.glob("src/**/*.cpp") if system.search(path.read_text())]
    hidden = ["-isystem", steps.root / "tests/package/old_headers"]
    compiler = ["g++", "-std=c++20", "-fsyntax-only", *hidden, "-Iinclude", "-Isrc"]
    steps.run("old-headers", [*compiler, *sorted(sources)])


def by_pkg_config(steps, consumers, prefix, temporary):
    """Builds and runs the C++ and the C consumer with nothing but a compiler and pkg-config."""
    folders = sorted(prefix.glob("**/pkgconfig"))
    env = {"PKG_CONFIG_PATH": ":".join(str(folder) for folder in folders)}
    cpp = f"g++ -std=c++20 '{consumers}/main.cpp'"
    c = f"gcc -std=c11 -Wall -Wextra -Werror -pedantic -c '{consumers}/main.c' -o main.o"
    flags = "$(pkg-config --cflags leveret)", "$(pkg-config --static --libs leveret)"
    lines = {
        "pkg_config": f"{cpp} {flags[0]} -o main {flags[1]} && ./main",
        "pkg_config_c": f"{c} {flags[0]} && gcc main.o -o main_c {flags[1]} && ./main_c",
    }
    for name, line in lines.items():
        steps.run(name, ["sh", "-ec", line], cwd=temporary, env=env)


def package_python(steps):
    """The interpreter of an empty environment with the Python package in it, or None.

    The package is built and installed as a user would do it, once for all parts of this process.
    """
    folder = steps.root / "build" / "check" / "python-venv"
    inside = folder / "bin" / "python"
    if "python-venv" in BUILT:
        return inside
    shutil.rmtree(folder, ignore_errors=True)
    pins = ["-c", "tools/requirements.txt"]
    if not steps.run("venv", [sys.executable, "-m", "venv", folder], counts=False):
        return None
    # Most of what the dependencies consist of is never imported here: Python compiles what is.
    if not steps.run(
        "install", [inside, *PIP, "--no-compile", *pins, ".[cli,plot,test,mpi,native]"]
    ):
        return None
    BUILT.add("python-venv")
    return inside


def pytest_parts(folder):
    """What pytest is asked for, by step.

    What Dask keeps for itself, threads and sockets, is not to be taken for what Leveret left.
    """
    clusters = sorted(folder.glob("test_cluster*.py"))
    return {"pytest": [folder, f"--ignore-glob={folder}/test_cluster*"], "pytest-cluster": clusters}


def python(steps):
    """Installs the Python package as a user would, into an empty environment, and tests it."""
    inside = package_python(steps)
    if inside is None:
        return
    with tempfile.TemporaryDirectory(prefix="leveret-python-") as name:
        folder = Path(name)
        where = (
            "import leveret, sys; print(leveret.__file__); "
            "sys.exit(not leveret.__file__.startswith(sys.prefix))"
        )
        steps.run("import", [inside, "-c", where], cwd=folder)
        for step, tests in pytest_parts(steps.root / "python/tests").items():
            results = folder / f"{step}.xml"
            # Most tests wait for processes: several at once take half the time.
            # Files of clusters' tests take unequally long, and need little that tests share.
            shares = "worksteal" if step == "pytest-cluster" else "loadfile"
            options = ["-n", steps.jobs, "--dist", shares, "-p", "no:cacheprovider"]
            command = [inside, "-m", "pytest", *options, f"--junitxml={results}", *tests]
            found = {"PATH": f"{steps.root}/build/dev/bench{os.pathsep}{os.environ['PATH']}"}
            steps.run(step, command, read=read_junit(results), cwd=folder, env=found)
        demo = [inside.with_name("leveret"), "demo", "--out", folder / "demo"]
        steps.run("demo", demo, cwd=folder)


def docs(steps):
    """The code in the documents, all of it: a block that cannot be run here fails."""
    inside = package_python(steps)
    if inside is not None and build(steps, "dev"):
        ctest(steps, "docs", env={"LEVERET_PYTHON": inside, "LEVERET_DOCS_STRICT": "1"})


def quick(steps):
    """For while you work: tidy, unit tests, and conformance tests on `threads`; a minute or so."""
    tidy(steps)
    programs = {
        "unit": "unit_tests",
        "context": "context_tests",
        "conformance": "conformance_tests",
    }
    if not configure(steps, "dev"):
        return
    build_it = ["cmake", "--build", "--preset", "dev", "-j", steps.jobs]
    if not steps.run("build", [*build_it, "--target", *programs.values()]):
        return
    for name, program in programs.items():
        folder = "conformance" if name == "conformance" else "unit"
        command = [f"build/dev/tests/{folder}/{program}"]
        if name == "conformance":
            command.append("--gtest_filter=*/threads_*")
        steps.run(name, command, read=read_googletest)


def site(steps):
    """The documents and the C++ reference as pages in out/site, their links checked."""
    steps.run("build", ["tools/site"])


def wheel(steps):
    """A wheel for each Python that is here, audited and used in an empty environment."""
    steps.run("each", ["tools/wheel", "--tests", "-j", steps.jobs], read=read_counts)


def cross(steps):
    """Compiled for aarch64; the tests of single parts under qemu-user."""
    if shutil.which("aarch64-linux-gnu-g++") is None or shutil.which("qemu-aarch64") is None:
        steps.fail("tools", "apt-get install g++-aarch64-linux-gnu qemu-user")
        return
    if build(steps, "aarch64"):
        ctest(steps, "aarch64")
        app = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "build/aarch64/apps/leveret-app"]
        steps.run("app", [*app, "lu-blocks", "--n", "128", "--check"])


IN_ORDER = (tidy, dev, asan, tsan, model, spin, instructions, package, python, docs)
ASKED_FOR = (
    quick,
    site,
    wheel,
    cross,
)  # which run when they are named, the last two with `deep`, too
PARTS = {part.__name__: part for part in (*IN_ORDER, *ASKED_FOR)}
DEEP = ("dev", "asan", "tsan", "model", "wheel", "cross")  # what `deep` runs, with LEVERET_DEEP=1


def use_venv(root):
    """Puts the programs of .venv before those of the machine."""
    os.environ["PATH"] = f"{root}/.venv/bin{os.pathsep}{os.environ['PATH']}"
