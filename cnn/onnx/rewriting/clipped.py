"""QuantizeLinear, Clip and DequantizeLinear, as Brevitas writes values of fewer bits than their integers are stored in,
→ one Quant. The Clip's ends tell the bits, and whether the least integer of these is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.quantised.values import DOMAINS, ends_of

QUANT = f"{DOMAINS[0]}.Quant"


def with_quants(graph: Graph) -> Graph:
    """The graph with one Quant for each such three; those that nothing else reads are left out."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    readers: dict[str, list[Operation]] = {}
    for operation in graph.operations:
        for name in {*operation.inputs}:
            readers.setdefault(name, []).append(operation)
    changed: dict[int, Operation] = {}
    constants = dict(graph.constants)
    for clip in (operation for operation in graph.operations if operation.kind == "Clip"):
        quantise, behind = producers.get(clip.inputs[0]), readers.get(clip.outputs[0], [])
        only = quantise is not None and graph.readers[clip.inputs[0]] == 1 and clip.outputs[0] not in graph.outputs
        if quantise is not None and only and _is_one(graph.constants, quantise, clip, behind):
            quant, given = _quant(graph.constants, quantise, clip, behind[0])
            constants.update(given)
            changed[id(behind[0])] = quant
            changed.update({id(other): _same(other, quant) for other in behind[1:]})
    if not changed:
        return graph
    operations = [changed.get(id(operation), operation) for operation in graph.operations]
    return replace(graph, operations=needed(operations, graph.outputs), constants=constants)


def _is_one(constants: Mapping[str, Array], first: Operation, clip: Operation, behind: Iterable[Operation]) -> bool:
    """Whether all are of one scale and zero point, and the Clip's ends those of so many bits."""
    if first.kind != "QuantizeLinear" or not behind or _form(constants, first, clip) is None:
        return False
    return _scale(constants, first) is not None and all(
        reader.kind == "DequantizeLinear"
        and _axis(reader) == _axis(first)
        and all(_equal(*(_constant(constants, each, i) for each in (first, reader))) for i in (1, 2))
        for reader in behind
    )


def _constant(constants: Mapping[str, Array], operation: Operation, position: int) -> Array | None:
    return constants.get(operation.inputs[position]) if position < len(operation.inputs) else None


def _equal(one: Array | None, other: Array | None) -> bool:
    return one is not None and other is not None and one.dtype == other.dtype and np.array_equal(one, other)


def _axis(operation: Operation) -> object:
    return operation.attributes.get("axis", 1)


def _form(constants: Mapping[str, Array], quantise: Operation, clip: Operation) -> tuple[int, bool, bool] | None:
    """Bits, signed, and narrow of what the Clip leaves; None where its ends are those of no such integers."""
    zero = _constant(constants, quantise, 2)
    ends = [_constant(constants, clip, position) for position in (1, 2)]
    if zero is None or zero.dtype.kind not in "iu" or any(end is None or end.size != 1 for end in ends):
        return None
    low, high = (int(end.ravel()[0]) for end in ends if end is not None)
    signed = zero.dtype.kind == "i"
    forms = ((bits, signed, narrow) for bits in range(1, 8 * zero.dtype.itemsize + 1) for narrow in (False, True))
    return next((form for form in forms if ends_of(*form) == (low, high)), None)


def _scale(constants: Mapping[str, Array], quantise: Operation) -> tuple[Array, Array] | None:
    """Scale and zero point, in a shape that broadcasts to the values'; None where that is not known."""
    scale, zero = (_constant(constants, quantise, position) for position in (1, 2))
    if scale is None or zero is None or zero.size not in (1, scale.size):
        return None
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    values, axis = constants.get(quantise.inputs[0]), _axis(quantise)
    if values is None or not isinstance(axis, int) or not -values.ndim <= axis < values.ndim:
        return None
    sides = [1] * values.ndim
    sides[axis] = scale.size
    return scale.reshape(sides), np.broadcast_to(zero.reshape(-1), scale.shape).reshape(sides)


def _quant(
    constants: Mapping[str, Array], quantise: Operation, clip: Operation, last: Operation
) -> tuple[Operation, dict[str, Array]]:
    """In the place of all three, and its constants."""
    form, grid = _form(constants, quantise, clip), _scale(constants, quantise)
    assert form is not None
    assert grid is not None
    bits, signed, narrow = form
    values = np.asarray(grid[0], np.float32), np.asarray(grid[1], np.float32), np.asarray(bits, np.float32)
    given = {f"{last.outputs[0]}/{place}": value for place, value in enumerate(values, 1)}
    attributes = {"signed": int(signed), "narrow": int(narrow), "rounding_mode": "ROUND"}
    return Operation(quantise.name, QUANT, (quantise.inputs[0], *given), last.outputs, attributes), given


def _same(operation: Operation, quant: Operation) -> Operation:
    """Another name of what the Quant gives."""
    return Operation(operation.name, "Identity", quant.outputs, operation.outputs, {})
