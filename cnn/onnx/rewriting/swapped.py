"""A Softmax between two Transposes that swap the channels with the last side and back, as PyTorch writes it before
opset 13 → the same with the channels taken last and back, which layers read.

A softmax over the last side asks nothing of the order of the other ones. So any order that has the channels last will
do, where the second Transpose undoes the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cnn.onnx.channels_last import SOFTMAXES, to_first, to_last
from cnn.onnx.graph import Graph, Operation


def with_channels_last(graph: Graph) -> Graph:
    """The graph with such Transposes in the order that layers read."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    changed: dict[int, Operation] = {}
    for back in graph.operations:
        changed.update(_swapped(graph, back, producers))
    if not changed:
        return graph
    operations = (changed.get(id(operation), operation) for operation in graph.operations)
    return replace(graph, operations=tuple(operations))


def _swapped(graph: Graph, back: Operation, producers: Mapping[str, Operation]) -> dict[int, Operation]:
    """Of a Transpose behind a softmax behind another one: what both are instead; nothing where they are otherwise."""
    softmax = producers.get(back.inputs[0]) if back.kind == "Transpose" and back.inputs else None
    before = producers.get(softmax.inputs[0]) if softmax and softmax.kind in SOFTMAXES and softmax.inputs else None
    if softmax is None or before is None or before.kind != "Transpose":
        return {}
    order, undone = _order_of(before), _order_of(back)
    rank = len(order)
    if rank < 3 or (order[0], order[-1]) != (0, 1) or [order[i] for i in undone if i < rank] != list(range(rank)):
        return {}
    between = (before.outputs[0], softmax.outputs[0])
    if softmax.attributes.get("axis") not in (-1, rank - 1) or any(graph.readers[name] != 1 for name in between):
        return {}
    return {id(before): _in_order(before, to_last(rank)), id(back): _in_order(back, to_first(rank))}


def _order_of(operation: Operation) -> tuple[int, ...]:
    """Of a Transpose; nothing where the file does not say one."""
    order = operation.attributes.get("perm")
    if not (isinstance(order, tuple) and all(isinstance(axis, int) for axis in order)):
        return ()
    return order if sorted(order) == list(range(len(order))) else ()


def _in_order(operation: Operation, order: tuple[int, ...]) -> Operation:
    return replace(operation, attributes={**operation.attributes, "perm": order})
