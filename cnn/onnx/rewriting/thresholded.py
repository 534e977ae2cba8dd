"""A comparison and a choice, as PyTorch exports its Threshold with a value of 0 → one ThresholdedRelu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, Operation

_KEPT_WHERE = {"Greater": 1, "LessOrEqual": 2}
"""Which input of the Where is the tensor that is compared: x where x > t, or where not x <= t."""


def with_thresholds(graph: Graph) -> Graph:
    """The graph with one ThresholdedRelu for each that is written so; what nothing else reads is left out."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    operations = [_thresholded(operation, producers, graph.constants) or operation for operation in graph.operations]
    if all(ours is theirs for ours, theirs in zip(operations, graph.operations, strict=True)):
        return graph
    return replace(graph, operations=needed(operations, graph.outputs))


def _thresholded(
    operation: Operation, producers: Mapping[str, Operation], constants: Mapping[str, Array]
) -> Operation | None:
    """What a Where gives; None where it chooses otherwise."""
    if operation.kind != "Where" or len(operation.inputs) != 3:
        return None
    compared = producers.get(operation.inputs[0])
    if compared is None or compared.kind not in _KEPT_WHERE or len(compared.inputs) != 2:
        return None
    place = _KEPT_WHERE[compared.kind]
    threshold, value = (
        _number(name, producers, constants) for name in (compared.inputs[1], operation.inputs[3 - place])
    )
    if operation.inputs[place] != compared.inputs[0] or threshold is None or value != 0:
        return None
    return Operation(operation.name, "ThresholdedRelu", compared.inputs[:1], operation.outputs, {"alpha": threshold})


def _number(name: str, producers: Mapping[str, Operation], constants: Mapping[str, Array]) -> float | None:
    """A constant of one value; None of others."""
    producer = producers.get(name)
    value = constants.get(name) if producer is None else _value(producer)
    return float(value.ravel()[0]) if value is not None and value.size == 1 else None


def _value(operation: Operation) -> Array | None:
    """Of a Constant."""
    value = operation.attributes.get("value")
    return value if operation.kind == "Constant" and isinstance(value, np.ndarray) else None
