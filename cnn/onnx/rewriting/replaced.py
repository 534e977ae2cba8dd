"""Operations in the place of those that are written by their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, Operation

Replacement = Callable[[Operation, Mapping[str, Operation], Mapping[str, Array]], Operation | None]
"""What an operation becomes, None where it stays; of the producers of tensors, and of constants."""


def replaced(graph: Graph, replacement: Replacement) -> Graph:
    """The graph with what its operations become; those that nothing else reads are left out."""
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    operations = [replacement(operation, producers, graph.constants) or operation for operation in graph.operations]
    if all(ours is theirs for ours, theirs in zip(operations, graph.operations, strict=True)):
        return graph
    return replace(graph, operations=needed(operations, graph.outputs))
