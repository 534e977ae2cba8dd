"""Operators that share hardware with the one behind them, and then take no time of their own.

Reports say so: "grouped into LUT with out node …" of choices and logic whose only reader is another choice, logic or
adder, while a look-up table's inputs suffice; "grouped into TernaryAdder" of an addition that only another one reads.
"""

from __future__ import annotations

from hls_schedule.reading.ir import Loop

LUT_INPUTS = 6

_SMALL = frozenset({"logic", "select"})


def grouped(loop: Loop) -> dict[int, int]:
    """Index of an operation that vanishes → the one in which it does."""
    readers = _readers(loop)
    vanished: dict[int, int] = {}
    inputs = [max(2, len(operation.inputs)) for operation in loop.operations]
    for operation in loop.operations:
        reader = _reader(loop, readers, operation.index)
        if reader is not None and _joins(loop, operation.index, reader, inputs, vanished):
            vanished[operation.index] = reader
            inputs[reader] += inputs[operation.index] - 1
    return vanished


def chained_additions(loop: Loop) -> frozenset[int]:
    """Additions that only another one reads. The tool adds a loop-carried value last (expression balancing): on its way
    lies the last of them alone."""
    readers = _readers(loop)
    adds = [operation.index for operation in loop.operations if operation.operator == "add"]
    return frozenset(
        index
        for index in adds
        if (reader := _reader(loop, readers, index)) is not None and loop.operations[reader].operator == "add"
    )


def _readers(loop: Loop) -> list[list[int]]:
    """Of every operation those that take its result; −1 stands for the next iteration."""
    readers: list[list[int]] = [[] for _ in loop.operations]
    for operation in loop.operations:
        for source in operation.inputs:
            readers[source].append(operation.index)
    for source, _ in loop.carried:
        readers[source].append(-1)
    return readers


def _reader(loop: Loop, readers: list[list[int]], index: int) -> int | None:
    """The only operation that reads another, with nothing but wiring between; None where there are several."""
    while len(readers[index]) == 1 and readers[index][0] > index:
        index = readers[index][0]
        if loop.operations[index].operator or loop.operations[index].accesses:
            return index
    return None


def _joins(loop: Loop, index: int, reader: int, inputs: list[int], vanished: dict[int, int]) -> bool:
    first, behind = loop.operations[index].operator, loop.operations[reader].operator
    if first == behind == "add":  # a third operand, and no fourth
        return index not in vanished.values() and reader not in vanished.values()
    if first == "shift":
        return behind in ("logic", "shift")
    return first in _SMALL and behind in (*_SMALL, "add") and inputs[index] + inputs[reader] - 1 <= LUT_INPUTS
