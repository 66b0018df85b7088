"""How an object is pickled is looked up quickly, and as it is at the time."""

from __future__ import annotations

import collections
import copyreg
import fractions
import importlib
import pickle
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from leveret.wire import pickling


def _carried(value: Any) -> Any:
    return pickle.loads(pickling.dumps(value, 0)[0])


def _calls_of_dumping(given: Any) -> list[str]:
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name))
    try:
        pickling.dumps(given, 0)
    finally:
        sys.setprofile(None)
    return calls


def test_what_can_be_imported_takes_few_steps() -> None:
    thirds = [fractions.Fraction(i, 3) for i in range(100)]
    given = [fractions.Fraction, textwrap.dedent, *thirds]
    assert _carried(given) == given
    calls = _calls_of_dumping(given)
    assert "__reduce__" in calls and "reducer_override" in calls
    assert "__getitem__" not in calls  # of a ChainMap, for each object
    assert "is_absent" not in calls and "_lookup_module_and_qualname" not in calls


def test_objects_of_the_main_module_take_few_steps() -> None:
    kind = type("Point", (), {"__module__": "__main__"})
    given = [kind() for _ in range(100)]
    calls = _calls_of_dumping(given)
    assert calls.count("reduce_other") < 5


def test_copyreg_may_change_at_any_time() -> None:
    third = fractions.Fraction(1, 3)
    assert _carried([third]) == [third]
    copyreg.pickle(fractions.Fraction, lambda value: (float, (float(value),)))  # type: ignore
    try:
        assert type(_carried([third])[0]) is float
    finally:
        del copyreg.dispatch_table[fractions.Fraction]
    assert type(_carried([third])[0]) is fractions.Fraction


def test_while_copyregs_reducers_are_taken_in_others_pickle_by_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    third = fractions.Fraction(1, 3)
    kinds: list[type] = []

    def pickles() -> None:
        kinds.append(type(_carried([third])[0]))

    class Table(collections.ChainMap[Any, Any]):
        is_read = False

        def keys(self) -> Any:  # while the reducers are put together
            if not self.is_read:
                self.is_read = True
                thread = threading.Thread(target=pickles)
                thread.start()
                thread.join()
            return super().keys()

    table = Table(*cloudpickle.Pickler.dispatch_table.maps)
    monkeypatch.setattr(cloudpickle.Pickler, "dispatch_table", table)
    pickles()
    table.is_read = False
    copyreg.pickle(fractions.Fraction, lambda value: (float, (float(value),)))  # type: ignore
    try:
        pickles()
    finally:
        del copyreg.dispatch_table[fractions.Fraction]
    assert table.is_read
    assert kinds[-2:] == [float, float]


def test_a_class_is_looked_for_at_its_name_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loaded_twice.py").write_text("class Thing:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("loaded_twice")
    first = module.Thing
    by_name = pickling.dumps([first], 0)[0]
    assert by_name == pickling.dumps([first], 0)[0]
    cloudpickle.register_pickle_by_value(module)
    try:
        assert len(pickling.dumps([first], 0)[0]) > len(by_name)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    importlib.reload(module)
    assert _carried([first, module.Thing]) == [first, module.Thing]  # the first goes by value
    monkeypatch.delitem(sys.modules, "loaded_twice")
