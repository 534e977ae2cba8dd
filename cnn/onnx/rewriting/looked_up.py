"""A Gather of constants by what a map's integers are, as tables are written here → one LookUp.

Gather(values, Cast(x / scale + offset))        values[⌊x / scale + offset⌋]
"""

from __future__ import annotations

from collections.abc import Mapping

from cnn.onnx.activations import LOOK_UP
from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.rewriting.replaced import replaced

_INTEGERS = (6, 7)
"""INT32 and INT64, as ONNX numbers them."""


def with_look_ups(graph: Graph) -> Graph:
    """The graph with one LookUp for each table that is written so; what nothing else reads is left out."""
    return replaced(graph, _looked_up)


def _looked_up(
    operation: Operation, producers: Mapping[str, Operation], constants: Mapping[str, Array]
) -> Operation | None:
    """None of a Gather of anything else."""
    axis = operation.attributes.get("axis", 0)
    is_table = operation.kind == "Gather" and axis == 0 and {*operation.inputs[:1]} <= {*constants}
    cast = _producer(operation, 1, "Cast", producers) if is_table else None
    added = _producer(cast, 0, "Add", producers)
    divided = _producer(added, 0, "Div", producers)
    if cast is None or added is None or divided is None or cast.attributes.get("to") not in _INTEGERS:
        return None
    if not (len(added.inputs) == len(divided.inputs) == 2 and {added.inputs[1], divided.inputs[1]} <= {*constants}):
        return None
    inputs = (*divided.inputs, added.inputs[1], operation.inputs[0])
    return Operation(operation.name, LOOK_UP, inputs, operation.outputs, {})


def _producer(
    operation: Operation | None, place: int, kind: str, producers: Mapping[str, Operation]
) -> Operation | None:
    """What gives an input, if it is of that kind."""
    name = operation.inputs[place] if operation is not None and place < len(operation.inputs) else ""
    producer = producers.get(name)
    return producer if producer is not None and producer.kind == kind else None
