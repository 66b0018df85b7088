"""Large globals of plain values are pickled again when they have changed, and only then."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_processes, run_program

from leveret import _core

PROGRAMS = {
    "every change is seen": """
        import numpy as np
        class Config:
            depth = 1
        inner = [1, 2]
        DATA = list(range(5000))
        TABLE = {str(i): [i] for i in range(500)}
        ROWS = [(i, str(i), [i]) for i in range(500)]
        TUPLE, TEXT, BYTES = tuple(range(5000)), "x" * 9000, b"y" * 9000
        MIXED = [Config() for _ in range(300)]
        ARRAY, SMALL = np.arange(4000.0), np.arange(200)
        TWO = [ARRAY, *range(900)]
        ONE, OTHER = [inner, *range(900)], {"inner": inner, **{i: i for i in range(900)}}
        def look():
            return (DATA, list(map(type, DATA[:3])), list(TABLE.items()), ROWS, TUPLE, TEXT, BYTES,
                    [vars(each) for each in MIXED], ONE[0] is OTHER["inner"], ONE, OTHER,
                    ARRAY.tolist(), SMALL.shape, SMALL.tolist(), str(SMALL.dtype),
                    TWO[0] is ARRAY, ARRAY.flags.writeable)
        def check(call):
            global TUPLE, TEXT, BYTES
            def three_times():
                for _ in range(3):
                    assert call(look) == look()
            three_times()
            for change in (
                lambda: DATA.__setitem__(0, 7),
                lambda: DATA.__setitem__(1, True),
                lambda: DATA.__setitem__(1, 1.0),
                lambda: DATA.append(5000),
                lambda: DATA.clear(),
                lambda: DATA.extend(range(4000)),
                lambda: TABLE["3"].append(4),
                lambda: TABLE.update(new=[1]),
                lambda: TABLE.update({"0": TABLE.pop("0")}),
                lambda: TABLE["4"].__setitem__(0, TABLE["5"]),
                lambda: ROWS[7][2].append(8),
                lambda: ROWS.reverse(),
                lambda: setattr(MIXED[0], "depth", MIXED[0].depth + 1),
                lambda: inner.append(3),
                lambda: ARRAY.__setitem__(7, ARRAY[7] + 1),
                lambda: ARRAY.setflags(write=False),
                lambda: ARRAY.setflags(write=True),
                lambda: SMALL.__setitem__(7, SMALL.flat[8]),
                lambda: setattr(SMALL, "shape", (2, 100)),
                lambda: setattr(SMALL, "shape", (200,)),
                lambda: TWO.__setitem__(0, ARRAY.copy()),
                lambda: TWO.__setitem__(0, ARRAY),
                lambda: ONE.__setitem__(0, [1]),
                lambda: ONE.__setitem__(0, inner),
            ):
                change()
                three_times()
            TUPLE, TEXT, BYTES = (*TUPLE, 1), TEXT + "z", BYTES + b"z"
            three_times()
        """,
    "what a call sets stays in its process": """
        CACHE, LIST = {i: i for i in range(2000)}, [0] * 2000
        TEXT = "x" * 9000
        def fill(key):
            global TEXT
            CACHE[key] = LIST[0] = key
            TEXT += "y"
            return len(CACHE), LIST[0], len(TEXT)
        def look():
            return len(CACHE), LIST[0], len(TEXT)
        def check(call):
            global TEXT
            CACHE["new"] = LIST[1] = len(CACHE)
            TEXT = TEXT + "z"
            before, size = len(CACHE), len(TEXT)
            for i in range(1, 4):
                assert call(fill, f"{before}.{i}") == (before + i, f"{before}.{i}", size + i)
            assert call(look) == (before + 3, f"{before}.3", size + 3)
            assert look() == (before, 0, size)
            CACHE["newer", before] = 1
            assert call(look) == (before + 1, f"{before}.3", size + 3)
        """,
}
END = """
import leveret
from leveret.wire import unchanged
for _ in range(2):
    with leveret.ProcessExecutor(1) as executor:
        check(lambda fn, *args: executor.submit(fn, *args).result(60))
        assert unchanged._same, "nothing was recognised"
    assert not unchanged._same, "values outlive the executor"
"""


@needs_processes
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    run_program(tmp_path, textwrap.dedent(PROGRAMS[name]) + END)


def test_what_is_plain() -> None:
    inner: list[Any] = [1, "two"]
    value = (inner, {"a": inner, (1, 2): [3.0]}, None, b"x", ((inner,),))
    assert _core.plain_containers(value, 3) is not None
    found = _core.plain_containers(value, 10)
    assert found is not None and sorted(map(id, found)) == sorted(
        map(id, (inner, value[1], value[1][1, 2]))
    )
    assert _core.plain_containers(value, 2) is None
    for other in ({1}, object(), [len], [inner, {2: bytearray()}], (1, type("T", (str,), {})())):
        assert _core.plain_containers(other, 10) is None
    inner.append(inner)
    assert _core.plain_containers(inner, 10) == [inner]


def test_contents_are_compared_by_identity() -> None:
    values: list[Any] = [[1, 2.5], {"a": 2.5, "b": []}, (3, 2.5), [], {}]
    for value in values:
        assert _core.has_contents(value, _core.contents_of(value))
        assert not _core.has_contents(value, (*_core.contents_of(value), 1))
    assert not _core.has_contents([1, 2], (1,)) and not _core.has_contents({1: 2}, (1,))
    assert not _core.has_contents([True], (1,)) and not _core.has_contents({1: 2.5}, (1, 3.5))
    assert not _core.has_contents([1], ()) and not _core.has_contents([], (1,))
    for other in (1, {1}, "ab"):
        with pytest.raises(TypeError, match="a list, a tuple or a dict"):
            _core.contents_of(other)
        with pytest.raises(TypeError, match="a list, a tuple or a dict"):
            _core.has_contents(other, ())


@needs_processes
def test_a_shared_array_that_is_a_global_is_the_same_memory(tmp_path: Path) -> None:
    """Also where nothing has been pickled before, so that nobody has looked for NumPy."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import leveret
        field = leveret.shared_array(1000)
        def fill(value):
            field[:] = value
        with leveret.ProcessExecutor(1) as executor:
            executor.submit(fill, 3).result(60)
            assert field[7] == 3
            executor.submit(fill, value=4).result(60)
        assert field[7] == 4
        """)
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
