"""leveret.Cluster: scheduler and nodes in network namespaces of their own, whose links fail.

Joined by pairs of virtual Ethernet devices; that takes root, and `ip` of iproute2.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import LIMIT, needs_processes, wait_until

DRIVER = Path(__file__).with_name("network_driver.py")
PORT = 8786

# A connection whose other end is silent for so long is given up; Dask takes no less.
SETTINGS = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
}


def missing() -> str | None:
    """Why there can be no namespaces here."""
    if shutil.which("ip") is None:
        return "network namespaces need `ip` of iproute2"
    if os.getuid() != 0:
        return "network namespaces need root"
    name = f"leveret-{os.getpid()}-try"
    if run("ip", "netns", "add", name).returncode != 0:
        return "network namespaces cannot be made here"
    pair = ("type", "veth", "peer", "name", "probe1")
    made = run("ip", "-n", name, "link", "add", "dev", "probe0", *pair)
    run("ip", "netns", "del", name)
    return None if made.returncode == 0 else "the kernel has no virtual Ethernet devices"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def is_empty(name: str) -> bool:
    """Whether nothing runs in a namespace; what does is ended."""
    pids = run("ip", "netns", "pids", name).stdout.split()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    return not pids


def must(*command: str) -> None:
    done = run(*command)
    assert done.returncode == 0, (command, done.stderr)


class Network:
    """A scheduler, and nodes that only it can reach. Each is a namespace with its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def add(self, name: str) -> str:
        made = f"leveret-{os.getpid()}-{name}"
        must("ip", "netns", "add", made)
        self.names.append(made)
        must("ip", "-n", made, "link", "set", "dev", "lo", "up")
        return made

    def start(self, name: str, module: str, *words: str) -> None:
        """Starts a program of Dask's, and again when it ends, as those do that keep nodes."""
        program = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        command = ["sh", "-c", 'while :; do "$@"; done', "sh", *program]
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                ["ip", "netns", "exec", name, *command],
                env={**os.environ, **SETTINGS},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(started)

    def open(self, nodes: int) -> None:
        scheduler = self.add("scheduler")
        self.start(scheduler, "dask_scheduler", "--port", str(PORT), "--no-dashboard")
        for i in range(nodes):
            node = self.add(f"node{i}")
            pair = ("type", "veth", "peer", "name", "eth0", "netns", node)
            must("ip", "-n", scheduler, "link", "add", "dev", f"to{i}", *pair)
            for where, link, last in ((scheduler, f"to{i}", 1), (node, "eth0", 2)):
                must("ip", "-n", where, "addr", "add", f"10.219.{i}.{last}/24", "dev", link)
                must("ip", "-n", where, "link", "set", "dev", link, "up")
            words = ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
            words += ["--host", f"10.219.{i}.2"]
            self.start(node, "dask_worker", f"tcp://10.219.{i}.1:{PORT}", *words)

    def drive(self, what: str, library: Path) -> None:
        scheduler, far = self.names[:2]
        words = (what, f"tcp://127.0.0.1:{PORT}", str(library), far)
        done = subprocess.run(
            ["ip", "netns", "exec", scheduler, sys.executable, str(DRIVER), *words],
            env={**os.environ, **SETTINGS},
            capture_output=True,
            text=True,
            timeout=2 * LIMIT,
            check=False,
        )
        logs = "".join(each.read_text() for each in sorted(self.folder.glob("*.log")))
        assert done.returncode == 0, done.stderr + logs
        assert "all was done once" in done.stdout

    def close(self) -> None:
        for each in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()
        for name in self.names:
            wait_until(functools.partial(is_empty, name))
            must("ip", "netns", "del", name)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    pytest.importorskip("distributed")
    why = missing()
    if why is not None:
        pytest.skip(why)
    made = Network(tmp_path)
    try:
        made.open(2)
        yield made
    finally:
        made.close()


@needs_processes
def test_a_link_that_is_cut_and_comes_back(network: Network, library: Path) -> None:
    """Slices and calls of the node run elsewhere, and are visible once."""
    network.drive("cut", library)


@needs_processes
def test_links_with_delay_and_loss(network: Network, library: Path) -> None:
    for name in network.names[1:]:
        words = ("dev", "eth0", "root", "netem", "delay", "20ms", "5ms", "loss", "2%")
        made = run("tc", "-n", name, "qdisc", "add", *words) if shutil.which("tc") else None
        if made is None or made.returncode != 0:
            pytest.skip("delay and loss need `tc`, and sch_netem in the kernel")
    network.drive("delay", library)
