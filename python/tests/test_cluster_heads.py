"""leveret.Cluster: what a node keeps of its jobs, and what it asks for again."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LIMIT, needs_processes

from leveret import Cluster, ClusterTicket, sliced
from leveret.cluster import heads, libraries, names, node

pytestmark = needs_processes


NOTHING = (0,), "<f8"  # stands for the slice of an array without elements


def told(head: names.Head, *arrays: Any, brings_head: bool) -> names.Report:
    """What a node tells of a piece without elements."""
    parcels = {head.key: pickle.dumps(head)} if brings_head else {}
    settings = tuple(head.settings)
    about: Any = tuple(names.versions()), settings, head.key, (0, 0), parcels, arrays, False
    report = pickle.loads(node.perform(pickle.dumps(about)))
    assert isinstance(report, names.Report)
    return report


def test_a_head_that_others_push_out_while_its_piece_begins(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        name = libraries.name_of(cluster.load(library, "add_one", "inout f8, count(0)"))
        head = names.Head("job:first", cluster._settings, name)
        assert told(head, brings_head=False).lacks == ("job:first",)
        has = libraries.has

        def has_meanwhile(key: str) -> bool:
            """Asked between the look for the head and its use."""
            monkeypatch.setattr(libraries, "has", has)
            for i in range(heads.HEADS_MAX):
                told(dataclasses.replace(head, key=f"job:{i}"), brings_head=True)
            return has(key)

        monkeypatch.setattr(libraries, "has", has_meanwhile)
        assert told(head, brings_head=True).kind == "done"
        assert told(head, brings_head=False).lacks == ("job:first",)


def test_heads_are_forgotten_by_their_last_use() -> None:
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        name = names.ProcedureName("scale", "value f8, inout f8, count(1)")
        head = names.Head("job:long", cluster._settings, name)
        told(head, brings_head=True)
        for i in range(heads.HEADS_MAX):
            told(dataclasses.replace(head, key=f"job:{i}"), brings_head=True)
            assert told(head, brings_head=False).kind == "done", i


def with_added(cluster: Cluster, library: Path, y: Any, **options: Any) -> ClusterTicket:
    """A task whose first argument, of 1 MB, goes whole to each slice, in the job's head."""
    add = cluster.load(library, "add_first", "in f8 [any], inout f8, count(1)")
    return cluster.submit(add, np.ones(125_000), sliced(y), **options)


def test_a_node_keeps_the_heads_of_few_large_jobs(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the driver none, when they are done."""
    monkeypatch.setattr(heads, "HEADS_BYTES", 3_500_000)
    y = np.zeros(4)
    with ThreadPoolExecutor(1) as threads, Cluster(threads, processes=1) as cluster:
        jobs = []
        for _ in range(5):
            ticket = with_added(cluster, library, y)
            ticket.wait(LIMIT)
            jobs.append(ticket._job)
        known = [names.Head(each.key, cluster._settings) for each in jobs]
        has = [told(each, NOTHING, brings_head=False).kind == "done" for each in known]
        assert has == [False, False, True, True, True]
        assert not any(each.head or each.parcels for each in jobs)
    assert (y == 5).all()


def test_jobs_whose_heads_do_not_fit_together(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pushes out the other's, and both go on."""
    monkeypatch.setattr(heads, "HEADS_BYTES", 1)
    with ThreadPoolExecutor(2) as threads, Cluster(threads, processes=2) as cluster:
        outputs = [np.zeros(400) for _ in range(3)]
        tickets = [with_added(cluster, library, each, grain=10) for each in outputs]
        for each in tickets:
            each.wait(LIMIT)
    assert all((each == 1).all() for each in outputs)
