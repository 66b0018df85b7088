"""The papers' applications, each checked against a serial reference.

They run C++ without the GIL. Each report's `correct` says that the result was compared with the
reference and is right; `error` says how far off it is. `seconds` is the runtime's clock (virtual on
`sim`), `serial_seconds` is the reference's time on one core, 0 when it was not run. Ctrl-C is seen
when the run has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from . import _core
from .app_reports import Report, at_least
from .array_apps import ArrayReport, conv2d, fft, saxpy, sgemv

__all__ = [
    "GTR_EXCHANGE",
    "GTR_FREQUENCY",
    "AesReport",
    "ArrayReport",
    "BarnesHutReport",
    "LikelihoodData",
    "LikelihoodReport",
    "ListRankingReport",
    "LuReport",
    "MandelbrotReport",
    "Report",
    "aes",
    "barnes_hut",
    "conv2d",
    "fft",
    "likelihood",
    "likelihood_data",
    "likelihood_of_sites",
    "list_ranking",
    "lu",
    "mandelbrot",
    "mandelbrot_picture",
    "saxpy",
    "sgemv",
]

if TYPE_CHECKING:  # a worker process imports this package, and NumPy only when it needs it
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class MandelbrotReport(Report):
    """error: pixels that differ. iterations: steps of one frame. pieces: cut off by dicing."""

    iterations: int
    pieces: int


@dataclass(frozen=True)
class LuReport(Report):
    """error: the residual |LU - A|, relative."""


@dataclass(frozen=True)
class BarnesHutReport(Report):
    """error: of the forces on a sample of bodies, relative. energy_drift: relative, all steps."""

    energy_drift: float


@dataclass(frozen=True)
class LikelihoodReport(Report):
    """error: of a site's logarithm, relative, the largest. log_likelihood: of the last tree."""

    log_likelihood: float


@dataclass(frozen=True)
class AesReport(Report):
    """error: bytes that differ."""


@dataclass(frozen=True)
class ListRankingReport(Report):
    """error: nodes whose rank differs. sublists: what the lists were cut into."""

    sublists: int


def _check_picture(width: int, height: int, iterations: int, tasks: int | None) -> int:
    """Returns the number of tasks: 128, as in the paper, or fewer for a small picture."""
    if tasks is None:
        tasks = max(1, min(128, height))
    at_least(1, width=width, height=height, iterations=iterations, tasks=tasks)
    if iterations > 65535:
        raise ValueError(f"iterations must be at most 65535, not {iterations}")
    if tasks > height:
        raise ValueError(f"tasks must be at most the height, {height}, not {tasks}")
    if width * height > 2**31:
        raise ValueError(f"a picture of {width} x {height} pixels is too big; at most 2**31")
    return tasks


def mandelbrot(
    runtime: _core.Runtime,
    *,
    width: int = 640,
    height: int = 480,
    iterations: int = 1000,
    tasks: int | None = None,
    dice: bool = True,
    frames: int = 1,
    check: bool = True,
) -> MandelbrotReport:
    """Draws the Mandelbrot set `frames` times in `tasks` tasks of rows, and times it.

    Raises ValueError for sizes that make no sense, InvalidArgument when a task is larger than the
    local store and may not be diced.
    """
    tasks = _check_picture(width, height, iterations, tasks)
    at_least(1, frames=frames)
    before = runtime.counters()["submitted"]
    report = _core.run_mandelbrot(
        runtime,
        width=width,
        height=height,
        iterations=iterations,
        tasks=tasks,
        dice=dice,
        frames=frames,
        check=check,
    )
    return MandelbrotReport("mandelbrot", **report, tasks=runtime.counters()["submitted"] - before)


def mandelbrot_picture(
    runtime: _core.Runtime | None,
    *,
    width: int = 640,
    height: int = 480,
    iterations: int = 1000,
    tasks: int | None = None,
    dice: bool = True,
) -> npt.NDArray[np.uint16]:
    """One picture: an array of shape (height, width) with the steps each point took to escape.

    Without a runtime it is the serial reference's, which every other one must equal bit for bit.
    """
    tasks = _check_picture(width, height, iterations, tasks)
    import numpy as np

    counts = np.empty((height, width), np.uint16)
    _core.draw_mandelbrot(
        runtime,
        counts,
        width=width,
        height=height,
        iterations=iterations,
        tasks=tasks,
        dice=dice,
    )
    return counts


def lu(
    runtime: _core.Runtime,
    *,
    n: int = 1024,
    blocks: bool = False,
    block: int = 64,
    dependencies: bool = False,
    columns_per_task: int = 1,
    dice: bool = True,
    double_precision: bool = False,
    seed: int = 1,
    check: bool = True,
) -> LuReport:
    """Factors an n x n matrix without pivoting, by columns or by blocks.

    columns_per_task: of an update task; 0 is one task for all columns, which the dicer cuts.
    blocks: by blocks of `block` columns, with `dependencies` instead of phases if asked.
    """
    at_least(1, n=n, block=block)
    at_least(0, columns_per_task=columns_per_task)
    if n > 65536:
        raise ValueError(f"n must be at most 65536, not {n}")
    report = _core.run_lu(
        runtime,
        n=n,
        blocks=blocks,
        block=block,
        dependencies=dependencies,
        columns_per_task=columns_per_task,
        dice=dice,
        double_precision=double_precision,
        seed=seed,
        check=check,
    )
    return LuReport("lu", **report)


def barnes_hut(
    runtime: _core.Runtime,
    *,
    bodies: int = 10_000,
    steps: int = 1,
    theta: float = 0.5,
    set_bodies: int = 512,
    dice: bool = True,
    seed: int = 1,
    check: bool = True,
) -> BarnesHutReport:
    """Moves `bodies` bodies under gravity by `steps` steps with a quad tree.

    theta: a cell is taken as one point when its side is less than theta times its distance; at
    most 0.7. set_bodies: bodies a force task updates.
    """
    at_least(1, bodies=bodies, steps=steps, set_bodies=set_bodies)
    if not 0.0 <= theta <= 0.7:
        raise ValueError(f"theta must be between 0 and 0.7, not {theta}")
    report = _core.run_barnes_hut(
        runtime,
        bodies=bodies,
        steps=steps,
        theta=theta,
        set_bodies=set_bodies,
        dice=dice,
        seed=seed,
        check=check,
    )
    return BarnesHutReport("barnes-hut", **report)


class LikelihoodData(NamedTuple):
    """The DNA of some species, and a tree of them.

    states: (species, sites) of u1, sets of bases: 1, 2, 4, 8 for A, C, G, T, 15 for unknown.
    children, lengths: a row of two for each inner node, of u4 and f8. Species are nodes 0 to
    species - 1, inner nodes follow, children before parents; the last is the root.
    """

    states: npt.NDArray[np.uint8]
    children: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.float64]


# Of the model that generated data is made with: exchange rates AC AG AT CG CT GT, and frequencies.
GTR_EXCHANGE = (1.2, 3.5, 0.8, 1.1, 4.0, 1.0)
GTR_FREQUENCY = (0.3, 0.2, 0.2, 0.3)


def _check_species(species: int, sites: int) -> None:
    if not 2 <= species <= 4096:
        raise ValueError(f"species must be 2 to 4096, not {species}")
    at_least(1, sites=sites)
    if species * sites > 2**31:
        raise ValueError(f"{species} species with {sites} sites are too big; at most 2**31 states")


def likelihood(
    runtime: _core.Runtime,
    *,
    species: int = 107,
    sites: int = 1000,
    jukes_cantor: bool = False,
    tasks: int = 1,
    dice: bool = True,
    dependencies: bool = True,
    steps: int = 1,
    seed: int = 1,
    check: bool = True,
) -> LikelihoodReport:
    """Computes the likelihood of a tree of `species` species, `steps` times.

    Each step after the first changes the length of one branch. tasks: of an inner node.
    dependencies: a node's tasks start when its children are done; without, when all nodes of lower
    levels are, as in a program that waits for what it offloads. The model
    is general and time-reversible, or Jukes and Cantor's, with four gamma categories.
    """
    _check_species(species, sites)
    at_least(1, tasks=tasks, steps=steps)
    report = _core.run_likelihood(
        runtime,
        species=species,
        sites=sites,
        jukes_cantor=jukes_cantor,
        tasks=tasks,
        dice=dice,
        dependencies=dependencies,
        steps=steps,
        seed=seed,
        check=check,
    )
    return LikelihoodReport("likelihood", **report)


def likelihood_data(
    *, species: int = 107, sites: int = 1000, jukes_cantor: bool = False, seed: int = 1
) -> LikelihoodData:
    """The data that likelihood() generates for these options."""
    _check_species(species, sites)
    import numpy as np

    data = LikelihoodData(
        np.empty((species, sites), np.uint8),
        np.empty((species - 1, 2), np.uint32),
        np.empty((species - 1, 2), np.float64),
    )
    _core.make_likelihood(*data, species=species, sites=sites, jukes_cantor=jukes_cantor, seed=seed)
    return data


def likelihood_of_sites(
    runtime: _core.Runtime | None,
    data: LikelihoodData,
    *,
    exchange: Sequence[float] = GTR_EXCHANGE,
    frequency: Sequence[float] = GTR_FREQUENCY,
    alpha: float = 0.5,
    tasks: int = 1,
    dice: bool = True,
) -> npt.NDArray[np.float64]:
    """The natural logarithm of each site's likelihood, for a tree and DNA of your own.

    Without a runtime it is computed serially; every machine must equal that bit for bit. exchange:
    rates AC AG AT CG CT GT; frequency: of A, C, G, T, with sum 1; alpha: shape of the gamma
    distribution. Raises ValueError for shapes, InvalidArgument for a tree, states or a model that
    make no sense.
    """
    at_least(1, tasks=tasks)
    import numpy as np

    states = np.ascontiguousarray(data.states, np.uint8)
    children = np.ascontiguousarray(data.children, np.uint32)
    lengths = np.ascontiguousarray(data.lengths, np.float64)
    if states.ndim != 2:
        raise ValueError(f"data.states must be of shape (species, sites), not {states.shape}")
    shape = (states.shape[0] - 1, 2)
    for name, array in (("children", children), ("lengths", lengths)):
        if array.shape != shape:
            raise ValueError(f"data.{name} must be of shape {shape}, not {array.shape}")
    if len(exchange) != 6 or len(frequency) != 4:
        raise ValueError("exchange must be 6 rates, and frequency 4 shares")
    model = np.array([*exchange, *frequency, alpha], np.float64)
    logs = np.empty(states.shape[1])
    _core.likelihood_logs(runtime, states, children, lengths, model, logs, tasks, dice)
    return logs


def aes(
    runtime: _core.Runtime,
    *,
    n: int = 16 << 20,
    mode: Literal["ctr", "ecb"] = "ctr",
    form: Literal["declared", "far"] = "declared",
    kernel: Literal["portable", "openssl"] = "portable",
    tasks: int = 256,
    chunk_bytes: int = 1024,
    buffers: int = 1,
    dice: bool = True,
    seed: int = 1,
    check: bool = True,
) -> AesReport:
    """Encrypts n random bytes with AES-128.

    form: "declared" lets the pipeline stage the data; with "far" tasks get and put chunks of
    chunk_bytes bytes themselves, 16 to 16384, with so many buffers, 1 to 16, each; `processes`
    cannot (Unavailable). kernel:
    "openssl" needs a build with LEVERET_OPENSSL, else it raises Unavailable. ECB takes whole blocks
    of 16 bytes. The kernel's time depends on key and data: not for secrets.
    """
    for name, value, words in (
        ("mode", mode, ("ctr", "ecb")),
        ("form", form, ("declared", "far")),
        ("kernel", kernel, ("portable", "openssl")),
    ):
        if value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}, not {value!r}")
    at_least(1, tasks=tasks)
    if not 1 <= n <= 2**40:
        raise ValueError(f"n must be 1 to 2**40 bytes, not {n}")
    if mode == "ecb" and n % 16 != 0:
        raise ValueError(f"n must be a multiple of 16 bytes in ECB, not {n}")
    if chunk_bytes % 16 != 0 or not 16 <= chunk_bytes <= 16384:
        raise ValueError(f"chunk_bytes must be a multiple of 16 up to 16384, not {chunk_bytes}")
    if not 1 <= buffers <= 16:
        raise ValueError(f"buffers must be 1 to 16, not {buffers}")
    report = _core.run_aes(
        runtime,
        n=n,
        ecb=mode == "ecb",
        far=form == "far",
        openssl=kernel == "openssl",
        tasks=tasks,
        chunk_bytes=chunk_bytes,
        buffers=buffers,
        dice=dice,
        seed=seed,
        check=check,
    )
    return AesReport("aes", **report)


def list_ranking(
    runtime: _core.Runtime,
    *,
    nodes: int = 1 << 22,
    lists: int = 1,
    tasks: int = 256,
    cuts: int = 1024,
    dice: bool = True,
    seed: int = 1,
    check: bool = True,
) -> ListRankingReport:
    """Ranks the nodes of random linked lists: how far each is from its list's head.

    Its tasks fetch nodes as they find them, so `contexts` of the runtime decides how many of them
    a worker has on their way. cuts: places where lists are cut into sublists, one walk each.
    `processes` cannot run it (Unavailable).
    """
    at_least(1, nodes=nodes, lists=lists, tasks=tasks)
    at_least(0, cuts=cuts)
    if nodes > 2**32 - 2:
        raise ValueError(f"nodes must be at most 2**32 - 2, not {nodes}")
    if lists > nodes:
        raise ValueError(f"lists must be at most the nodes, {nodes}, not {lists}")
    report = _core.run_list_ranking(
        runtime,
        nodes=nodes,
        lists=lists,
        tasks=tasks,
        cuts=cuts,
        dice=dice,
        seed=seed,
        check=check,
    )
    return ListRankingReport("list-ranking", **report)
