"""Dask distributed as the engine.

1. Pieces are tasks of Client.map(); Dask chooses the worker, where the data is if there is some.
2. A coroutine on the client's loop follows each piece and notes when it is done; all that are noted
   are gathered at once, and not all the time: a question to every node costs more than a piece
   does. So nothing here waits for one piece.
3. A worker that dies takes its pieces with it. Dask runs them elsewhere; those that it gives up
   (KilledWorker) are told as lost, and the driver sends them again.
4. A cancelled key that nobody here has cancelled: the scheduler is gone, or was restarted.
5. A piece that some nodes must not have is for those that there are else. Dask keeps it for these,
   also when the last of them has gone: it is told as lost then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, NamedTuple

import dask.config
import distributed
from distributed.utils import sync

from ..errors import Closed, LeveretError, Status
from . import node
from .engine import Engine, Found, Sent, Tell, Told, kept
from .names import NodeSettings, no_nodes, unavailable, versions
from .plugin import DriverPlugin, NodePlugin, check_nodes

POLL_SECONDS = 0.5  # how often the number of workers is asked for
LARGE_BYTES = 1 << 20  # far less than Dask warns of, which is 10 MB
# Between two gathers passes so much more time than one takes, while other pieces are under way. By
# bench cluster, slice_overhead: of 0, a node spends twice the CPU time of an empty task on a slice.
PAUSE_SHARE, PAUSE_MAX = 4.0, 0.05
# A gather that takes longer than this, and than others did by far, waits for a node that stopped.
GATHER_SECONDS, GATHER_TIMES = 2.0, 8.0
CLOSE_SECONDS = 10.0  # in which the nodes are closed, or those of them that answer

_warning = threading.Lock()  # held while Dask does not warn, so that it does again afterwards


def told_of(report: Any) -> Any:
    """A report without the outputs, which stay on their node."""
    return report._replace(outputs=())


def lost_data() -> LeveretError:
    return unavailable(
        "data that was scattered, or left on its node, went with that node; scatter it again"
    )


class UnderWay(NamedTuple):
    """A piece that Dask has. future: of its report. handle: of one that stays on its node.

    needs: data on nodes that it is made of. bound: the only nodes that may have it; empty: all may.
    """

    future: Any
    handle: Any = None
    needs: tuple[Any, ...] = ()
    bound: frozenset[str] = frozenset()


class DaskEngine:
    """A distributed.Client as the engine: Dask's workers are the nodes."""

    knows_nodes = True

    def __init__(self, client: Any) -> None:
        self.client = client
        self.under_way: dict[str, UnderWay] = {}
        # Of the client's loop alone.
        self.noted: list[tuple[str, Any]] = []
        self.gathering = 0
        self.gather_seconds = GATHER_SECONDS
        self.following: set[asyncio.Task[None]] = set()
        self.collector: asyncio.Task[None] | None = None
        self.news: asyncio.Event | None = None  # while there is a collector
        self.refused: set[str] = set()
        self.threads: dict[str, int] = {}
        self.address = "the scheduler"
        self.is_closed = False

    def open(self, settings: NodeSettings, tell: Tell) -> None:
        client = self.client
        if client.asynchronous:
            raise TypeError(
                "client: an asynchronous Client has no call that waits; give a Cluster one that "
                "was made without asynchronous=True"
            )
        self.check_open()
        self.address = str(client.scheduler.address)  # a client that is closed has forgotten it
        self.cluster, self.tell = settings.cluster, tell
        self.threads = dict(client.nthreads())
        check_nodes(client)
        self.plugin = NodePlugin(settings, versions())
        with contextlib.suppress(OSError):  # of a worker that leaves; the scheduler has it then
            client.register_plugin(self.plugin)
        self.watch = DriverPlugin(client.id, self.plugin.name)
        with contextlib.suppress(Exception):  # a scheduler may lack leveret, or refuse plugins
            client.register_plugin(self.watch)
        client.loop.add_callback(self._watch)

    def check_open(self) -> None:
        error = self.gone()
        if error is not None:
            raise error

    def gone(self) -> LeveretError | None:
        """A client that is closed may stop its loop, with notes of pieces on their way; one that
        looks for its scheduler keeps what it is given until there is one again."""
        if self._is_client_closed():
            return self._client_closed()
        return self._unconnected() if self.client.status == "connecting" else None

    def _unconnected(self) -> LeveretError:
        return unavailable(
            f"the connection to {self.name()} was lost, and with its scheduler all that was "
            "under way; make a new Client and a new Cluster, and submit again"
        )

    def _is_client_closed(self) -> bool:
        return self.client.status not in ("running", "connecting")

    def _client_closed(self) -> LeveretError:
        state = self.client.status
        text = f"client: it is {state}; make a new distributed.Client, and a Cluster with it"
        return Closed(text, Status.CLOSED)

    def name(self) -> str:
        return self.address

    async def _watch(self) -> None:
        """Keeps the number of workers up to date."""
        while not (self.is_closed or self._is_client_closed()):
            with contextlib.suppress(Exception):
                self.threads = dict(await self.client.nthreads())
                self._give_up_bound()
            await asyncio.sleep(POLL_SECONDS)

    def _give_up_bound(self) -> None:
        """Dask would keep a piece for a node that has gone, whoever else has come."""
        there = list(self.under_way.items())
        gone = [k for k, each in there if each.bound and each.bound.isdisjoint(self.threads)]
        if gone:
            self.take_back(gone)
            self.tell([Told(key, deaths=1) for key in gone])

    def slots(self) -> int:
        return sum(n for each, n in dict(self.threads).items() if each not in self.refused)

    def nodes(self) -> list[str]:
        return [each for each in dict(self.threads) if each not in self.refused]

    def refuse(self, node: str) -> bool:
        self.refused.add(node)
        return node in self.threads

    def locate(self, keys: list[str], found: Found) -> None:
        if self.client.status == "running":
            self.client.loop.add_callback(self._locate, frozenset(keys), found)

    async def _locate(self, keys: frozenset[str], found: Found) -> None:
        with contextlib.suppress(Exception):
            there = await self.client.processing()
            where = {key: node for node, some in there.items() for key in some if key in keys}
            all_of = list(self.under_way.items())
            rest = {k: each.future for k, each in all_of if k in keys - where.keys()}
            names = {future.key: key for key, future in rest.items()}
            lying = await self.client.who_has(list(rest.values()))
            where.update((names[name], node) for name, nodes in lying.items() for node in nodes)
            threads = {node: self.threads.get(node, 0) for node in self.nodes()}
            idle = sum(max(0, n - len(there.get(node, ()))) for node, n in threads.items())
            found(where, idle)

    # Pieces.

    def send(self, pieces: list[Sent]) -> None:
        try:
            self.check_open()
        except LeveretError as error:
            self.tell([Told(piece.key, error=error) for piece in pieces])
            return
        for alike in _alike(pieces):
            self._send(alike)

    def _send(self, pieces: list[Sent]) -> None:
        """Pieces with equally many arguments, one priority, and the same nodes."""
        client, first = self.client, pieces[0]
        keys = [piece.key for piece in pieces]
        bound = self._nodes_for(first.avoid)
        where: dict[str, Any] = {} if bound is None else {"workers": bound}
        columns = list(zip(*(piece.arguments for piece in pieces)))
        with _unwarned(pieces):
            found = client.map(
                node.perform, *columns, key=keys, pure=False, priority=first.priority, **where
            )
        handles: list[Any] = [None] * len(keys)
        if first.stays:
            handles = found
            names = [f"{key}-told" for key in keys]
            found = client.map(
                told_of, found, key=names, pure=False, priority=first.priority, **where
            )
        for piece, future, handle in zip(pieces, found, handles):
            needs = tuple(each for each in piece.arguments if isinstance(each, distributed.Future))
            self.under_way[piece.key] = UnderWay(future, handle, needs, frozenset(bound or ()))
        client.loop.add_callback(self._follow_all, list(zip(keys, found)))

    def _nodes_for(self, avoid: frozenset[str]) -> list[str] | None:
        """The nodes that may have a piece, when some may not; None: all may."""
        if not (self.refused or avoid):
            return None
        return [each for each in self.nodes() if each not in avoid]

    async def _follow_all(self, found: list[tuple[str, Any]]) -> None:
        for key, future in found:
            self._spawn(self._follow(key, future))

    async def _follow(self, key: str, future: Any) -> None:
        """What Future.add_done_callback() does, without its thread."""
        while future.status == "pending":
            await future._state.wait()
        self.noted.append((key, future))
        if self.news is None:
            self.news = asyncio.Event()
            self.collector = asyncio.ensure_future(self._collect(self.news))
        elif len(self.noted) + self.gathering >= len(self.under_way):
            self.news.set()  # there is nothing more to wait for

    async def _collect(self, news: asyncio.Event) -> None:
        try:
            while self.noted:
                start = time.monotonic()
                news.clear()
                await self._collect_noted()
                pause = min(PAUSE_MAX, PAUSE_SHARE * (time.monotonic() - start))
                if len(self.noted) < len(self.under_way):
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(news.wait(), pause)
        finally:
            self.news = self.collector = None

    async def _collect_noted(self) -> None:
        noted, self.noted = self.noted, []
        self.gathering = len(noted)
        self._report([self._without_result(k, each) for k, each in noted if not _is_done(each)])
        done = [(key, each) for key, each in noted if _is_done(each)]
        start = time.monotonic()
        told = await self._gathered(done, self.gather_seconds)
        if told is None:
            await self._gather_by_node(done)
        else:
            longest = GATHER_TIMES * (time.monotonic() - start)
            self.gather_seconds = max(self.gather_seconds, longest)
            self._report(told)
        self.gathering = 0

    async def _gather_by_node(self, done: list[tuple[str, Any]]) -> None:
        """A node that has some of them gives no answer: the others' go on without it.

        One after the other: the client would make one question of what is asked at the same time.
        """
        groups: dict[str, list[tuple[str, Any]]] = {}
        where: dict[str, Any] = {}
        with contextlib.suppress(Exception):  # all in one group then
            where = await self.client.who_has([each for _, each in done])
        for key, future in done:
            groups.setdefault(next(iter(where.get(future.key, ())), ""), []).append((key, future))
        for group in groups.values():
            gathering = self._spawn(self._gather(group))
            await asyncio.wait([gathering], timeout=self.gather_seconds)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.following.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self.following.discard)
        return task

    async def _gather(self, done: list[tuple[str, Any]]) -> None:
        self._report(await self._gathered(done) or [])

    def _report(self, told: list[Told]) -> None:
        for each in told:
            self.under_way.pop(each.key, None)
        if told:
            self.tell(told)

    async def _gathered(
        self, done: list[tuple[str, Any]], seconds: float | None = None
    ) -> list[Told] | None:
        """None: it takes longer than that."""
        if not done:
            return []
        asked = self.client.gather([each for _, each in done], asynchronous=True)
        gathering = asyncio.ensure_future(asked)
        if not (await asyncio.wait([gathering], timeout=seconds))[0]:
            gathering.cancel()
            return None
        try:
            reports = gathering.result()
        except (Exception, asyncio.CancelledError) as error:
            if len(done) > 1:  # one of them: its worker died with the result, say
                return [told for each in done for told in await self._gathered([each]) or ()]
            key, future = done[0]
            return [self._without_result(key, future, error)]
        return [
            Told(key, report=report, handle=self._under_way(key).handle)
            for (key, _), report in zip(done, reports)
        ]

    def _under_way(self, key: str) -> UnderWay:
        return self.under_way.get(key, UnderWay(None))  # it may have been taken back

    def _without_result(self, key: str, future: Any, error: Any = None) -> Told:
        """A piece that Dask gives no result of. What it merely lost track of is sent again."""
        error = error or getattr(future._state, "exception", None)
        name = type(error).__name__
        if name == "KilledWorker" or future.status == "pending":
            return Told(key, error=error, deaths=getattr(error, "allowed_failures", 0) + 1)
        if future.status in ("cancelled", "lost") or "Cancelled" in name:
            if any(each.status == "cancelled" for each in self._under_way(key).needs):
                return Told(key, error=lost_data())  # Dask of 2024 gives no reasons
            told = self._cancelled(str(getattr(error, "reason", None) or ""))
            return Told(key, error=told, deaths=int(told is None))
        return Told(key, error=error or RuntimeError(f"the engine lost {key}"))

    def _cancelled(self, reason: str) -> LeveretError | None:
        """Why Dask has cancelled a key that nobody here has; None: for nothing that lasts."""
        if "lost dependencies" in reason:
            return lost_data()
        if "connection" in reason or self.client.status == "connecting":
            return self._unconnected()
        if self._is_client_closed():
            return self._client_closed()
        if "restart" in reason:
            return unavailable(f"{self.name()} was told to restart its workers; submit again")
        return None

    def take_back(self, keys: Iterable[str]) -> None:
        popped = [self.under_way.pop(key, None) for key in keys]
        found = [each.future for each in popped if each is not None]
        if found and self.client.status == "running":
            self.client.loop.add_callback(self._cancel, found)

    async def _cancel(self, futures: list[Any]) -> None:
        with contextlib.suppress(Exception):
            await self.client.cancel(futures, asynchronous=True)

    def end(self, job: str) -> None:
        if self.client.status == "running":
            self.client.loop.add_callback(self._end, job)

    async def _end(self, job: str) -> None:
        with contextlib.suppress(Exception):
            await self.client.run(node.end_job, self.cluster, job, on_error="ignore")

    # Data.

    def wait_for_nodes(self, seconds: float) -> None:
        """An engine that starts nodes for work must see some: a task that does nothing."""
        self.check_open()
        if self.nodes():
            return
        asked = self.client.submit(node.about, pure=False)
        try:
            asked.result(timeout=seconds)
            self.threads = dict(self.client.nthreads())
        except Exception as error:
            self.check_open()
            raise no_nodes(self.name(), seconds) from error
        finally:
            asked.release()

    def shares_data(self, other: Engine) -> bool:
        return isinstance(other, DaskEngine) and other.client is self.client

    def scatter(self, parts: list[Any], seconds: float) -> list[Any]:
        """Neighbours go to the same node. All goes to the others when one turns out to be gone."""
        end = time.monotonic() + seconds
        gone: set[str] = set()
        while True:
            self.check_open()
            nodes = sorted(set(self.nodes()) - gone)
            if not nodes:
                self.threads = {}
                gone.clear()  # one that comes may have the address of one that went
                self.wait_for_nodes(max(0.0, end - time.monotonic()))
                nodes = sorted(self.nodes())
            if not nodes:
                text = f"the last worker of {self.name()} has left meanwhile; scatter again"
                raise unavailable(text)
            made = self._scatter_on(nodes, parts, gone)
            if made is not None:
                return made

    def _scatter_on(self, nodes: list[str], parts: list[Any], gone: set[str]) -> list[Any] | None:
        """None: one takes nothing, and is in `gone`. What is known of nodes may be old, and no
        piece has met this one: the scheduler knows no such worker, or does not reach it."""
        made: list[Any] = []
        for index, worker in enumerate(nodes):
            first, last = (len(parts) * i // len(nodes) for i in (index, index + 1))
            if last == first:
                continue
            try:
                made += self.client.scatter(parts[first:last], workers=[worker], hash=False)
            except (KeyError, OSError, asyncio.TimeoutError):  # of a paused one as well
                gone.add(worker)
                return None
        return made

    def output(self, handle: Any, index: int) -> Any:
        return self.client.submit(kept, handle, index, pure=False)

    def gather(self, handles: list[Any]) -> list[Any]:
        self.check_open()
        try:
            return list(self.client.gather(handles))
        except Exception as error:
            if "Cancelled" in type(error).__name__:
                raise (self._cancelled(str(getattr(error, "reason", ""))) or lost_data()) from error
            raise

    def close(self) -> None:
        self.is_closed = True
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                sync(self.client.loop, self._leave, callback_timeout=CLOSE_SECONDS)

    async def _leave(self) -> None:
        try:
            await self.client.unregister_worker_plugin(self.plugin.name)
        except Exception:  # a scheduler that was started anew has none
            with contextlib.suppress(Exception):
                await self.client.run(node.close_nodes, self.cluster, on_error="ignore")
        with contextlib.suppress(Exception):
            await self.client.unregister_scheduler_plugin(self.watch.name)


@contextlib.contextmanager
def _unwarned(pieces: list[Sent]) -> Iterator[None]:
    """Sends large pieces without Dask's advice to scatter them: where they run is not known yet."""
    size = sum(_bytes_of(each) for piece in pieces for each in piece.arguments)
    if size < LARGE_BYTES:
        yield
        return
    with _warning, dask.config.set({"distributed.admin.large-graph-warning-threshold": 1 << 60}):
        yield


def _bytes_of(argument: Any) -> int:
    return len(argument) if isinstance(argument, bytes) else int(getattr(argument, "nbytes", 0))


def _is_done(future: Any) -> bool:
    return bool(future.status == "finished")


def _alike(pieces: list[Sent]) -> Iterable[list[Sent]]:
    """Groups that one Client.map() can take."""
    groups: dict[tuple[Any, ...], list[Sent]] = {}
    for piece in pieces:
        about = len(piece.arguments), piece.priority, piece.stays, piece.avoid
        groups.setdefault(about, []).append(piece)
    return groups.values()
