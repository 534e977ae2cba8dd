"""A comparison and a choice, as PyTorch exports its Threshold with a value of 0 → one ThresholdedRelu."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.rewriting.replaced import replaced

_KEPT_WHERE = {"Greater": 1, "LessOrEqual": 2}
"""Which input of the Where is the tensor that is compared: x where x > t, or where not x <= t."""


def with_thresholds(graph: Graph) -> Graph:
    """The graph with one ThresholdedRelu for each that is written so; what nothing else reads is left out."""
    return replaced(graph, _thresholded)


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
