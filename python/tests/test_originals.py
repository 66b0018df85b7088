"""ProcessExecutor: os.environ and the generators behind random and NumPy are the process's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

BEGIN = """
import os, random, functools
import leveret
"""

PROGRAMS = {
    "numbers_of_an_imported_name": """
from random import gauss, randint, random as draw
def work(i): return draw(), gauss(0, 1), randint(0, 1 << 60)
drawn = []
for _ in range(2):
    with leveret.ProcessExecutor(1) as executor:
        drawn += executor.map(work, range(4))
assert len(set(drawn)) == 8
""",
    "numbers_of_numpys_imported_name": """
import numpy as np
from numpy.random import rand
def work(i): return float(rand()), GENERATOR is np.random.mtrand._rand
GENERATOR = np.random.mtrand._rand
drawn = []
for _ in range(2):
    with leveret.ProcessExecutor(1) as executor:
        drawn += executor.map(work, range(4))
        drawn += executor.map(lambda i: (float(i()), True), [np.random.rand] * 2, chunksize=2)
assert len(set(drawn)) == 12 and all(is_own for _, is_own in drawn)
""",
    "secrets": """
import secrets
from secrets import choice
def work(i): return choice([i])
with leveret.ProcessExecutor(1) as executor:
    assert list(executor.map(work, range(3))) == [0, 1, 2]
    assert executor.submit(secrets.choice, [5]).result() == 5
""",
    "seeds_count_for_them": """
from random import random as draw
def work(i): return draw()
def other(i): return random.random()
drawn = []
for function in (work, other, functools.partial(random.uniform, 0)):
    with leveret.ProcessExecutor(2, seed=3, seed_calls=True) as executor:
        drawn.append(list(executor.map(function, [1] * 5)))
assert drawn[0] == drawn[1] == drawn[2] and len(set(drawn[0])) == 5
""",
    "methods_as_functions": """
with leveret.ProcessExecutor(1, env={"WHERE": "a worker"}) as executor:
    assert len({executor.submit(random.random).result() for _ in range(3)}) == 3
    executor.submit(random.seed, 1).result()
    assert executor.submit(random.random).result() == random.Random(1).random()
    assert executor.submit(os.environ.get, "WHERE").result() == "a worker"
""",
    "the_environment_by_an_imported_name": """
from os import environ
def work():
    environ["MORE"] = "2"
    return environ["WHERE"], os.environ["MORE"], os.getenv("MORE"), environ is os.environ
with leveret.ProcessExecutor(1, env={"WHERE": "a worker"}) as executor:
    assert executor.submit(work).result() == ("a worker", "2", "2", True)
""",
    "methods_without_a_name": """
import functools, types
class Thing:
    start = 40
def add(self, more):
    return self.start + more
thing = Thing()
thing.add = types.MethodType(functools.partial(add), thing)
with leveret.ProcessExecutor(1) as executor:
    assert executor.submit(thing.add, 2).result() == 42
    assert executor.submit(lambda method: method(3), thing.add).result() == 43
""",
    "arguments_and_results_are_copies": """
def change(given):
    given["WHERE"] = "there"
    return given
random.seed(5)
copy = random._inst
os.environ["WHERE"] = "here"
with leveret.ProcessExecutor(1) as executor:
    changed = executor.submit(change, os.environ).result()
    assert changed["WHERE"] == "there" and os.environ["WHERE"] == "here"
    assert changed is not os.environ
    drawn = executor.submit(lambda given: given.random(), copy).result()
    own = executor.submit(lambda: random.random).result()
assert drawn == random.random() and own.__self__ is not random._inst
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    text = BEGIN + PROGRAMS[name] + 'print("passed", flush=True)\n'
    assert run_program(tmp_path, text, "-W", "error") == "passed\n"
