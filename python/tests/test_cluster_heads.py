"""leveret.Cluster: what a node keeps of its jobs, and what it asks for again."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes

from leveret import Cluster
from leveret.cluster import libraries, names, node

pytestmark = needs_processes


def told(head: names.Head, *, brings_head: bool) -> names.Report:
    """What a node tells of a piece without elements."""
    parcels = {head.key: pickle.dumps(head)} if brings_head else {}
    settings = tuple(head.settings)
    about: Any = tuple(names.versions()), settings, head.key, (0, 0), parcels, (), False
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
            for i in range(node.HEADS_MAX):
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
        for i in range(node.HEADS_MAX):
            told(dataclasses.replace(head, key=f"job:{i}"), brings_head=True)
            assert told(head, brings_head=False).kind == "done", i
