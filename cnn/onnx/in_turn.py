"""Move activations, sums and the like to directly after the layer that they read.

before   Conv, Conv, Sigmoid, Mul, Sigmoid, Mul
after    Conv, Sigmoid, Mul, Conv, Sigmoid, Mul

Some exporters write the branches of a head in parallel, one operator of each branch in turn. The systolic array
computes a function or an addition in the same pass as the layer directly before it, so the order affects the speed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from cnn.onnx.activations import ACTIVATIONS
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.quantised.qonnx import QONNX

FOLLOWS = frozenset(ACTIVATIONS) | {
    *("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "BatchNormalization", "MaxPool"),
    *("QuantizeLinear", "DequantizeLinear", "Cast", "Identity", *QONNX),
}
"""Operators that are moved up to where all their inputs are computed."""


def in_turn(graph: Graph) -> Graph:
    """Return the graph with activations, sums and similar operations moved directly after the layer that they read."""
    readers = _readers(graph)
    absent = {name for operation in graph.operations for name in operation.outputs}
    order: dict[tuple[str, ...], OnnxOperation] = {}
    for operation in graph.operations:
        waiting = [operation]
        while waiting:
            here = waiting.pop()
            order.setdefault(here.outputs, here)
            absent.difference_update(here.outputs)
            waiting += [each for each in readers[here.outputs] if absent.isdisjoint(each.inputs)]
            waiting = [each for each in waiting if each.outputs not in order]
    return replace(graph, operations=tuple(order.values()))


def _readers(graph: Graph) -> dict[tuple[str, ...], list[OnnxOperation]]:
    """Return the movable operations (FOLLOWS) that read an operation, by that operation's outputs, the last first."""
    producers = {name: operation.outputs for operation in graph.operations for name in operation.outputs}
    readers: dict[tuple[str, ...], list[OnnxOperation]] = defaultdict(list)
    for operation in reversed(graph.operations):
        if operation.kind in FOLLOWS:
            for outputs in {producers[name] for name in operation.inputs if name in producers}:
                readers[outputs].append(operation)
    return readers
