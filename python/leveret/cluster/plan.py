"""What is asked of arguments before anything is sent: as Runtime.submit() does, in its words.

What is left to the nodes is what needs the whole of it there: numbers that do not fit their type,
and lengths that a signature asks for.
"""

from __future__ import annotations

import operator
from typing import Any

from .._core import Procedure, Sliced
from ..arrays import memory_of, overlaps_itself, refuse_masked
from ..errors import InvalidArgument, Status
from ..signature import FAR, MEMORY, Parameter, parse
from .array import ClusterArray
from .engine import Engine
from .task_job import Cut, Plan

GIVEN = ("value", "range", *MEMORY)


def plan(procedure: Procedure, args: tuple[Any, ...], engine: Engine) -> Plan:
    """Checks a call. Raises TypeError, ValueError and InvalidArgument that name the argument."""
    parameters = _given(procedure)
    if len(args) != len(parameters):
        raise TypeError(
            f"procedure '{procedure.name}' takes {len(parameters)} arguments from its caller "
            f'("{procedure.signature}"), {len(args)} given'
        )
    arguments: list[tuple[str, Any]] = []
    cuts: list[Cut] = []
    whole: list[Cut] = []
    counts: dict[int, int] = {}
    for index, (parameter, given) in enumerate(zip(parameters, args)):
        where = f"argument {index} ({parameter})"
        if parameter.what == "value":
            arguments.append(("value", _number(where, given)))
        elif parameter.what == "range":
            begin, end = _range(where, given)
            arguments.append(("range", begin))
            counts[index] = end - begin
        elif isinstance(given, Sliced):
            array = _array(where, parameter, given.array, engine)
            arguments.append((parameter.what, None))
            cuts.append(Cut(parameter.what, array, index))
            counts[index] = array.shape[0]
        else:
            array = _whole(index, where, parameter, given, engine)
            arguments.append(("whole", array))
            whole.append(Cut(parameter.what, array, index))
    _check_counts(counts)
    _check_places(cuts, whole)
    return Plan(tuple(arguments), cuts, next(iter(counts.values())))


def _given(procedure: Procedure) -> list[Parameter]:
    """The parameters that a caller passes."""
    parameters = parse(procedure.signature).parameters
    name = f"procedure '{procedure.name}'"
    for each in parameters:
        if each.what in FAR or each.what == "task":
            raise InvalidArgument(
                f"{name} takes far memory ('{each}'), which is that of one computer; pass what it "
                "needs as sliced arrays, or submit it to a Runtime",
                Status.NOT_SUPPORTED,
            )
        if each.what == "result":
            raise InvalidArgument(
                f"{name} hands back a value ('{each}'), and each slice would have its own; let it "
                "write to an array that is sliced",
                Status.NOT_SUPPORTED,
            )
    return [each for each in parameters if each.what in GIVEN]


def _number(where: str, given: Any) -> Any:
    if isinstance(given, (Sliced, ClusterArray)) or not (
        hasattr(given, "__index__") or hasattr(given, "__float__")
    ):
        raise TypeError(f"{where}: expected a number, got {type(given).__name__}")
    return given.item() if hasattr(given, "item") else given


def _integer(where: str, given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError:
        kind = type(given).__name__
        text = f"{where}: expected an integer, got {kind}; convert it with int()"
        raise TypeError(text) from None


def _range(where: str, given: Any) -> tuple[int, int]:
    if hasattr(given, "__index__"):
        given = (0, given)
    elif isinstance(given, range):
        if given.step != 1:
            raise ValueError(f"{where}: a range needs step 1")
        given = (given.start, given.stop)
    if not (isinstance(given, tuple) and len(given) == 2):
        kind = type(given).__name__
        raise TypeError(f"{where}: expected range(begin, end), (begin, end) or n, got {kind}")
    begin, end = _integer(where, given[0]), _integer(where, given[1])
    if end < begin:
        raise ValueError(f"{where}: the range ends before it begins")
    return begin, end


def _array(where: str, parameter: Parameter, given: Any, engine: Engine) -> Any:
    """The memory of an argument; raises for what the procedure cannot take."""
    import numpy as np

    writes = parameter.what != "in"
    if isinstance(given, ClusterArray):
        array: Any = given
        if given.cluster.closed:
            raise InvalidArgument(f"{where}: the Cluster that has this array is closed")
        if not given.cluster._driver.engine.shares_data(engine):
            raise InvalidArgument(
                f"{where}: the array lies with another client; pass array.gather(), or scatter it "
                "with this Cluster"
            )
    elif isinstance(given, np.ndarray):
        refuse_masked(where, given)
        array = given
    elif hasattr(given, "__array__") or hasattr(given, "__dlpack__"):
        array = memory_of(given, writes)
    else:
        kind = type(given).__name__
        raise TypeError(
            f"{where}: expected an array, got {kind}; use numpy.asarray(x, '{parameter.code}')"
        )
    held = f"{array.dtype.kind}{array.dtype.itemsize}"
    if held != parameter.code or not array.dtype.isnative:
        order = "" if array.dtype.isnative else " in the byte order of other processors"
        raise TypeError(
            f"{where}: the array holds {held}{order}, the procedure takes {parameter.code}; "
            f"convert it with a.astype('{parameter.code}')"
        )
    if not array.shape:
        raise ValueError(f"{where}: the array has no axis along which it could be cut")
    if writes and isinstance(array, np.ndarray) and not array.flags.writeable:
        raise BufferError(f"{where}: the array is read-only, and the procedure writes it")
    if writes and isinstance(array, np.ndarray) and overlaps_itself(array):
        raise ValueError(
            f"{where}: elements of the array lie in the same memory (strides {array.strides}), and "
            "the procedure writes it; pass a.copy()"
        )
    return array


def _whole(index: int, where: str, parameter: Parameter, given: Any, engine: Engine) -> Any:
    if parameter.what != "in":
        raise InvalidArgument(
            f"argument {index}: an output of a task on a Cluster must be sliced, or its slices "
            "would share it; pass leveret.sliced(a)"
        )
    if isinstance(given, ClusterArray):
        raise InvalidArgument(
            f"argument {index}: an array that lies on the nodes is in chunks; pass "
            "leveret.sliced(a), or a.gather() to send all of it to each"
        )
    return _array(where, parameter, given, engine)


def _check_counts(counts: dict[int, int]) -> None:
    if not counts:
        raise InvalidArgument(
            "no argument is sliced: a Cluster cuts arrays into slices for its nodes; wrap those "
            "that go together in leveret.sliced(), or submit a task that runs whole to a Runtime"
        )
    first = next(iter(counts))
    for index, count in counts.items():
        if count != counts[first]:
            raise InvalidArgument(
                f"argument {index}: {count} slices, but argument {first} has {counts[first]}; "
                "sliced arguments must have equally many",
                Status.BAD_ARGUMENT,
                index,
            )


def _check_places(cuts: list[Cut], whole: list[Cut]) -> None:
    """Where arrays lie: chunks alike, outputs all in one place, and no output twice in memory.

    whole: arguments that are not cut.
    """
    import numpy as np

    lying = [each for each in cuts if isinstance(each.array, ClusterArray)]
    for each in lying[1:]:
        if each.array.bounds != lying[0].array.bounds:
            raise InvalidArgument(
                f"argument {each.place}: its chunks begin elsewhere than those of argument "
                f"{lying[0].place}; make it with empty_like()"
            )
    outputs = [each for each in cuts if each.kind != "in"]
    here = [each for each in outputs if each not in lying]
    if here and len(here) < len(outputs):
        raise InvalidArgument(
            f"argument {here[0].place}: an output here, and others on the nodes; let all of them "
            "lie on the nodes (Cluster.empty_like), or none"
        )
    for each in outputs:
        for other in (*cuts, *whole):
            if other.place == each.place or type(other.array) is not type(each.array):
                continue
            is_same = other.array is each.array
            if is_same or (each in here and np.may_share_memory(each.array, other.array)):
                raise InvalidArgument(
                    f"argument {each.place}: an output that shares memory with argument "
                    f"{other.place}; slices are sent and land at any time: pass a copy",
                    Status.OVERLAP,
                    each.place,
                )
