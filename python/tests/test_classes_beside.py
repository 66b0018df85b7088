"""Classes of the main module that workers keep are, for each call, what they are in the host."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

PROGRAMS = {
    "what the host changes is seen": """
        class Base:
            factor = 1
            def of_base(self): return self.factor
        class Thing(Base):
            names = ["a"]
            table = {"k": [1]}
            def __init__(self, x): self.x = x
            def value(self, more=0): return self.x + more + STEP + helper()
            @property
            def twice(self): return 2 * self.x
        STEP, DATA = 1, [1, 2]
        def helper(): return len(DATA)
        def look(thing):
            return thing.value(), thing.twice, thing.names, thing.table, thing.of_base()
        def check(call):
            global STEP, DATA, helper
            def same():
                assert call(look, Thing(1)) == look(Thing(1)) == call(lambda: look(Thing(1)))
            def with_defaults(more): Thing.value.__defaults__ = (more,)
            old = Thing.value, helper, vars(Thing)["twice"]
            same()
            for change in (
                lambda: globals().update(STEP=STEP + 1),
                lambda: globals().update(STEP=1),
                lambda: DATA.append(3),
                lambda: globals().update(DATA=[1]),
                lambda: Thing.names.append("b"),
                lambda: Thing.table["k"].append(2),
                lambda: setattr(Thing, "names", ["c"]),
                lambda: setattr(Base, "factor", Base.factor + 1),
                lambda: setattr(Base, "of_base", lambda self: -1),
                lambda: with_defaults(5),
                lambda: setattr(Thing, "value", lambda self: -2),
                lambda: setattr(Thing, "value", old[0]),
                lambda: with_defaults(0),
                lambda: setattr(Thing, "twice", property(lambda self: 3 * self.x)),
                lambda: setattr(Thing, "twice", old[2]),
                lambda: globals().update(helper=lambda: 7),
                lambda: globals().update(helper=old[1]),
                lambda: setattr(Thing, "__doc__", "other"),
            ):
                change()
                same()
            Thing.more = 8
            assert call(lambda thing: thing.more, Thing(1)) == 8
            del Thing.more
        """,
    "what a call changes is not": """
        import dataclasses
        class Thing:
            count, names, table = 0, [], {"k": [1]}
            def value(self, more=0): return more
            def key(self, *, more=0): return more
            @classmethod
            def make(cls): return cls()
        @dataclasses.dataclass
        class Data:
            made = []
            x: int = 0
        def spoil(thing, data):
            kind = type(thing)
            got = (kind.count, list(kind.names), str(kind.table), thing.value(), thing.key(),
                   kind.value.__dict__.copy(), list(data.made), type(Data()) is type(data))
            kind.count += 1
            kind.names.append(1)
            kind.table["k"].append(2)
            kind.value.__defaults__ = (9,)
            kind.key.__kwdefaults__["more"] = 9
            kind.value.mark = 1
            kind.make = None
            data.made.append(1)
            return got
        def replace(thing):
            got = thing.value(), type(thing.make()) is type(thing)
            type(thing).value = lambda self: -1
            del type(thing).make
            return got
        def check(call):
            for _ in range(3):
                fresh = (0, [], "{'k': [1]}", 0, 0, {}, [], True)
                assert call(spoil, Thing(), Data()) == fresh
                assert call(replace, Thing()) == (0, True)
        """,
    "what is one object stays so": """
        import functools
        class Leaf: pass
        class Node:
            EMPTY, parts, registry = Leaf(), [1], {}
            def __init__(self):
                self.empty, self.own, self.method = self.EMPTY, self.parts, Node.run
            def run(self): return self
        class Twin:
            parts = Node.parts
            run = Node.run
            def __init__(self): self.node = Node()
        Node.registry["leaf"] = Leaf
        SHARED = {"a": 1}
        class User:
            shared = SHARED
        def look(node):
            kind = type(node)
            return (kind.__name__ == "Node", node.empty is kind.EMPTY, node.own is kind.parts,
                    node.method is kind.run, kind.registry["leaf"] is Leaf)
        def twins(twin):
            return twin.parts is twin.node.parts, type(twin).run is Node.run, Twin is type(twin)
        def shares(user): return user.shared is SHARED, type(user) is User
        def is_same(a, b): return a is b
        def check(call):
            assert call(look, Node()) == (True,) * 5
            assert call(twins, Twin()) == (True,) * 3
            assert call(shares, User()) == (True, True)
            assert all(call(lambda one, run: (type(one).run is run,), Node(), Node.run))
            assert call(lambda run: type(run()) is Node, Node().run)
            assert call(functools.partial(is_same, Node), Node)
            assert type(call(Node)) is Node
            assert call(lambda one: one, Node).registry is Node.registry
        """,
    "classes name each other": """
        import abc, typing
        class Shape(abc.ABC):
            @abc.abstractmethod
            def area(self): ...
            def pair(self): return Pair(self, self)
        class Square(Shape):
            def __init__(self, a): super().__init__(); self.a = a
            def area(self): return self.a ** 2
        class Pair(typing.NamedTuple):
            one: Shape
            other: Shape
            def area(self): return self.one.area() + self.other.area()
        class Even(abc.ABC): pass
        def kinds(pair): return type(pair) is Pair, isinstance(pair.one, Shape), pair.area()
        def check(call):
            assert call(kinds, Square(2).pair()) == (True, True, 8)
            got = call(lambda shape: shape.pair(), Square(3))
            assert type(got) is Pair and type(got.one) is Square and got.area() == 18
            try:
                call(Shape)
            except TypeError as error:
                assert "abstract" in str(error)
            else:
                raise AssertionError
            assert call(lambda x: isinstance(x, Even), 2) == isinstance(2, Even)
            Even.register(int)
            assert call(lambda x: isinstance(x, Even), 2)
        """,
    "classes that are defined again": """
        def define(x):
            class Thing:
                registry = {}
                def get(self): return x, type(self).__name__
            return Thing
        Thing = define(1)
        def use(thing): return thing.get(), type(thing) is Thing
        def check(call):
            global Thing
            for i in range(3):
                old, Thing = Thing, define(i)
                Thing.__qualname__ = "Thing"
                assert call(use, Thing()) == ((i, "Thing"), True)
                assert call(use, old()) == (old().get(), False)
                assert call(lambda: type(Thing()) is Thing)
        """,
    "globals that are objects of such classes": """
        import dataclasses, enum
        class Level(enum.Enum):
            LOW, HIGH = 1, 2
        @dataclasses.dataclass
        class Config:
            depth: int = 3
            level: Level = Level.LOW
            def twice(self): return 2 * self.depth
        CONFIG = Config()
        LEVELS = {Level.LOW: [Config(1)]}
        def use(x):
            CONFIG.used = True
            return (CONFIG.twice() + x, CONFIG.level is Level.LOW, type(CONFIG) is Config,
                    LEVELS[Level.LOW][0].depth)
        def check(call):
            CONFIG.depth = 3
            assert call(use, 1) == (7, True, True, 1)
            CONFIG.depth = 4
            assert call(use, 1) == (9, True, True, 1)
            Config.twice = lambda self: -self.depth
            assert call(use, 1) == (-3, True, True, 1)
            Config.twice = lambda self: 2 * self.depth
            LEVELS[Level.LOW][0].depth = 5
            assert call(use, 1) == (9, True, True, 5)
            LEVELS[Level.LOW][0].depth = 1
        """,
}
END = """
import leveret
if __name__ == "__main__":
    with leveret.ProcessExecutor(1) as executor:
        check(lambda fn, *args: executor.submit(fn, *args).result(60))
        check(lambda fn, *args: executor.submit(fn, *args).result(60))
        def last_of_a_chunk(fn, *args):
            args = args or (0,)
            given = fn if args != (0,) else (lambda _: fn())
            return [*executor.map(given, *([each] * 3 for each in args), chunksize=3)][-1]
        check(last_of_a_chunk)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    run_program(tmp_path, textwrap.dedent(PROGRAMS[name]) + END)
