"""Runs the steps of a check, each into a log of its own, and counts what passed and failed.

A step is one command. A plain step (a format check, a build) counts as one check; a step with a
reader of test results counts the tests that it ran, and fails when it ran none.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

TAIL_LINES = 60
OUTPUTS_MAX = 5  # failed tests whose output is shown; the log has all
STEP_SECONDS_MAX = int(os.environ.get("LEVERET_STEP_SECONDS", "1800"))
MORE = "on a slow machine LEVERET_STEP_SECONDS allows more, and what a build has made stays"
SECONDS_TO_END = 5
CASE_ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,.*)? \(\d+ ms\)$", re.MULTILINE)


@dataclass
class Count:
    """Numbers of tests; they add up over steps and parts.

    Some readers name the tests that failed, and keep what those printed.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: list[str] = field(default_factory=list, compare=False)
    outputs: list[str] = field(default_factory=list, compare=False)

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.names += other.names
        self.outputs += other.outputs
        return self

    def __str__(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def read_ctest(log):
    """Counts from ctest's summary; None when there is none."""
    text = log.read_text(errors="replace")
    summary = re.search(r"tests passed, (\d+) tests? failed out of (\d+)", text)
    if not summary:
        return None
    failed, total = int(summary[1]), int(summary[2])
    skipped = len(re.findall(r"^\s*\d+ - .* \(Skipped\)", text, re.MULTILINE))
    return Count(total - failed - skipped, failed, skipped)


def read_unittest(log):
    """Counts from the last lines of Python's unittest; None when there are none."""
    text = log.read_text(errors="replace")
    ran = re.findall(r"^Ran (\d+) tests? in", text, re.MULTILINE)
    if not ran:
        return None
    number = {word: int(count) for word, count in re.findall(r"(\w+)=(\d+)", text.split("\n")[-2])}
    failed = number.get("failures", 0) + number.get("errors", 0)
    skipped = number.get("skipped", 0)
    return Count(max(0, int(ran[-1]) - failed - skipped), failed, skipped)


def read_counts(log):
    """Counts from a last line "N passed, N failed"; None when it says something else."""
    lines = log.read_text(errors="replace").splitlines() or [""]
    said = re.fullmatch(r"(\d+) passed, (\d+) failed", lines[-1])
    return Count(int(said[1]), int(said[2])) if said else None


def read_cases(path):
    """A reader of counts from what `ctest --output-junit` writes.

    A GoogleTest program in it counts as the cases that it says it ran, and as one failure more when
    it failed but none of them did: it crashed or was stopped. Any other test counts as one.
    """

    def read(_log):
        try:
            tests = list(ElementTree.parse(path).iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return None
        total = Count()
        for test in tests:
            output = test.findtext("system-out") or ""
            count = _cases(output)
            status = test.get("status")
            if status == "fail" and not count.failed:
                count += Count(failed=1, names=[test.get("name")])
            elif not count.passed + count.failed + count.skipped:
                count += Count(int(status == "run"), 0, int(status != "run"))
            if count.failed:
                count.outputs.append(output)
            total += count
        return total

    return read


def _cases(output):
    """The cases that a GoogleTest program says it ran; none for any other program."""
    count = Count()
    for result, name in CASE_ENDED.findall(output):
        if result == "OK":
            count.passed += 1
        elif result == "SKIPPED":
            count.skipped += 1
        else:
            count += Count(failed=1, names=[name])
    return count


def read_googletest(log):
    """Counts of the cases that one GoogleTest program printed; None when it ran none."""
    count = _cases(log.read_text(errors="replace"))
    return count if count.passed + count.failed + count.skipped else None


def read_junit(path):
    """A reader of counts from a JUnit file, as pytest writes it."""

    def read(_log):
        try:
            suites = list(ElementTree.parse(path).iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            return None
        total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for suite in suites:
            for word in total:
                total[word] += int(suite.get(word, 0))
        failed = total["failures"] + total["errors"]
        return Count(total["tests"] - failed - total["skipped"], failed, total["skipped"])

    return read


class Steps:
    """The steps of one part: run them in order, stop early where the next makes no sense."""

    def __init__(self, part, root, jobs, deep):
        self.part, self.root, self.jobs, self.deep = part, Path(root), jobs, deep
        self.logs = self.root / "build" / "check"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.count = Count()
        self.cpu_seconds = 0.0

    def run(self, name, command, *, read=None, counts=True, cwd=None, env=None):
        """Runs one command; True when it exits 0 and, with a reader, all tests it ran passed."""
        log = self.logs / f"{self.part}-{name}.log"
        start = time.monotonic()
        words = [str(word) for word in command]
        code, cpu_seconds = _run_into(log, words, cwd or self.root, env or {})
        self.cpu_seconds += cpu_seconds
        count = Count(passed=int(counts and code == 0), failed=int(code != 0))
        if read:
            count = _tests(read(log), code)
        self.count += count
        good = code == 0 and not count.failed
        said = f"{count}" if read and good else ("ok" if good else f"FAILED ({count})")
        seconds = f"{time.monotonic() - start:.1f} s, {cpu_seconds:.1f} s of processors"
        lines = [f"  {self.part}/{name}: {said}, {seconds}"]
        if not good:
            lines += _tails(count.outputs[:OUTPUTS_MAX] or [log.read_text(errors="replace")])
            lines += [f"    failed: {failed}" for failed in count.names]
            lines.append(f"    all of it: {log.relative_to(self.root)}")
        say("\n".join(lines))
        return good

    def fail(self, name, why):
        """Counts one failure that no command reported."""
        self.count += Count(failed=1)
        say(f"  {self.part}/{name}: FAILED: {why}")
        return False


def _tails(outputs):
    """The last lines of each output, set off from what the check says."""
    lines = []
    for output in outputs:
        lines += [f"    | {line}" for line in output.split("\n")[-TAIL_LINES - 1 :]]
    return lines


def say(text):
    """Prints lines at once: other parts print, too."""
    print(f"{text}\n", end="", flush=True)


def _tests(count, code):
    """What a test run counts as: no tests, or an exit code that the counts hide, is a failure."""
    if count is None or count.passed + count.failed + count.skipped == 0:
        return Count(failed=1)
    if code != 0 and count.failed == 0:
        return Count(count.passed, 1, count.skipped)
    return count


RUNNING = set()  # process groups of the steps that run now


def stop_all():
    """Ends what the steps of this process have started; ninja and ctest end what they started."""
    groups = list(RUNNING)
    for group in groups:
        _kill(group, signal.SIGTERM)
    end = time.monotonic() + SECONDS_TO_END
    while RUNNING and time.monotonic() < end:
        time.sleep(0.01)
    for group in groups:
        _kill(group)


def _kill(group, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _run_into(log, command, cwd, env):
    """Exit code and processor seconds of a command whose output goes to a file.

    The code is 124 when the command took too long. It is a process group of its own, but of this
    session: the kernel shares processors out between sessions, whatever their priorities.
    """
    with log.open("w") as out:
        print("$", *command, file=out, flush=True)
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=os.environ | {name: str(value) for name, value in env.items()},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as error:
            print(error, file=out)
            return 127, 0.0
        too_long = threading.Event()

        def stop():
            too_long.set()
            _kill(process.pid)

        timer = threading.Timer(STEP_SECONDS_MAX, stop)
        timer.daemon = True
        timer.start()
        RUNNING.add(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        RUNNING.discard(process.pid)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if too_long.is_set():
            print(f"stopped after {STEP_SECONDS_MAX} s; {MORE}", file=out)
        return 124 if too_long.is_set() else process.returncode, usage.ru_utime + usage.ru_stime
