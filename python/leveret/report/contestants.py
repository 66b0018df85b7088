"""Executors side by side: each rival that is installed, behind one small interface.

What they are measured by runs in a process of its own, so that one that hangs, or takes its host
with it, ends nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from typing import Any, Callable

from .. import version as own_version

PACKAGES = {  # what is installed as what, but for those that are there always
    "loky": "loky",
    "pebble": "Pebble",
    "mpire": "mpire",
    "dask": "distributed",
    "ray": "ray",
}
SECONDS_TO_END = 5.0  # of what was asked to; then it is killed


class Contestant:
    """An executor with some workers; seconds: limit for each call; memory: bytes of a worker."""

    def __init__(self, workers: int, seconds: float | None = None, memory: int = 0) -> None:
        self.seconds = seconds
        self.executor: Any = self.open(workers, memory)

    def open(self, workers: int, memory: int) -> Any:
        raise NotImplementedError

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(function, *args)

    def submit_killable(self, function: Callable[..., Any], *args: Any) -> Any:
        """A call that cancel() may end, where that is to be asked for."""
        return self.submit(function, *args)

    def cancel(self, future: Any) -> bool:
        """Asks for the end of a call that runs; False: it was refused, or cannot be asked for."""
        return future.cancel() is not False if hasattr(future, "cancel") else False

    def result(self, future: Any, seconds: float) -> Any:
        return future.result(timeout=seconds)

    def outcomes(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], seconds: float
    ) -> list[Any]:
        """Of each call what it returned, or what it failed with: also when the pool is broken, or
        when all of them together take longer than that."""
        end = time.monotonic() + seconds
        futures: list[Any] = []
        for arguments in calls:
            try:
                futures.append(self.submit(function, *arguments))
            except Exception as error:  # noqa: PERF203
                futures.append(error)
        outcomes: list[Any] = []
        for future in futures:
            if isinstance(future, Exception):
                outcomes.append(future)
                continue
            try:
                outcomes.append(self.result(future, max(0.1, end - time.monotonic())))
            except BaseException as error:
                outcomes.append(error)
        return outcomes

    def close(self) -> None:
        self.executor.shutdown()


class _Leveret(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from ..executor import ProcessExecutor

        return ProcessExecutor(workers, timeout=self.seconds, worker_memory=memory)

    def submit_killable(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.options(cancel="kill").submit(function, *args)


class _Ppe(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


class _Loky(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from loky import ProcessPoolExecutor

        return ProcessPoolExecutor(workers)


class _Pebble(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from pebble import ProcessPool

        return ProcessPool(workers, context=get_context("spawn"))

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.schedule(function, args=args, timeout=self.seconds)

    def close(self) -> None:
        self.executor.stop()
        self.executor.join()


class _Mpire(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from mpire import WorkerPool

        return WorkerPool(workers, start_method="spawn")

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.apply_async(function, args, task_timeout=self.seconds)

    def result(self, future: Any, seconds: float) -> Any:
        return future.get(timeout=seconds)

    def close(self) -> None:
        self.executor.terminate()


class _Dask(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        from distributed import Client, LocalCluster

        self.cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=memory or "auto",
            silence_logs=50,
        )
        return Client(self.cluster)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(function, *args, pure=False)

    def close(self) -> None:
        self.executor.close()
        self.cluster.close()


class _Ray(Contestant):
    def open(self, workers: int, memory: int) -> Any:
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=True)
        return ray

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.executor.remote(function).remote(*args)

    def cancel(self, future: Any) -> bool:
        self.executor.cancel(future, force=True)
        return True

    def result(self, future: Any, seconds: float) -> Any:
        return self.executor.get(future, timeout=seconds)

    def close(self) -> None:
        self.executor.shutdown()


ALL: dict[str, type[Contestant]] = {
    "leveret": _Leveret,
    "ppe": _Ppe,
    "loky": _Loky,
    "pebble": _Pebble,
    "mpire": _Mpire,
    "dask": _Dask,
    "ray": _Ray,
}


def installed() -> dict[str, str]:
    """The contestants that are here, and their versions."""
    found = {"leveret": own_version(), "ppe": ".".join(map(str, sys.version_info[:3]))}
    for name, package in PACKAGES.items():
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(package)
    return found


def _end_group(leader: subprocess.Popen[Any]) -> None:
    """Ends all processes of a group.

    A resource tracker of multiprocessing ignores SIGTERM: it ends when all others have, and takes
    away the semaphores that they have left in shared memory.
    """
    deadline = time.monotonic() + SECONDS_TO_END
    with contextlib.suppress(ProcessLookupError):  # there are no more
        os.killpg(leader.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            leader.poll()
            os.killpg(leader.pid, 0)
            time.sleep(0.01)
        os.killpg(leader.pid, signal.SIGKILL)


def run_apart(program: str, seconds: float) -> tuple[dict[str, Any], bool]:
    """Runs a program that prints one JSON object in its last line; and whether it had to be ended.

    Everything that it has started is ended with it.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryFile("w+") as printed:  # a pipe would be held open by what it leaves
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=printed,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        is_ended = False
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            is_ended = True
        _end_group(process)
        process.wait()
        printed.seek(0)
        text = printed.read()
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    except ValueError:
        found = {}
    return found, is_ended
