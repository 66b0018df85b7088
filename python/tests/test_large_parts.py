"""ProcessExecutor: large arrays of functions and arguments are stored once, for many calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs_processes

pytestmark = needs_processes

BEGIN = """
import functools, gc, os, random, sys
import numpy as np
import leveret
from leveret.wire import stored
stored.CALL_BYTES_MIN = 1 << 20
made = []
make = stored.StoredFile.__init__
def note(self, part):
    make(self, part)
    made.append(part.nbytes)
stored.StoredFile.__init__ = note
def total(array, i, writes=False):
    whole = int(array.sum()) + i
    if writes:
        array[:] = -1
    return whole
class Model:
    def __init__(self, array): self.array = array
    def total(self, i, writes=False): return total(self.array, i, writes)
def closure(array):
    return lambda i, writes=False: total(array, i, writes)
def default(array):
    return lambda i, writes=False, array=array: total(array, i, writes)
def partial(array): return functools.partial(total, array)
ways = {"partial": partial, "closure": closure, "default": default}
ways["self"] = lambda array: Model(array).total
def fresh(size=200_000): return np.arange(size)
def opened(workers=2): return leveret.ProcessExecutor(workers)
"""
END = """
gc.collect()
assert not stored._by_place and stored.StoredFile.count == 0, "a part outlives its executor"
print("passed", flush=True)
"""

PROGRAMS = {
    "is_stored_once_and_each_call_has_its_own": """
with opened() as executor:
    for make_function in ways.values():
        array, before = fresh(), len(made)
        function = make_function(array)
        expected = [int(array.sum()) + i for i in range(20)]
        for writes in ([False] * 20, [True] * 20):
            assert list(executor.map(function, range(20), writes)) == expected
            futures = [executor.submit(function, i, write) for i, write in enumerate(writes)]
            assert [each.result(60) for each in futures] == expected
        assert len(made) == before + 1, made[before:]
        assert array[7] == 7
    array = fresh()
    futures = [executor.submit(total, array, i, True) for i in range(20)]
    assert [each.result(60) for each in futures] == expected
    assert list(executor.map(total, [array] * 20, range(20), chunksize=5)) == expected
    assert len(made) == len(ways) + 1
""",
    "what_the_host_changes_is_sent_again": """
array = fresh()
with opened() as executor:
    function = partial(array)
    for step in range(40):
        assert executor.submit(function, 0).result(60) == array.sum()
        array[step % 3 - 1] += 1000
    assert len(made) < 12, "what always changes is stored again and again"
""",
    "what_is_dropped_is_no_longer_stored": """
with opened() as executor:
    array = fresh()
    for _ in range(3): executor.submit(total, array, 0).result(60)
    assert stored.StoredFile.count == 1
    view = array[::-1][::-1]
    del array
    assert stored.StoredFile.count == 1
    del view
    gc.collect()
    assert stored.StoredFile.count == 0
    for i in range(40):
        assert executor.submit(total, fresh() + i, 0).result(60) == (fresh() + i).sum()
    assert len(made) < 12, "what always is another one is stored again and again"
""",
    "a_process_may_keep_its_own": """
kept = {}
def keep(array, i): kept[i] = array
def look(i): return int(kept[i].sum()), kept[i].flags.writeable
array = fresh()
with opened(1) as executor:
    for i in range(5): executor.submit(keep, array, i).result(60)
    whole = int(array.sum())
    array[:] = 0
    for _ in range(5): assert executor.submit(total, array, 0).result(60) == 0
    del array
    assert [executor.submit(look, i).result(60) for i in range(5)] == [(whole, True)] * 5
""",
    "of_every_kind": """
arrays = [
    np.asfortranarray(fresh(400_000).reshape(800, 500)), fresh(400_000)[::2], fresh()[50_000:],
    np.rec.fromarrays([fresh(), np.ones(200_000)], names="a,b"), np.arange(2e5).astype(">f8"),
    np.ma.masked_less(fresh(), 7), fresh().reshape(2, 2, -1),
]
arrays[2].setflags(write=False)
def about(array): return array, array.flags.writeable
with opened() as executor:
    for each in arrays:
        for _ in range(4):
            given, can_write = executor.submit(about, each).result(60)
            assert (given == each).all() and given.dtype == each.dtype
            assert given.strides == each.strides or each is arrays[1]
            assert can_write == each.flags.writeable
""",
    "a_file_that_the_program_has_closed": """
array = fresh()
with opened() as executor:
    for _ in range(3): executor.submit(total, array, 0).result(60)
    os.close(next(iter(stored._by_place.values())).file)
    for _ in range(8): assert executor.submit(total, array, 0).result(60) == array.sum()
""",
    "where_files_are_hidden": """
stored.shows_files = lambda: False
array = fresh()
with opened() as executor:
    for _ in range(5): assert executor.submit(partial(array), 0).result(60) == array.sum()
assert not made
""",
    "a_child_stores_its_own": """
array = fresh()
with opened() as executor:
    for _ in range(3): executor.submit(total, array, 0).result(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with opened() as own:
                sums = [own.submit(total, array, 0).result(60) for _ in range(3)]
                code = int(sums != [array.sum()] * 3)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert executor.submit(total, array, 0).result(60) == array.sum()
""",
    "crashed_attempts": """
import tempfile
def fall(array, path):
    if not os.path.exists(path):
        open(path, "w").close()
        array[:] = 0
        os.abort()
    return total(array, 0)
array = fresh()
with opened() as executor, tempfile.TemporaryDirectory() as folder:
    for i in range(4):
        assert executor.submit(fall, array, f"{folder}/{i}").result(60) == array.sum()
""",
    "a_part_that_ends_is_not_found_again": """
found, close_file = [], stored.close_file
def close(file):
    found.append(stored._by_place.get(place))
    close_file(file)
stored.close_file = close
view = memoryview(fresh()).cast("B")
place = stored._core.address_of(view), view.nbytes
part = stored._by_place[place] = stored.StoredFile(view)
del part
assert found == [None], found
""",
    "threads_whose_parts_end_at_once": """
import threading
stored.IDLE_BYTES_MAX = 0
wrong = []
def run(i, executor):
    array = fresh() + i
    for _ in range(8):
        if executor.submit(total, array, 0).result(60) != array.sum(): wrong.append(i)
with opened() as executor:
    threads = [threading.Thread(target=run, args=(i, executor)) for i in range(12)]
    for each in threads: each.start()
    for each in threads: each.join()
assert not wrong, wrong
""",
    "random_programs": """
seed = int(os.environ.get("SEED", "0")) or 1
draw = random.Random(seed)
arrays = [fresh(draw.choice([100, 140_000, 200_000])) for _ in range(4)]
with opened() as executor:
    for step in range(60):
        k = draw.randrange(4)
        if draw.random() < 0.2: arrays[k][draw.randrange(arrays[k].size)] += 5
        if draw.random() < 0.1: arrays[k] = fresh(arrays[k].size) + draw.randrange(3)
        count, array = draw.randrange(1, 8), arrays[k]
        writes = [draw.random() < 0.3 for _ in range(count)]
        expected = [int(array.sum()) + i for i in range(count)]
        function = draw.choice(list(ways.values()))(array)
        if draw.random() < 0.5:
            got = list(executor.map(function, range(count), writes, chunksize=draw.choice([1, 3])))
        else:
            futures = [executor.submit(function, i, writes[i]) for i in range(count)]
            got = [each.result(60) for each in futures]
        assert got == expected, (seed, step)
del array, arrays, function
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEGIN + PROGRAMS[name] + END)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
