"""The parts of tools/check, in order: what each makes, and its tests; functions over its Steps.

Every test runs in one part: the preset `dev` has all of ctest but the labels that have parts, and
presets, of their own. Builds are made ahead of tests, see lanes.py.
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

from .lanes import Part
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
BUILT_ONCE = ("dev",)  # presets with a namesake "-once"
ONCE = "CMAKE_UNITY_BUILD:BOOL=ON\n"  # in the cache of a folder that the namesake configured
ONCE_ONLY = "LEVERET_CHECK_ONCE"  # in the environment: nothing is kept for another check
LAUNCHER = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
# Most of what the dependencies consist of is never imported here: Python compiles what is.
PIP_QUICKLY = {"PIP_COMPILE": "0"}
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")


def venv_tool(steps, name):
    return steps.root / ".venv" / "bin" / name


def make_tidy(steps):
    """Fills .venv, which other parts use, too."""
    set_up = [steps.root / "scripts/lib/setup.sh", "test"]
    return steps.run("set-up", set_up, counts=False, env=None if keeps_objects() else PIP_QUICKLY)


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
    """Configures and builds a preset."""
    command = [*prefix, "cmake", "--build", "--preset", preset, "-j", steps.jobs]
    return configure(steps, preset, prefix, BUILT_ONCE) and steps.run(f"build-{preset}", command)


def configure(steps, preset, prefix=(), once=()):
    """Configures a preset; a cache that another place left is made anew.

    A folder that is not there yet, on a machine that keeps no compiled files, is for this check
    alone: a preset among `once` is configured by its namesake for that, and stays so.
    """
    folder = steps.root / "build" / preset
    cache = folder / "CMakeCache.txt"
    kept = cache.read_text() if cache.exists() else ""
    fresh = []
    if kept and f"CMAKE_HOME_DIRECTORY:INTERNAL={steps.root}\n" not in kept:
        fresh, kept = ["--fresh"], ""
    is_once = ONCE in kept if kept else preset in once and not keeps_objects()
    name = f"{preset}-once" if preset in BUILT_ONCE and is_once else preset
    command = [*prefix, "cmake", "--preset", name, *fresh]
    env = LAUNCHER if keeps_objects() else {}
    return steps.run(f"configure-{preset}", command, counts=False, env=env)


def keeps_objects():
    """Whether there is a cache of compiled files from before this check.

    One that has none of these files makes the builds take more than twice as long.
    """
    if ONCE_ONLY in os.environ:
        return False
    words = ("CCACHE_DIR", "XDG_CACHE_HOME")
    own, cache = (Path(os.environ[word]) if word in os.environ else None for word in words)
    home = Path.home()
    folders = [own] if own else [(cache or home / ".cache") / "ccache", home / ".ccache"]
    return bool(shutil.which("ccache")) and any(folder.is_dir() for folder in folders)


def ctest(steps, which, prefix=(), env=None):
    """Runs a test preset, or the tests that these options of ctest name."""
    results = steps.logs / f"{steps.part}-ctest.xml"
    results.unlink(missing_ok=True)
    options = ["--preset", which] if isinstance(which, str) else [*which, "--no-tests=error"]
    command = [*prefix, "ctest", *options, "-j", steps.jobs, "--output-junit", results]
    command += ["--test-output-size-passed", OUTPUT_BYTES]
    command += ["--test-output-size-failed", OUTPUT_BYTES]
    if steps.deep:
        command += ["--timeout", "1500"]
    return steps.run("ctest", command, read=read_cases(results), env=env)


def make_dev(steps):
    return build(steps, "dev")


def dev(steps):
    """Builds everything with warnings as errors and runs the tests."""
    ctest(steps, "dev")


def make_asan(steps):
    return build(steps, "asan")


def asan(steps):
    """The tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer."""
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


def make_tsan(steps):
    return build(steps, "tsan", fixed_addresses())


def tsan(steps):
    """Unit, conformance and stress tests under ThreadSanitizer."""
    ctest(steps, "tsan", prefix=fixed_addresses())


def make_model(steps):
    return steps.run("build", ["cmake", "--build", "--preset", "model", "-j", steps.jobs])


def model(steps):
    """The protocol classes under the model checker."""
    # Not by the preset: other tests of build/dev may run now, and ctest keeps notes where it runs.
    # They step back behind the tests, so on a full machine they take many times as long as alone.
    ctest(
        steps,
        ["--test-dir", "build/dev/tests/model", "--output-on-failure", "--timeout", "1200"],
        env={"LEVERET_MODEL_FACTOR": MODEL_FACTOR} if steps.deep else None,
    )


def instructions(steps):
    """What a task takes, in instructions, beside the budgets of bench/budgets.toml."""
    program = python_build(steps) / "bench/leveret-counted"
    budgets = [sys.executable, "-B", "tools/check_parts/budgets.py", program]
    steps.run("budgets", budgets, read=read_counts)


def spin(steps):
    """What processes agree on, in Promela: every order of steps, kills, planted faults."""
    steps.run("run", ["tests/spin/run", "-j", steps.jobs], read=read_counts)


def package(steps):
    """Installs, and builds and runs what a user would: three ways from C++, and one from C."""
    old_headers(steps)
    consumers = steps.root / "tests" / "package"
    with tempfile.TemporaryDirectory(prefix="leveret-package-") as name:
        temporary = Path(name)
        prefix = temporary / "prefix"
        if not steps.run("install", ["cmake", "--install", "build/dev", "--prefix", prefix]):
            return
        found = [f"-DCMAKE_PREFIX_PATH={prefix}"]
        inside = [f"-DLEVERET_SOURCE_DIR={steps.root}", "-DCMAKE_UNITY_BUILD=ON"]
        # What it shares and hides is asked, not how quick it is; it may set no CMAKE_BUILD_TYPE.
        inside += ["-DCMAKE_UNITY_BUILD_BATCH_SIZE=16", "-DCMAKE_CXX_FLAGS=-O0 -DNDEBUG"]
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
        old_libraries(steps, prefix)


def old_headers(steps):
    """What calls the system must compile with the headers of glibc 2.28 and Linux 4.18.

    tests/package/old_headers hides what came later in the headers of this machine. The files are
    compiled as one, which is a quarter of the work.
    """
    system = re.compile(r"#include <((sys|linux)/|fcntl|unistd|cstring|string\.h)")
    sources = [path for path in steps.root.glob("src/**/*.cpp") if system.search(path.read_text())]
    hidden = ["-isystem", steps.root / "tests/package/old_headers"]
    together = steps.logs / "old_headers.cpp"
    together.write_text("".join(f'#include "{source}"\n' for source in sorted(sources)))
    compiler = ["g++", "-std=c++20", "-fsyntax-only", *hidden, "-Iinclude", "-Isrc"]
    steps.run("old-headers", [*compiler, together])


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


def old_libraries(steps, prefix):
    """Users are told to link what systems before glibc 2.34 have in libraries of their own."""
    uses = f"nm -u '{next(prefix.glob('**/libleveret.a'))}' | grep -wq dlopen"
    told = ["grep -q '^Libs.private:.* -ldl' **/leveret.pc", "grep -wq dl **/leveretTargets.cmake"]
    line = f"shopt -s globstar; {uses}; {'; '.join(told)}"
    steps.run("old-libraries", ["bash", "-ec", line], cwd=prefix)


def interpreter(steps):
    """That of an empty environment with the Python package in it."""
    return steps.root / "build" / "check" / "python-venv" / "bin" / "python"


def starts_quickly(steps):
    """The environment of programs that start Python hundreds of times.

    Some machines tell Python to keep no compiled modules; without them, starting it takes three
    times as long. Some tell it to buffer nothing, as few users do. The threads that NumPy's
    OpenBLAS starts would spin for work, which doubles what an import takes; with the shortest
    time-out (its logarithm, in cycles) they go to sleep.
    """
    folder = steps.root / "build" / "check" / "bytecode"
    usual = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONUNBUFFERED": ""}
    return usual | {"PYTHONPYCACHEPREFIX": folder, "OPENBLAS_THREAD_TIMEOUT": "4"}


def python_build(steps):
    """Where the package for Python is compiled."""
    return steps.root / "build" / "check" / "python-build"


def make_python(steps):
    """Builds and installs the package as a user would do it, into an empty environment.

    The program that counts instructions comes with it: what is counted is what users get, but that
    a machine that keeps compiled files compiles each by itself, which gives the same counts.
    """
    inside = interpreter(steps)
    folder = inside.parent.parent
    shutil.rmtree(folder, ignore_errors=True)
    pins = ["-c", "tools/requirements.txt"]
    if not steps.run("venv", [sys.executable, "-m", "venv", folder], counts=False):
        return False
    targets = ("build.targets=leveret_wheel;leveret_counted", "cmake.define.LEVERET_BENCH=ON")
    settings = (f"build-dir={python_build(steps)}", *targets)
    install = [inside, *PIP, *pins, *(f"--config-settings={each}" for each in settings)]
    env = (LAUNCHER if keeps_objects() else {}) | PIP_QUICKLY
    return steps.run("install", [*install, ".[cli,plot,test,mpi,native]"], env=env)


def pytest_parts(folder):
    """What pytest is asked for, by step.

    What Dask keeps for itself, threads and sockets, is not to be taken for what Leveret left.
    """
    clusters = sorted(folder.glob("test_cluster*.py"))
    return {"pytest": [folder, f"--ignore-glob={folder}/test_cluster*"], "pytest-cluster": clusters}


def python(steps):
    """Installs the Python package as a user would, into an empty environment, and tests it."""
    inside = interpreter(steps)
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
            env = found | starts_quickly(steps)
            steps.run(step, command, read=read_junit(results), cwd=folder, env=env)
        demo = [inside.with_name("leveret"), "demo", "--out", folder / "demo"]
        steps.run("demo", demo, cwd=folder, env=starts_quickly(steps))


def docs(steps):
    """The code in the documents, all of it: a block that cannot be run here fails."""
    found = {"LEVERET_PYTHON": interpreter(steps), "LEVERET_DOCS_STRICT": "1"}
    ctest(steps, "docs", env=found | starts_quickly(steps))


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


def has_aarch64(steps):
    if shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64"):
        return True
    return steps.fail("tools", "apt-get install g++-aarch64-linux-gnu qemu-user")


def make_cross(steps):
    return has_aarch64(steps) and build(steps, "aarch64")


def cross(steps):
    """Compiled for aarch64; the tests of single parts under qemu-user."""
    ctest(steps, "aarch64")
    app = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "build/aarch64/apps/leveret-app"]
    steps.run("app", [*app, "lu-blocks", "--n", "128", "--check"])


# Each stands behind those that it needs.
IN_ORDER = (
    Part(tidy, make_tidy, makes_beside=True),
    Part(spin),
    Part(dev, make_dev, needs=("tidy",), keeps_time=True),
    Part(python, make_python, keeps_time=True),
    Part(instructions, needs=("python",)),
    Part(package, needs=("dev",)),
    Part(docs, needs=("tidy", "dev", "python"), keeps_time=True),
    Part(asan, make_asan, keeps_time=True),
    Part(tsan, make_tsan, keeps_time=True),
    Part(model, make_model, needs=("dev",)),
)
# These run when they are named, the last two with `deep`, too.
ASKED_FOR = (
    Part(quick, needs=("tidy",), keeps_time=True),
    Part(site, needs=("tidy",)),
    Part(wheel, needs=("tidy",), keeps_time=True),
    Part(cross, make_cross),
)
PARTS = {part.name: part for part in (*IN_ORDER, *ASKED_FOR)}
DEEP = ("dev", "asan", "tsan", "model", "wheel", "cross")  # what `deep` runs, with LEVERET_DEEP=1


def use_venv(root):
    """Puts the programs of .venv before those of the machine."""
    os.environ["PATH"] = f"{root}/.venv/bin{os.pathsep}{os.environ['PATH']}"
