"""The likelihood of a tree, against one of a few lines of NumPy that shares no code with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import leveret
from leveret import apps

Floats = npt.NDArray[np.float64]


def rates_of(alpha: float) -> Floats:
    """Means of the quarters of a gamma distribution with mean 1, by sums over fine steps."""
    logs = np.linspace(-60 / alpha, np.log(60 / alpha + 60), 2_000_001)
    x = np.exp(logs)
    weight = np.exp(alpha * logs - alpha * x)  # the density, for steps of log x
    weight /= weight.sum()
    below = np.interp([0.25, 0.5, 0.75], np.cumsum(weight), np.cumsum(weight * x))
    rates: Floats = np.diff([0.0, *below, 1.0]) * 4
    return rates


def matrix_of(exchange: Any, frequency: Any) -> Floats:
    """Rates of change, for one change in a unit of time."""
    q = np.zeros((4, 4))
    q[np.triu_indices(4, 1)] = exchange
    q = (q + q.T) * np.asarray(frequency)
    np.fill_diagonal(q, -q.sum(axis=1))
    scaled: Floats = q / -(np.asarray(frequency) * np.diag(q)).sum()
    return scaled


def site_logs(data: apps.LikelihoodData, exchange: Any, frequency: Any, alpha: float) -> Floats:
    """A general matrix' exponential, all sites at once, logarithms kept beside each node."""
    values, vectors = np.linalg.eig(matrix_of(exchange, frequency))
    inverse = np.linalg.inv(vectors)
    categories = rates_of(alpha)
    shown: list[Floats] = [
        np.repeat(((row[:, None] >> np.arange(4)) & 1)[:, None, :].astype(float), 4, axis=1)
        for row in data.states
    ]
    scale = np.zeros(data.states.shape[1])
    for children, lengths in zip(data.children, data.lengths):
        node = np.ones_like(shown[0])
        for child, length in zip(children, lengths):
            p = np.stack([(vectors * np.exp(values * length * r)) @ inverse for r in categories])
            node = node * np.einsum("cij,scj->sci", p.real, shown[child])
        largest = node.max(axis=(1, 2))
        scale += np.log(largest)
        shown.append(node / largest[:, None, None])
    likelihood = (shown[-1].mean(axis=1) * np.asarray(frequency)).sum(axis=1)
    logs: Floats = np.log(likelihood) + scale
    return logs


GTR: dict[str, Any] = {"exchange": apps.GTR_EXCHANGE, "frequency": apps.GTR_FREQUENCY, "alpha": 0.5}
JUKES_CANTOR: dict[str, Any] = {"exchange": (1.0,) * 6, "frequency": (0.25,) * 4, "alpha": 2.0}


@pytest.mark.parametrize(("species", "sites"), [(107, 80), (40, 200), (2, 3), (3, 1)])
@pytest.mark.parametrize("model", [GTR, JUKES_CANTOR], ids=["gtr", "jukes-cantor"])
def test_equals_numpy(
    runtime: leveret.Runtime, species: int, sites: int, model: dict[str, Any]
) -> None:
    data = apps.likelihood_data(species=species, sites=sites, seed=species)
    serial = apps.likelihood_of_sites(None, data, **model)
    np.testing.assert_allclose(serial, site_logs(data, **model), rtol=1e-6)
    for tasks, dice in ((1, True), (3, False), (sites, True)):
        logs = apps.likelihood_of_sites(runtime, data, tasks=tasks, dice=dice, **model)
        np.testing.assert_array_equal(logs, serial)


def test_many_species_do_not_underflow(threads: leveret.Runtime) -> None:
    """4,000 species together are less likely than any double but 0 can say."""
    data = apps.likelihood_data(species=4000, sites=20)
    logs = apps.likelihood_of_sites(threads, data)
    assert np.isfinite(logs).all()
    assert logs.min() < -1500
    np.testing.assert_allclose(logs, site_logs(data, **GTR), rtol=1e-6)


def test_two_species_by_hand() -> None:
    """Jukes and Cantor's formula: p(same) = 1/4 + 3/4 exp(-4 d / 3), nearly without categories."""
    states = np.array([[1, 1, 15], [1, 2, 8]], np.uint8)
    data = apps.LikelihoodData(states, np.array([[0, 1]], np.uint32), np.array([[0.1, 0.2]]))
    model = {**JUKES_CANTOR, "alpha": 1000.0}
    logs = apps.likelihood_of_sites(None, data, **model)
    same = 0.25 + 0.75 * np.exp(-0.4)
    expected = np.log([same / 4, (1 - same) / 12, 0.25])
    np.testing.assert_allclose(logs, expected, rtol=1e-3)


@pytest.mark.parametrize("dependencies", [True, False])
def test_run(runtime: leveret.Runtime, dependencies: bool) -> None:
    report = apps.likelihood(
        runtime, species=40, sites=60, steps=3, tasks=2, dependencies=dependencies
    )
    assert report.correct
    assert report.error < 1e-10
    assert report.log_likelihood < 0
    assert report.tasks >= 3 * 2 * 40


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"states": np.zeros((3, 2), np.uint8)}, leveret.InvalidArgument, "1 to 15"),
        ({"states": np.ones(3, np.uint8)}, ValueError, "states must be"),
        ({"states": np.ones((4, 2), np.uint8)}, ValueError, "children must be"),
        ({"children": np.zeros((2, 2), np.uint32)}, leveret.InvalidArgument, "two parents"),
        ({"children": np.array([[0, 4], [1, 2]])}, leveret.InvalidArgument, "smaller number"),
        ({"lengths": np.full((2, 2), -1.0)}, leveret.InvalidArgument, "0 to 1000"),
        ({"lengths": np.full((2, 2), np.nan)}, leveret.InvalidArgument, "0 to 1000"),
        ({"frequency": (0.5, 0.5, 0.5, 0.5)}, leveret.InvalidArgument, "sum must be 1"),
        ({"frequency": (1, 0, 0, 0)}, leveret.InvalidArgument, "more than 0"),
        ({"exchange": (1, 1)}, ValueError, "6 rates"),
        ({"exchange": (0,) * 6}, leveret.InvalidArgument, "more than 0"),
        ({"alpha": 0}, leveret.InvalidArgument, "alpha"),
    ],
)
def test_bad_data(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    fields = apps.likelihood_data(species=3, sites=2)._asdict()
    fields.update({name: value for name, value in changed.items() if name in fields})
    model = {name: value for name, value in changed.items() if name not in fields}
    with pytest.raises(error, match=message):
        apps.likelihood_of_sites(None, apps.LikelihoodData(**fields), **model)


@pytest.mark.parametrize(
    "options",
    [{"species": 1}, {"species": 5000}, {"sites": 0}, {"sites": 2**30}, {"tasks": 0}, {"steps": 0}],
)
def test_bad_options(threads: leveret.Runtime, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|too big"):
        apps.likelihood(threads, **options)
