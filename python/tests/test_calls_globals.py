"""ProcessExecutor: globals of the main module live in each process, and follow the host's."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

BEGIN = """
import functools, gc, os, struct, threading
import leveret
from leveret.wire.pickling import dumps
"""
END = """
with leveret.ProcessExecutor(1, initializer=globals().get("initializer")) as executor:
    def run(function, *given):
        return executor.submit(function, *given).result(60)
    check()
print("passed", flush=True)
"""

PROGRAMS = {
    "context_variables_are_as_the_module_made_them": """
from contextvars import ContextVar
request = ContextVar("request", default="none")
unset = ContextVar("unset")
def get(): return request.get(), unset.get(7), request.name
def put(value):
    before = request.get()
    request.set(value)
    return before, request.get()
def check():
    request.set("of the host")
    unset.set(1)
    assert run(get) == ("none", 7, "request")
    assert run(put, "other")[1] == "other"
    assert list(executor.map(lambda i: request.name, range(3))) == ["request"] * 3
    assert request.get() == "of the host"
""",
    "what_is_loaded_lazily_is_loaded_once": """
library = None
cache = {}
def lazy():
    global library
    if library is None:
        library = object()
    return id(library)
def cached(key):
    return cache.setdefault(key, os.urandom(8))
def check():
    assert len({run(lazy) for _ in range(3)}) == 1
    assert len({run(cached, 1) for _ in range(3)}) == 1
    assert len(set(executor.map(cached, [1] * 20, chunksize=3))) == 1
    assert library is None and cache == {}
""",
    "what_the_host_changes_is_set_again": """
k, seen = 1, []
def of_k(): return k
def of_k_too(): return k, len(seen)
def note(): seen.append(0); return len(seen)
def check():
    global k
    for _ in range(2):  # of_k is kept, and its constants were others meanwhile
        k = 1
        assert run(of_k) == 1
        k = 2
        assert run(of_k_too)[0] == 2 and run(of_k) == 2
    assert [run(note), run(note)] == [1, 2]
    assert run(of_k_too) == (2, 2)
    seen.extend("abcd")
    assert run(note) == 5 and run(of_k_too) == (2, 5)
    k = True
    assert run(of_k) is True
    k = 1
    assert run(of_k) == 1 and run(of_k) is not True
""",
    "what_belongs_to_a_process": """
lock, again, mine = threading.Lock(), threading.RLock(), threading.local()
done = threading.Event()
@functools.lru_cache(maxsize=7)
def load(key): return os.urandom(8)
def use(key):
    with lock, again:
        mine.n = getattr(mine, "n", 0) + 1
        done.set()
        return mine.n, load(key), lock.locked(), done.is_set()
def check():
    lock.acquire()
    (a, b, held, is_set), (c, d, _, _) = run(use, 1), run(use, 1)
    assert (a, c, held, is_set) == (1, 2, True, True) and b == d and not done.is_set()
    assert run(load, 1) == b and load.cache_info().misses == 0
    assert "cannot pickle" in str(executor.submit(len, [lock]).exception(60))
""",
    "what_an_initializer_sets": """
model, table, late = None, {}, []
def initializer():
    global model, table, unnamed
    model, table, unnamed = "loaded", {"a": 1}, 5
    fill()
def fill(): late.append(1)
def use(): return model, table, unnamed, late
def check():
    assert run(use) == run(use) == ("loaded", {"a": 1}, 5, [1])
    assert list(executor.map(use, *[[]])) == []
""",
    "layouts_of_struct": """
head = struct.Struct("<IH")
def parse(data): return head.unpack(data)
def check():
    assert run(parse, head.pack(7, 8)) == (7, 8)
    assert run(lambda layout: layout, head).format == head.format
""",
    "what_cannot_be_pickled": """
handle = (each for each in "ab")
other = (each for each in "ab")
def initializer():
    global other
    other = "made here"
def reads(): return list(handle)
def unused(yes):
    return handle if yes else other
def check():
    assert run(unused, False) == "made here"
    for each in (executor.submit(reads), executor.submit(unused, True)):
        error = each.exception(60)
        assert type(error) is NameError and "initializer" in str(error), error
        assert "handle" in str(error) and "generator" in str(error), error
""",
    "what_refers_to_itself": """
class Node:
    def __init__(self): self.next = self
    def root(self): return first
first, second = Node(), [1]
second.append(second)
def same(): return first.root() is first and first.next is first and second[1] is second
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def check():
    assert run(same) and run(same) and run(even, 10) and not run(even, 7)
""",
    "caches_by_weak_references": """
import weakref
@functools.singledispatch
def kind(x): return "any"
@kind.register
def _(x: int): return "int"
@kind.register
def _(x: list): return [kind(each) for each in x]
class Key: pass
key = Key()
def sizes(weak, key): return [len(each) for each in weak], weak[0][key], weak[1]["k"] is key
def check():
    assert run(kind, [1, ["x"]]) == ["int", ["any"]] == kind([1, ["x"]])
    assert run(lambda x: kind(x), 1) == "int"
    assert list(executor.map(kind, [1, "x"])) == ["int", "any"]
    weak = [weakref.WeakKeyDictionary({key: 5}), weakref.WeakValueDictionary(k=key)]
    weak.append(weakref.WeakSet([key]))
    assert run(sizes, weak, key) == ([1, 1, 1], 5, True)
""",
    "how_much_travels": """
for i in range(30):  # each class names all others, each of them an object
    exec(f"class C{i}:\\n def f(self): return " + ", ".join(f"C{j}, o{j}" for j in range(30)))
    exec(f"o{i} = C{i}()")
def use(): return len(o1.f())
def check():
    assert len(dumps(use, 0)[0]) < 2_000_000
    assert run(use) == 60
""",
    "what_globals_have_in_common": """
class Model:
    def __init__(self): self.weights = [0]
class Optimizer:
    def __init__(self, weights): self.weights = weights
    def step(self): self.weights[0] += 1
model = Model()
optimizer = Optimizer(model.weights)
nodes = [Model(), Model()]
index, alias = {"a": nodes[0]}, nodes
handlers = []
class Plugin:
    def __init__(self): handlers.append(self)
plugin, cache = Plugin(), {}
other = Model()
def train():
    optimizer.step()
    return model.weights[0]
def trained(): return model.weights[0]
def same():
    alias.append(1)
    return index["a"] is nodes[0] and alias is nodes and handlers[0] is plugin
def fill(): cache[len(cache)] = other; return len(cache)
def check():
    global model
    assert [run(train), run(train), run(trained)] == [1, 2, 2] and run(same) and run(same)
    assert [run(fill), run(fill)] == [1, 2]
    optimizer.weights[0] = 5  # both are set again, and nothing else
    assert [run(train), run(trained), run(fill)] == [6, 6, 3]
    optimizer.weights = [5]  # the same values, but no longer the same list
    assert [run(train), run(trained)] == [5, 5]
    model, handlers[0] = Model(), 7
    assert [run(train), run(trained)] == [0, 0]
    assert list(executor.map(lambda i: train() and False, range(4), chunksize=2)) == [0] * 4
""",
    "marks_of_what_was_not_given": """
MISSING = NONE = object()
COUNTS = {}
class Registry:
    counts = COUNTS
    def add(self, key): self.counts[key] = 1; return len(COUNTS)
def default(x=MISSING, *, y=MISSING): return x is MISSING and y is NONE
def within(given): return given["x"] is MISSING
def count(key, counts=COUNTS): counts[key] = 1; return len(COUNTS)
def closure(mark): return lambda: mark is MISSING
def give(): return [MISSING, object()]
@functools.lru_cache(None)
def cached(x, y=MISSING): return y is MISSING
table = [cached]
def by_table(): return table[0](1)
def check():
    assert run(default) and run(within, {"x": MISSING}) and run(closure(MISSING))
    assert list(executor.map(within, [{"x": NONE}, {"x": object()}])) == [True, False]
    assert [run(count, 1), run(count, 2), run(Registry().add, 3)] == [1, 2, 3] and COUNTS == {}
    given = run(give)
    assert given[0] is MISSING and type(given[1]) is object and given[1] is not MISSING
    assert run(by_table) and run(cached, 2) and cached.cache_info().misses == 0
""",
    "a_default_that_cannot_be_pickled": """
handle = (each for each in "ab")
def read(it=handle): return list(it), handle
def check():
    error = executor.submit(read).exception(60)
    assert type(error) is NameError and "generator" in str(error) and "initializer" in str(error)
""",
    "what_the_host_deletes_is_deleted": """
def add(): return sum([1, 2])
def size(): return len("ab")
def has_data():
    try:
        return DATA[0]
    except NameError:
        return "none"
def set_own():
    global OWN
    OWN = 2
def own(): return OWN
def check():
    global sum, len, DATA, OWN
    sum, len, DATA, OWN = 5, (lambda x: 99), [1], 1
    assert executor.submit(add).exception(60) is not None
    assert run(size) == 99 and run(has_data) == 1 and run(own) == 1
    run(set_own)
    del sum, len, DATA, OWN
    assert run(add) == 3 and run(size) == 2 and run(has_data) == "none"
    assert type(executor.submit(own).exception(60)) is NameError
    run(set_own)
    assert run(own) == 2  # the process's own, from now on
    OWN = 1
    assert run(own) == 1
    assert executor.submit(lambda: sum([3])).result(60) == 3
    assert list(executor.map(lambda i: len("ab"), range(3))) == [2] * 3
    DATA, sum = [2], max
    assert run(has_data) == 2 and run(add) == 2
    del sum
    assert run(add) == 3
    sum = max  # as it was once before
    assert run(add) == 2
    del DATA, sum
    assert run(has_data) == "none" and run(add) == 3
""",
    "what_holds_functions_stays_as_calls_have_left_it": """
def helper(): return 1
def other(): return helper()
TABLE = {"function": other, "count": 0}
@functools.lru_cache(None)
def cached(x): return other(), os.urandom(8)
def by_name():
    TABLE["count"] += 1
    return TABLE["count"], cached(1)
def by_text():
    globals()["TABLE"]["count"] += 1
    return TABLE["count"], globals()["cached"](1)
def by_import():
    import __main__
    __main__.TABLE["count"] += 1
    return __main__.TABLE["count"], __main__.cached(1)
def check():
    found = [run(each) for _ in range(3) for each in (by_name, by_text, by_import)]
    assert [each[0] for each in found] == list(range(1, 10))
    assert len({each[1] for each in found}) == 1
""",
    "what_another_function_has_brought_is_deleted": """
def size(): return len("ab")
def other(): return len("ab"), size()
class Sizes:
    def size(self): return max(1, 2)
    def other(self): return max(1, 2), self.size()
def check():
    global len, max
    assert run(size) == 2 and run(Sizes().size) == 2
    len, max = (lambda x: 99), min
    assert run(other) == (99, 99) and run(Sizes().other) == (1, 1)
    del len, max
    assert run(size) == 2 and run(Sizes().size) == 2
    assert list(executor.map(lambda i: len("ab"), range(3))) == [2] * 3
""",
    "submodules_that_inner_code_names": """
import json.tool, xml.dom.minidom
def tags(texts): return [xml.dom.minidom.parseString(t).documentElement.tagName for t in texts]
def inner():
    def within(t): return xml.dom.minidom.parseString(t).documentElement.tagName
    return within("<b/>")
def check():
    assert run(tags, ["<a/>", "<b/>"]) == ["a", "b"] and run(inner) == "b"
    assert run(lambda: (lambda: json.tool.main.__name__)()) == "main"
""",
    "what_annotations_name_that_are_texts": """
import dataclasses, typing
from typing import Optional
DATA = [1]
@dataclasses.dataclass
class Inner:
    n: "int"
@dataclasses.dataclass
class Outer:
    inner: "Inner"
    many: "list[Inner]"
    next: "Optional[Outer]" = None
    data: "typing.Literal['DATA']" = "DATA"
def make(given):
    hints = typing.get_type_hints(Outer)
    return Outer(hints["inner"](**given), [], None)
class Unsent:
    kept = (each for each in ())
def unused(x: "Unsent", n: "typing.Literal['make']"): return n
@dataclasses.dataclass
class Holds:
    unsent: "Unsent"
    n: "int" = 3
def check():
    made = run(make, {"n": 1})
    assert type(made) is Outer and type(made.inner) is Inner and made.inner.n == 1
    assert run(typing.get_type_hints, Outer) == typing.get_type_hints(Outer)
    assert run(unused, None, 3) == 3  # what only annotations name may be left out
    assert run(lambda each: each.n + 1, Holds(None)) == 4
    assert run(lambda: Holds(None).n) == 3
    assert list(executor.map(make, [{"n": i} for i in range(3)]))[2].inner.n == 2
""",
    "a_pool_in_a_pool": """
counts, MARK = [], object()
last = [counts]
class Counter:
    counts = counts
    def count(self): return len(self.counts), self.counts is last[0]
def inner(i, mark=MARK):
    counts.append(i)
    return len(counts), mark is MARK
def give(mark): return mark
def outer():
    counts.append(0)
    with leveret.ProcessExecutor(1) as nested:
        found = [nested.submit(inner, i, MARK).result() for i in range(2)]
        found.append(nested.submit(Counter().count).result())
        return found, nested.submit(give, MARK).result() is MARK
def check():
    assert run(outer) == ([(2, True), (3, True), (1, True)], True)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_globals(name: str, tmp_path: Path) -> None:
    text = BEGIN + PROGRAMS[name] + END
    assert run_program(tmp_path, text, "-W", "error") == "passed\n"
