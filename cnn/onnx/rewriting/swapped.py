"""A Softmax between two Transposes that swap the channels with the last side and back, as PyTorch writes it before
opset 13 → the same with the channels taken last and back, which layers read.

A softmax over the last side asks nothing of the order of the other ones. So any order that has the channels last will
do, where the second Transpose undoes the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    softmax = _before(back, ("Transpose",), producers)
    before = _before(softmax, SOFTMAXES, producers)
    if softmax is None or before is None or before.kind != "Transpose":
        return {}
    if any(graph.readers[between.outputs[0]] != 1 for between in (before, softmax)):
        return {}
    order, undone = _order_of(before), _order_of(back)
    rank = len(order)
    is_swap = rank > 2 and (order[0], order[-1]) == (0, 1)
    if not is_swap or [order[axis] for axis in undone if axis < rank] != list(range(rank)):
        return {}
    if softmax.attributes.get("axis") not in (-1, rank - 1):
        return {}
    return {id(before): _in_order(before, to_last(rank)), id(back): _in_order(back, to_first(rank))}


def _before(operation: Operation | None, kinds: Sequence[str], producers: Mapping[str, Operation]) -> Operation | None:
    """What gives the first input of an operation of these kinds."""
    reads = operation.inputs if operation is not None and operation.kind in kinds else ()
    return producers.get(reads[0]) if reads else None


def _order_of(operation: Operation) -> tuple[int, ...]:
    """Of a Transpose; nothing where the file does not say one."""
    order = operation.attributes.get("perm")
    if not (isinstance(order, tuple) and all(isinstance(axis, int) for axis in order)):
        return ()
    return order if sorted(order) == list(range(len(order))) else ()


def _in_order(operation: Operation, order: tuple[int, ...]) -> Operation:
    return replace(operation, attributes={**operation.attributes, "perm": order})
