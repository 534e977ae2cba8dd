"""What a layer's values go through next stands right behind it, as exporters that go by depth write it.

before   Conv, Conv, Sigmoid, Mul, Sigmoid, Mul
after    Conv, Sigmoid, Mul, Conv, Sigmoid, Mul

Others go by level (the branches of a head, an operator of each in turn). The array does a function or a sum in the pass
of the layer just before it, so that it pays which way a file is written.
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
"""Operators that move up, where all that they read is there."""


def in_turn(graph: Graph) -> Graph:
    """The graph with the same operations, in another topological order."""
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
    """By the outputs of an operation those that may follow it, the last first."""
    producers = {name: operation.outputs for operation in graph.operations for name in operation.outputs}
    readers: dict[tuple[str, ...], list[OnnxOperation]] = defaultdict(list)
    for operation in reversed(graph.operations):
        if operation.kind in FOLLOWS:
            for outputs in {producers[name] for name in operation.inputs if name in producers}:
                readers[outputs].append(operation)
    return readers
