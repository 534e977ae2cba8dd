"""QuantizeLinear, Clip and DequantizeLinear, as Brevitas writes values of fewer bits than their integers are stored in,
→ one Quant. The Clip's ends tell the bits, and whether the least integer of these is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.quantised.values import DOMAINS, ZERO_BEHIND, ends_of

QUANT = f"{DOMAINS[0]}.Quant"


@dataclass(frozen=True)
class _Three:
    """What gives the integers, what cuts them off, and all that read these."""

    quantise: Operation
    clip: Operation
    behind: tuple[Operation, ...]


def with_quants(graph: Graph) -> Graph:
    """The graph with one Quant for each such three; those that nothing else reads are left out."""
    changed: dict[int, Operation] = {}
    constants = dict(graph.constants)
    for three in _threes(graph):
        if _is_one(graph.constants, three):
            quant, numbers = _quant(graph.constants, three)
            constants.update(numbers)
            changed[id(three.behind[0])] = quant
            changed.update({id(reader): _same(reader, quant) for reader in three.behind[1:]})
    if not changed:
        return graph
    operations = [changed.get(id(operation), operation) for operation in graph.operations]
    return replace(graph, operations=needed(operations, graph.outputs), constants=constants)


def _threes(graph: Graph) -> Iterator[_Three]:
    """Each Clip between a QuantizeLinear that nothing else reads and DequantizeLinears alone."""
    producers, readers = _producers(graph, "QuantizeLinear"), _readers(graph)
    counts = graph.readers
    for clip in (operation for operation in graph.operations if operation.kind == "Clip" and operation.inputs):
        quantise = producers.get(clip.inputs[0])
        behind = tuple(reader for name in clip.outputs[:1] for reader in readers.get(name, ()))
        alone = counts[clip.inputs[0]] == 1 and not {*clip.outputs} & {*graph.outputs}
        if quantise is not None and alone and {reader.kind for reader in behind} == {"DequantizeLinear"}:
            yield _Three(quantise, clip, behind)


def _producers(graph: Graph, kind: str) -> dict[str, Operation]:
    """The operations of that kind by what they give."""
    return {name: each for each in graph.operations if each.kind == kind for name in each.outputs}


def _readers(graph: Graph) -> dict[str, list[Operation]]:
    """The operations that read each tensor."""
    readers: dict[str, list[Operation]] = {}
    for operation in graph.operations:
        for name in {*operation.inputs}:
            readers.setdefault(name, []).append(operation)
    return readers


def _is_one(constants: Mapping[str, Array], three: _Three) -> bool:
    """Whether all are of one scale and zero point, and the Clip's ends those of so many bits."""
    first = three.quantise
    if _form(constants, three) is None or _scale(constants, first) is None:
        return False
    return all(
        _axis(reader) == _axis(first)
        and all(_equal(*(_constant(constants, each, i) for each in (first, reader))) for i in (1, 2))
        for reader in three.behind
    )


def _constant(constants: Mapping[str, Array], operation: Operation, position: int) -> Array | None:
    return constants.get(operation.inputs[position]) if position < len(operation.inputs) else None


def _equal(first: Array | None, second: Array | None) -> bool:
    return first is not None and second is not None and first.dtype == second.dtype and np.array_equal(first, second)


def _axis(operation: Operation) -> object:
    return operation.attributes.get("axis", 1)


def _form(constants: Mapping[str, Array], three: _Three) -> tuple[int, bool, bool] | None:
    """Bits, signed, and narrow of what the Clip leaves; None where its ends are those of no such integers."""
    zero, ends = _constant(constants, three.quantise, 2), _ends(constants, three.clip)
    if zero is None or zero.dtype.kind not in "iu" or ends is None:
        return None
    signed = zero.dtype.kind == "i"
    forms = ((bits, signed, narrow) for bits in range(1, 8 * zero.dtype.itemsize + 1) for narrow in (False, True))
    return next((form for form in forms if ends_of(*form) == ends), None)


def _ends(constants: Mapping[str, Array], clip: Operation) -> tuple[int, int] | None:
    low, high = (_constant(constants, clip, position) for position in (1, 2))
    if low is None or high is None or (low.size, high.size) != (1, 1) or {low.dtype.kind, high.dtype.kind} - {"i", "u"}:
        return None
    return int(low.ravel()[0]), int(high.ravel()[0])


def _scale(constants: Mapping[str, Array], quantise: Operation) -> tuple[Array, Array] | None:
    """Scale and zero point, in a shape that broadcasts to the values'; None where that is not known."""
    scale, zero = (_constant(constants, quantise, position) for position in (1, 2))
    if scale is None or zero is None or zero.size not in (1, scale.size):
        return None
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    values, axis = constants.get(quantise.inputs[0]), _axis(quantise)
    if values is None and axis == 1:  # of the channels of a map
        return scale.reshape(-1, 1, 1), np.broadcast_to(zero.reshape(-1), scale.shape).reshape(-1, 1, 1)
    if values is None or not isinstance(axis, int) or not -values.ndim <= axis < values.ndim:
        return None
    sides = [1] * values.ndim
    sides[axis] = scale.size
    return scale.reshape(sides), np.broadcast_to(zero.reshape(-1), scale.shape).reshape(sides)


def _quant(constants: Mapping[str, Array], three: _Three) -> tuple[Operation, dict[str, Array]]:
    """In the place of all three, and its constants."""
    form, grid = _form(constants, three), _scale(constants, three.quantise)
    assert form is not None
    assert grid is not None
    (bits, signed, narrow), outputs = form, three.behind[0].outputs
    values = np.asarray(grid[0], np.float32), np.asarray(grid[1], np.float32), np.asarray(bits, np.float32)
    numbers = {f"{outputs[0]}/{place}": value for place, value in enumerate(values, 1)}
    attributes = {"signed": int(signed), "narrow": int(narrow), "rounding_mode": "ROUND", ZERO_BEHIND: 1}
    return Operation(three.quantise.name, QUANT, (three.quantise.inputs[0], *numbers), outputs, attributes), numbers


def _same(operation: Operation, quant: Operation) -> Operation:
    """Another name of what the Quant gives."""
    return Operation(operation.name, "Identity", quant.outputs, operation.outputs, {})
