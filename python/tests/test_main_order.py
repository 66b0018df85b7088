"""What of the main module arrives before what: classes before their objects, and all names."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conftest import needs_processes, run_program

pytestmark = needs_processes

PROGRAMS = {
    "a class with an object of itself": """
        import dataclasses, decimal, typing
        class Point(typing.NamedTuple):
            x: int
            def from_origin(self):
                return self.x - Point.origin.x
        Point.origin = Point(2)
        class Money(decimal.Decimal):
            def with_fee(self):
                return self + Shop.fee
        class Shop:
            fee = Money("1.5")
        class Vector:
            made = []
            def __init__(self, x):
                self.x = x
                self.made.append(x)
            def __reduce__(self):
                return Vector, (self.x,)
            def plus(self):
                return self.x + World.zero.x
        class World:
            zero = Vector(10)
        class Degrees(int):
            def __new__(cls, value, unit):
                made = int.__new__(cls, value)
                made.unit = unit
                return made
            def __getnewargs__(self):
                return int(self), self.unit
            def of_zero(self):
                return Scale.zeros[self.unit].unit
        class Scale:
            zeros = {"C": Degrees(0, "C")}
        class Plugin:
            known, made = {}, []
            def __init_subclass__(cls):
                Plugin.known[cls.__name__] = cls
            def __init__(self, v):
                self.v = v
            def __reduce__(self):
                return type(self), (self.v,)
        class First(Plugin):
            def all(self):
                return list(Plugin.known), [each.v for each in Plugin.made]
        class Second(Plugin):
            pass
        Plugin.made += [First(1), Second(2)]
        class Noting(type):
            known = {}
            def __new__(cls, name, bases, given):
                made = cls.known[name] = super().__new__(cls, name, bases, given)
                return made
        class Noted(metaclass=Noting):
            @classmethod
            def is_known(cls):
                return Noting.known["Noted"] is cls
        def run(thing, name):
            return getattr(thing, name)()
        def origin(kind):
            return kind.origin
        def check(call):
            assert call(run, Point(5), "from_origin") == 3 and call(lambda: Point(6).x) == 6
            assert call(origin, Point) == (2,) and type(call(origin, Point)) is Point
            assert call(run, Money("2"), "with_fee") == Money("3.5")
            assert call(Vector(1).plus) == 11 and call(lambda: World.zero.x) == 10
            assert call(run, Degrees(7, "C"), "of_zero") == "C"
            assert call(First(3).all) == (["First", "Second"], [1, 2])
            assert call(Noted.is_known) is True
    """,
    "what a class counts and lists as its objects are made": """
        REGISTRY = []
        class Item:
            registry, own = REGISTRY, []
            def __init__(self, number):
                self.number = number
            def __setstate__(self, state):
                vars(self).update(state)
                self.registry.append(self.number)
                self.own.append(self.number)
        Item.first = Item(1)
        class Counted:
            made, known, by_number = 0, set(), {}
            def __new__(cls):
                Counted.made += 1
                Counted.known.add(Counted.made)
                Counted.by_number[Counted.made] = "made"
                return object.__new__(cls)
        Counted.one, Counted.other = Counted(), Counted()
        class Once(type):
            def __setattr__(cls, name, value):
                if name == "first" and name in vars(cls):
                    raise AttributeError(name)
                super().__setattr__(name, value)
        class Limits(metaclass=Once):
            first, items = 1, [object()]
            def run(self):
                return self.first
        def of_items():
            return Item.first.number, Item.registry is REGISTRY, Item.registry, Item.own
        def counts():
            return Counted.made, Counted.known, Counted.by_number
        def check(call):
            for _ in range(2):
                assert call(of_items) == (1, True, [], [])
                assert call(counts) == (2, {1, 2}, {1: "made", 2: "made"})
            REGISTRY.append(Counted.made)
            assert call(of_items) == (1, True, [2], [])
            assert call(lambda: Limits().run()) == 1
    """,
    "the order of a class's attributes": """
        class Plain:
            z = 1
            def run(self): pass
            a = "2"
        class Settings:
            z, listed = 1, [1]
            def run(self): pass
            b = object()
            a = "2"
        def names_of(kind):
            return [name for name in vars(kind) if not name.startswith("__")]
        def check(call):
            assert call(names_of, Plain) == ["z", "run", "a"]
            assert call(names_of, Settings) == ["z", "listed", "run", "b", "a"]
    """,
    "globals of bodies": """
        import functools
        LIMIT, NAMES = 5, ["a", "bc"]
        def noted(function): return function
        def make(x):
            class Config:
                limit = LIMIT
                names: list = NAMES
                class Deeper:
                    sizes = [len(name) for name in NAMES]
                @noted
                def own(self):
                    return x
            return Config.limit, Config.names, Config.Deeper.sizes, Config().own()
        def asks():
            class Body:
                limit = eval("LIMIT")
            return Body.limit
        def check(call):
            global LIMIT
            y = 3
            def closure():
                class Config:
                    limit = LIMIT + y
                return Config.limit
            assert call(make, 1) == (5, ["a", "bc"], [1, 2], 1) and call(closure) == 8
            LIMIT = 6
            NAMES.append("def")
            assert call(make, 1) == (6, ["a", "bc", "def"], [1, 2, 3], 1) and call(closure) == 9
            assert call(asks) == 6
            del LIMIT
            try:
                call(make, 1)
            except NameError as error:
                assert "LIMIT" in str(error)
            else:
                assert False
    """,
    "texts in tuples": """
        first, second, third = [1], {"a": 2}, (3,)
        def by_texts():
            return [globals()[name] for name in ("first", "second")], found("third")
        def found(given):
            return given in {"third", "fourth"} and globals()[given]
        def check(call):
            assert call(by_texts) == ([[1], {"a": 2}], (3,))
    """,
    "globals made by others": """
        LIMITS = {"max": 10}
        class Bounded:
            def __init__(self, v):
                self.v = min(v, LIMITS["max"])
            def __reduce__(self):
                return Bounded, (self.v,)
        ROOT = Bounded(30)
        def root():
            return ROOT.v
        def check(call):
            assert call(root) == 10
    """,
    "singletons": """
        class Kind:
            def __reduce__(self):
                return "ONE"
        ONE = Kind()
        ONE.state, ONE.gone = 1, True
        def look():
            return vars(ONE)
        def look_at(one):
            return one is ONE, vars(one)
        def check(call):
            assert call(look) == {"state": 1, "gone": True}
            ONE.state = [2]
            del ONE.gone
            ONE.own = ONE
            assert call(look)["state"] == [2] and call(look)["own"] is ONE
            ONE.state = 3
            is_one, state = call(look_at, ONE)
            assert is_one and state["state"] == 3 and "gone" not in state
    """,
    "singletons with slots": """
        class Kind:
            __slots__ = ("state", "other")
            def __reduce__(self):
                return "ONE"
        ONE = Kind()
        ONE.state = 1
        def look():
            return ONE.state, getattr(ONE, "other", None)
        def give(one):
            return one
        def check(call):
            assert call(look) == (1, None) and call(give, ONE) is ONE
            ONE.state, ONE.other = 2, 3
            assert call(look) == (2, 3)
            del ONE.other
            ONE.state = [4]
            assert call(look) == ([4], None)
    """,
    "singletons of a library": """
        import pathlib, sys
        path = pathlib.Path(__file__).with_name("marks.py")
        path.write_text('''if True:
            class Named:
                def __init__(self, name, module):
                    self.name, self.__module__ = name, module
                def __reduce__(self):
                    return self.name
            class Mark(Named):
                pass
            class Level(Named, int):
                def __new__(kind, name, module, level):
                    return int.__new__(kind, level)
                def __init__(self, name, module, level):
                    super().__init__(name, module)
            class Table(Named, dict):
                pass
            HERE = Mark("HERE", "marks")
        ''')
        import marks
        MISSING, OTHER = marks.Mark("MISSING", __name__), marks.Mark("OTHER", __name__)
        HIGH, TABLE = marks.Level("HIGH", __name__, 3), marks.Table("TABLE", __name__)
        class Holder:
            IN = marks.Mark("Holder.IN", __name__)
        def is_missing(one=MISSING):
            return one is MISSING
        def give(*ones):
            return [each.name for each in ones], ones
        def look():
            return Holder.IN.name, MISSING.value, OTHER is marks.HERE, Holder
        def with_closure():
            kept = OTHER
            return lambda one: one is kept
        def check(call):
            assert call(is_missing, MISSING) and call(is_missing) and not call(is_missing, OTHER)
            names, ones = call(give, MISSING, Holder.IN, marks.HERE)
            assert names == ["MISSING", "Holder.IN", "HERE"]
            assert ones[0] is MISSING and ones[1] is Holder.IN and ones[2] is marks.HERE
            MISSING.value = [5]
            assert call(look) == ("Holder.IN", [5], False, Holder)
            assert call(with_closure(), OTHER)
            assert call(lambda one: (one + 1, one is HIGH), HIGH) == (4, True)
            try:
                call(give, TABLE)
            except Exception as error:  # it can be made only by what is compiled
                assert "cannot pickle 'TABLE' of '__main__', of type 'Table'" in str(error), error
            else:
                raise AssertionError
    """,
    "what calls put into singletons": """
        class Settings:
            def __init__(self):
                self.cache, self.level, self.own = {}, 1, self
                self.others = [Of(self)]
            def __reduce__(self):
                return "SETTINGS"
        class Of:
            known = []
            def __init__(self, settings):
                self.settings = settings
        SETTINGS = Settings()
        def fill(of):
            of.settings.cache[len(of.settings.cache)] = of.settings.level
            return list(of.settings.cache.values())
        def fill_global():
            SETTINGS.cache[len(SETTINGS.cache)] = SETTINGS.level
            return list(SETTINGS.cache.values())
        def look():
            return SETTINGS.own is SETTINGS is SETTINGS.others[0].settings
        def check(call):
            first = SETTINGS.level = 1
            given = Of(SETTINGS)
            counts = [len(call(fill, given)) for _ in range(3)]
            counts += [len(call(fill_global)) for _ in range(3)]
            given.kept = b"anything"
            counts.append(len(call(fill, given)))
            assert counts == sorted({*counts}) and call(look)
            SETTINGS.level = 3
            assert {*call(fill, given)} == {*call(fill_global)} == {3}
            SETTINGS.level = first
            assert {*call(fill_global)} == {*call(fill, given)} == {first}
    """,
}
CALLS = {
    "submit": "executor.submit(function, *args).result(60)",
    "chunks": "list(executor.map(function, *([each] * 3 for each in args), chunksize=3))[-1] "
    "if args else executor.submit(lambda *_: function(*_)).result(60)",
}
END = """
import leveret
with leveret.ProcessExecutor(1) as executor:
    check(lambda function, *args: {})
"""


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, how: str, tmp_path: Path) -> None:
    run_program(tmp_path, textwrap.dedent(PROGRAMS[name]) + END.format(CALLS[how]))
