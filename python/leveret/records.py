"""Shapes of the dictionaries that the extension module returns."""

from __future__ import annotations

from typing import TypedDict

from .waiting import WaitPolicy as WaitPolicy


class Counters(TypedDict):
    """What has happened since open, summed over all workers and host threads.

    submitted: tasks accepted, pieces of diced ones included. direct: written straight into an idle
    worker's mailbox. diced: pieces cut off. passes: of the scheduler. parks: times a worker went to
    sleep. staged_bytes: copied into local stores. helped: tasks run by waiting host threads.
    deaths, reruns: worker processes that died, and tasks run again because of it.
    """

    submitted: int
    completed: int
    failed: int
    direct: int
    stolen: int
    diced: int
    passes: int
    parks: int
    staged_bytes: int
    bad_filters: int
    helped: int
    deaths: int
    reruns: int


class WorkerCounters(TypedDict):
    """One worker's share. busy_ns: inside procedures, counted while tracing is on."""

    completed: int
    busy_ns: int


class SeenWorker(TypedDict):
    """A worker process of some program. deaths: of its predecessors. attempt: 0 when it is idle.

    posted: tasks sent to it; done: those that are over; waiting: those behind the one that runs.
    died_in: which procedure the last of its predecessors was in that died in one.
    """

    pid: int
    deaths: int
    posted: int
    done: int
    waiting: int
    attempt: int
    procedure: str
    died_in: str


class SeenPool(TypedDict):
    """The worker processes of an open runtime of some program; pid and name are the program's."""

    pid: int
    program: str
    workers: list[SeenWorker]


class AppDict(TypedDict):
    """What the run functions of all applications report."""

    seconds: float
    serial_seconds: float
    error: float
    correct: bool


class CountedAppDict(AppDict):
    """And most, such as run_lu(): how many tasks there were."""

    tasks: int


class MandelbrotDict(AppDict):
    """What run_mandelbrot() reports."""

    iterations: int
    pieces: int


class BarnesHutDict(CountedAppDict):
    """What run_barnes_hut() reports."""

    energy_drift: float


class LikelihoodDict(CountedAppDict):
    """What run_likelihood() reports."""

    log_likelihood: float


class ListRankingDict(CountedAppDict):
    """What run_list_ranking() reports."""

    sublists: int


class PaperRowDict(TypedDict):
    """A row of a paper's results. low, high: the band of the simulated value."""

    paper: str
    id: str
    role: str
    what: str
    configuration: str
    unit: str
    printed: float
    low: float
    high: float
    miss: str


class PaperOutcomeDict(TypedDict):
    """A row, simulated. seconds: of this computer. read: names of the constants.

    failure: why it did not end; its value is not a number then.
    """

    value: float
    failure: str
    seconds: float
    events: int
    hash: int
    read: list[str]


class PaperAnswerDict(TypedDict):
    """A row by Leveret. free, dear: at no and at twice the price of its own work.

    why_not: why there is no answer, or empty; is_unpriced: because that work decides.
    """

    value: float
    free: float
    dear: float
    why_not: str
    is_unpriced: bool


class PaperFigureDict(TypedDict):
    """A figure like one of a paper's. id: as "S1 figure 3". x, y: what the axes are."""

    paper: str
    id: str
    title: str
    x: str
    y: str


class PaperConstantDict(TypedDict):
    """A number of a machine file, or of the costs of the papers' software."""

    file: str
    name: str
    value: float
    unit: str
    source: str
    origin: str
    calibrated_on: str
