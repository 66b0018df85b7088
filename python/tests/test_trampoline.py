"""The trampoline against a C compiler: functions of random shapes, which record what they got.

The shapes are made from a seed and compiled together once; each parameter's bytes must arrive.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import leveret

SEED = 20260117
SHAPES = 60
C_TYPES = {
    **{f"i{n}": f"int{8 * n}_t" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}_t" for n in (1, 2, 4, 8)},
    "f4": "float",
    "f8": "double",
}
CODES = tuple(C_TYPES)
FORMATS = dict(zip(CODES, "bhiqBHIQfd"))
Shape = list[str]  # codes; "out" is where the function records; "count" and "range" as they are


def make_shape(rng: random.Random, index: int) -> Shape:
    """The first shapes are the extremes: all registers full, and the stack as full as it gets."""
    floats = rng.randint(0, 8) if index > 3 else (8, 0, 8, 1)[index]
    integers = rng.randint(0, 9) if index > 3 else (9, 9, 0, 5)[index]
    derived = rng.randint(0, 13 - integers) if index > 3 else (4, 4, 0, 8)[index]
    codes = [rng.choice(CODES[8:]) for _ in range(floats)]
    codes += [rng.choice(CODES[:8]) for _ in range(integers)]
    codes += ["count"] * derived
    rng.shuffle(codes)
    codes.insert(rng.randint(0, len(codes)), "out")
    return codes


def c_source(index: int, shape: Shape) -> str:
    kinds = {"out": "uint64_t*", "count": "size_t", **C_TYPES}
    parameters = ", ".join(f"{kinds[code]} p{i}" for i, code in enumerate(shape))
    out = shape.index("out")
    body = "".join(
        f"  p{out}[{i}] = 0; memcpy(&p{out}[{i}], &p{i}, sizeof p{i});\n"
        for i, code in enumerate(shape)
        if code != "out"
    )
    return f"int shape_{index}({parameters}) {{\n{body}  return 0;\n}}\n"


def make_shapes() -> list[Shape]:
    rng = random.Random(SEED)
    return [make_shape(rng, i) for i in range(SHAPES)]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler (cc, gcc or clang)")
    folder = tmp_path_factory.mktemp("shapes")
    source, library = folder / "shapes.c", folder / "shapes.so"
    functions = "\n".join(c_source(i, shape) for i, shape in enumerate(make_shapes()))
    source.write_text(f"#include <stdint.h>\n#include <string.h>\n{functions}")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


def random_value(rng: random.Random, code: str) -> float:
    if code == "f4":
        return float(np.float32(rng.uniform(-1e30, 1e30)))
    if code == "f8":
        return rng.uniform(-1e300, 1e300)
    bits = 8 * int(code[1])
    low = -(1 << bits - 1) if code[0] == "i" else 0
    return rng.choice([low, low + (1 << bits) - 1, rng.randrange(low, low + (1 << bits))])


def expected_word(code: str, value: float) -> int:
    packed = struct.pack("<" + FORMATS[code], value)
    return int.from_bytes(packed.ljust(8, b"\0"), "little")


@pytest.mark.parametrize("index", range(SHAPES))
def test_every_parameter_arrives(threads: leveret.Runtime, shapes: Path, index: int) -> None:
    shape = make_shapes()[index]
    rng = random.Random(SEED + index)
    out = shape.index("out")
    words = {"out": "out u8", "count": f"count({out})"}
    signature = ", ".join(words.get(code, code) for code in shape) + " -> int"
    procedure = leveret.load(shapes, f"shape_{index}", signature)
    recorded = np.full(len(shape), 0xAAAAAAAAAAAAAAAA, np.uint64)
    passed: list[object] = []
    expected = recorded.copy()
    for i, code in enumerate(shape):
        if code == "out":
            passed.append(recorded)
        elif code == "count":
            expected[i] = len(shape)
        else:
            value = random_value(rng, code)
            passed.append(value)
            expected[i] = expected_word(code, value)
    for _ in range(3):
        threads.submit(procedure, *passed).wait(30)
        np.testing.assert_array_equal(recorded, expected, f"{signature}, seed {SEED + index}")
        recorded[:out] = 0
        recorded[out + 1 :] = 0


def test_more_than_the_registers_hold_is_refused(shapes: Path) -> None:
    with pytest.raises(ValueError, match="8 floating-point"):
        leveret.load(shapes, "shape_0", ["f8"] * 9)
    with pytest.raises(ValueError, match="14 integers"):
        leveret.load(shapes, "shape_0", ["in f8", *["count(0)"] * 14])
