"""Operators that are merged into the operator that reads them, and so have no delay of their own.

Vitis HLS reports two cases. "Grouped into LUT with out node …": a select or logic operator is merged into its only
reader, a select, logic operator or adder, if one LUT has enough inputs. "Grouped into TernaryAdder": an addition is
merged into the only addition that reads it.
"""

from __future__ import annotations

from collections.abc import Container

from hls_schedule.reading.ir import Loop

LUT_INPUTS = 6

DSP_BITS = (27, 18)
"""Bits of the factors that one DSP48E2 multiplies."""

_SMALL = frozenset({"logic", "select"})


def grouped(loop: Loop) -> dict[int, int]:
    """Return the operations that are merged into their reader: the index of each, with the index of its reader."""
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
    """Return the indices of the additions whose only reader is another addition.

    Expression balancing adds a loop-carried value last, so that only the last addition of a chain is on its path.
    """
    readers = _readers(loop)
    return frozenset(index for index in _additions(loop) if _addition_after(loop, readers, index) is not None)


def dsp_sums(loop: Loop) -> dict[int, int]:
    """Return the additions that are in the DSP of a product: their index, and the index of the product.

    The addition is the only reader of the product. An addition that is balanced with others is left out, because the
    tool builds a tree of them. A sum that is cut before the next addition is not balanced.
    """
    readers = _readers(loop)
    pairs = [(index, _addition_after(loop, readers, index, loop.cuts)) for index in _additions(loop)]
    balanced = {index for pair in pairs if pair[1] is not None for index in pair}
    sums: dict[int, int] = {}
    for product, (wide, narrow) in loop.factors.items():
        reader = _addition_after(loop, readers, product) if wide <= DSP_BITS[0] and narrow <= DSP_BITS[1] else None
        if reader is not None and reader not in balanced:
            sums[reader] = product
    return sums


def _additions(loop: Loop) -> list[int]:
    return [operation.index for operation in loop.operations if operation.operator == "add"]


def _addition_after(loop: Loop, readers: list[list[int]], index: int, cuts: Container[int] = frozenset()) -> int | None:
    """Return the addition that alone reads a result, perhaps through wiring but not through ``cuts``; else None."""
    reader = _reader(loop, readers, index, cuts)
    return reader if reader is not None and loop.operations[reader].operator == "add" else None


def _readers(loop: Loop) -> list[list[int]]:
    """Return, for each operation, the indices of the operations that read its result; −1 means the next iteration."""
    readers: list[list[int]] = [[] for _ in loop.operations]
    for operation in loop.operations:
        for source in operation.inputs:
            readers[source].append(operation.index)
    for source, _ in loop.carried:
        readers[source].append(-1)
    return readers


def _reader(loop: Loop, readers: list[list[int]], index: int, cuts: Container[int] = frozenset()) -> int | None:
    """Return the index of the only operation that reads a result, perhaps through wiring but not through ``cuts``; None
    if there is not exactly one."""
    while len(readers[index]) == 1 and readers[index][0] > index and readers[index][0] not in cuts:
        index = readers[index][0]
        if loop.operations[index].operator or loop.operations[index].accesses:
            return index
    return None


def _joins(loop: Loop, index: int, reader: int, inputs: list[int], vanished: dict[int, int]) -> bool:
    first, second = loop.operations[index].operator, loop.operations[reader].operator
    if first == second == "add":  # a ternary adder has no fourth operand
        return index not in vanished.values() and reader not in vanished.values()
    if first == "shift":
        return second in ("logic", "shift")
    return first in _SMALL and second in (*_SMALL, "add") and inputs[index] + inputs[reader] - 1 <= LUT_INPUTS
