"""Norms by statistics of each picture, written out by their parts, as exporters of older opsets do → one operator, so
that what no layer does is named as what it is.

    (x − mean(x)) / √(mean((x − mean(x))²) + ε)      LayerNormalization, over whichever sides
    x / √(mean(x²) + ε)                               RMSNormalization
"""

from __future__ import annotations

from collections.abc import Mapping

from cnn.onnx.graph import Array, Graph, Operation
from cnn.onnx.operators import WRITTEN_OUT
from cnn.onnx.rewriting.replaced import replaced

MOST_STEPS = 6
"""Operators between the mean of squares and what is divided by its root."""

_STEPS = ("Add", "Clip", "Div", "Max", "Pow", "Reciprocal", "Sqrt")


def with_norms(graph: Graph) -> Graph:
    """Return the graph with one operator for each norm that is written by its parts."""
    return replaced(graph, _norm_of)


def _norm_of(operation: Operation, producers: Mapping[str, Operation], _: Mapping[str, Array]) -> Operation | None:
    if operation.kind not in ("Div", "Mul") or len(operation.inputs) != 2:
        return None
    pairs = [operation.inputs] if operation.kind == "Div" else [operation.inputs, operation.inputs[::-1]]
    for numerator, scale in pairs:
        if not _is_root_of_squares(producers.get(scale), numerator, producers):
            continue
        centred = producers.get(numerator)
        if centred is not None and centred.kind == "Sub" and _is_mean_of(centred, producers):
            kind, source = "LayerNormalization", centred.inputs[0]
        else:
            kind, source = "RMSNormalization", numerator
        return Operation(operation.name, kind + WRITTEN_OUT, (source,), operation.outputs, {})
    return None


def _is_root_of_squares(operation: Operation | None, numerator: str, producers: Mapping[str, Operation]) -> bool:
    """Return whether it is the root of the numerator's mean square plus a number, or the reciprocal of such a root."""
    has_root = False
    for _ in range(MOST_STEPS):
        if operation is None or operation.kind == "ReduceMean":
            break
        if operation.kind not in _STEPS:
            return False
        has_root = has_root or operation.kind in ("Sqrt", "Pow")
        sources = [producers[name] for name in operation.inputs if name in producers]
        varying = [source for source in sources if source.kind != "Constant"]
        operation = varying[0] if len(varying) == 1 else None
    if operation is None or operation.kind != "ReduceMean":
        return False
    squares = producers.get(operation.inputs[0])
    return has_root and squares is not None and _is_square_of(squares, numerator)


def _is_square_of(operation: Operation, numerator: str) -> bool:
    if operation.kind == "Mul":
        return operation.inputs == (numerator, numerator)
    return operation.kind == "Pow" and operation.inputs[:1] == (numerator,)


def _is_mean_of(centred: Operation, producers: Mapping[str, Operation]) -> bool:
    mean = producers.get(centred.inputs[1]) if len(centred.inputs) == 2 else None
    return mean is not None and mean.kind == "ReduceMean" and mean.inputs[:1] == centred.inputs[:1]
