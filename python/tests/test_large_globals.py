"""ProcessExecutor: large globals of the main module are stored once, for many calls."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes

from leveret.wire import tables

pytestmark = needs_processes

BEGIN = """
import gc, os, sys
import numpy as np
import leveret
from leveret.wire import stored, tables
field = np.arange(1_000_000, dtype=np.float64)
"""
END = """
with leveret.ProcessExecutor(2, initializer=globals().get("initializer")) as executor:
    def run(function, *given):
        return executor.submit(function, *given).result(60)
    check()
del executor
gc.collect()
assert not stored._by_digest and not stored._by_place, "a part outlives its executor"
assert stored.StoredFile.count == 0
print("passed", flush=True)
"""

PROGRAMS = {
    "calls_share_one_copy_and_processes_have_their_own": """
def read(i): return float(field[i]), os.getpid()
def spoil():
    field[:] = -1
    return os.getpid()
def check():
    futures = [executor.submit(read, i) for i in range(100)]
    assert len(stored._by_digest) == 1
    assert [each.result()[0] for each in futures] == list(range(100))
    assert [value for value, _ in executor.map(read, range(300))] == list(range(300))
    assert len(stored._by_digest) == 1
    spoiled = run(spoil)  # as any change of a global, it stays in that process
    seen = [run(read, 5) for _ in range(20)]
    assert all(value == (-1 if where == spoiled else 5) for value, where in seen), seen
    assert field[5] == 5
""",
    "what_the_host_changes_in_place_is_sent_again": """
def total(): return float(field.sum())
def check():
    for step in range(5):
        field[step] += 1000
        assert run(total) == field.sum()
        assert set(executor.map(lambda i: total(), range(8))) == {field.sum()}
    assert len(stored._by_digest) <= 2
""",
    "what_is_one_object_stays_one": """
rows = [field, {"again": field}]
index = {"field": field}
words = {f"word {i}": i for i in range(50_000)}
def check():
    def one():
        is_one = rows[0] is field is rows[1]["again"] is index["field"]
        return is_one, len(words), words["word 7"]
    assert run(one) == (True, 50_000, 7)
    rows.append(1)
    assert run(one) == (True, 50_000, 7)
    def write():
        rows[0][3] = 8
        return float(index["field"][3]), field.flags.writeable
    assert run(write) == (8, True)
""",
    "what_an_initializer_has_made_of_it_stays": """
def initializer():
    field[:] = 4
def check():
    assert set(executor.map(lambda i: float(field[i]), range(50))) == {4}
    field[7] = 1
    assert set(executor.map(lambda i: float(field[i]), range(7, 8))) == {1}
""",
    "arrays_of_every_kind": """
arrays = [
    np.asfortranarray(np.arange(90_000.0).reshape(300, 300)), np.arange(200_000)[::2],
    np.broadcast_to(np.float64(2), (300, 300)), np.zeros((0, 10**6)), np.array(["a" * 9000] * 10),
    np.array([None, {"x": 1}] * 9000, dtype=object), np.ma.masked_less(np.arange(20_000), 7),
    np.rec.fromarrays([np.arange(9000), np.ones(9000)], names="a,b"), np.arange(1e5).astype(">f8"),
]
fixed = np.arange(30_000.0)
fixed.setflags(write=False)
blob, text, more = bytes(range(256)) * 999, "text" * 99_999, bytearray(b"x") * 70_000
def check():
    given = run(lambda: (arrays, fixed, blob, text, more))
    for mine, theirs in zip(arrays, given[0]):
        assert type(mine) is type(theirs) and mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape and (mine == theirs).all()
    assert (given[1] == fixed).all() and given[2:] == (blob, text, more)
    assert not run(lambda: fixed.flags.writeable)
""",
    "a_part_that_was_overwritten_is_no_result": """
def total(): return float(field.sum())
def check():
    assert run(total) == field.sum()
    field[0] = 9
    made, stored.FILES_MAX = stored.StoredBlock.__init__, 0
    def make(self, part):
        made(self, part)
        memoryview(self.block)[:8] = bytes(8)
    stored.StoredBlock.__init__ = make
    try:
        run(total)
    except NameError as error:
        assert "overwritten" in str(error), error
    else:
        raise AssertionError("what was overwritten was used")
    stored.StoredBlock.__init__ = made
    assert run(total) == field.sum()
""",
    "a_child_has_its_own": """
def total(): return float(field.sum())
def check():
    assert run(total) == field.sum()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with leveret.ProcessExecutor(1) as own:
                code = int(own.submit(total).result(60) != field.sum())
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert run(total) == field.sum()
""",
    "crashed_attempts_and_dead_processes": """
def fall(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os.abort()
    return float(field.sum())
def check():
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        results = list(executor.map(fall, [f"{folder}/{i}" for i in range(4)]))
    assert results == [field.sum()] * 4
""",
    "batches_of_joblib": """
def total(step): return step, float(field.sum())
def check():
    try:
        import joblib
    except ImportError:
        return
    leveret.register_joblib()
    with joblib.parallel_config("leveret", n_jobs=2):
        for step in range(3):
            field[step] += 10
            given = joblib.Parallel()(joblib.delayed(total)(i) for i in range(30))
            assert given == [(i, field.sum()) for i in range(30)]
""",
    "many_globals_change_at_random": """
import random
seed = int(os.environ.get("SEED", "0")) or 1
draw = random.Random(seed)
a, b, c, d = (np.full(20_000, i) for i in range(4))
names = "abcd"
def sums(): return [int(each.sum()) for each in (a, b, c, d)], a is b, c[0] is None
def check():
    for _ in range(60):
        one, other = draw.choice(names), draw.choice(names)
        what = draw.randrange(3)
        if what == 0: globals()[one][draw.randrange(10)] = draw.randrange(99)
        elif what == 1: globals()[one] = globals()[other]
        else: globals()[one] = np.full(draw.choice([10, 20_000, 40_000]), draw.randrange(9))
        expected = [int(each.sum()) for each in (a, b, c, d)], a is b, False
        futures = [executor.submit(sums) for _ in range(draw.randrange(1, 4))]
        assert all(each.result(60) == expected for each in futures), (seed, expected)
""",
}


@pytest.mark.parametrize("where", ["files", "shared_memory"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, where: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    begin = BEGIN if where == "files" else BEGIN + "stored.FILES_MAX = 0\n"
    program.write_text(begin + PROGRAMS[name] + END)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


def test_what_globals_take_to_be_read_is_no_part_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "perf_counter_ns", itertools.count().__next__)
    monkeypatch.setattr(tables.Taken, "ns", 0)
    good, bad = pickle.dumps((1,), 5), b"no pickle"
    homes = (("of_nobody#1", "a"),), (("of_nobody#1", "b"),)
    for taken, parts in enumerate(([good], [good, bad]), 1):
        number = bytes([taken])
        tables.take_values([(home, (number,), [part]) for home, part in zip(homes, parts)])
        assert tables.Taken.ns == taken
    tables.take_values([(homes[0], (b"\x02",), [good])])  # it is there
    assert tables.Taken.ns == 2
