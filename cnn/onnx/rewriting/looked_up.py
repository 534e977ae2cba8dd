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
    if operation.kind != "Gather" or len(operation.inputs) != 2 or operation.attributes.get("axis", 0) != 0:
        return None
    values, places = operation.inputs
    cast = producers.get(places)
    if values not in constants or cast is None or cast.kind != "Cast" or cast.attributes.get("to") not in _INTEGERS:
        return None
    added = producers.get(cast.inputs[0])
    if added is None or added.kind != "Add" or len(added.inputs) != 2 or added.inputs[1] not in constants:
        return None
    divided = producers.get(added.inputs[0])
    if divided is None or divided.kind != "Div" or len(divided.inputs) != 2:
        return None
    inputs = (*divided.inputs, added.inputs[1], values)
    return Operation(operation.name, LOOK_UP, inputs, operation.outputs, {})
