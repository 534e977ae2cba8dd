"""Moves each Clip between sums and their quantiser after the quantiser, or removes it.

A Relu or Clip becomes a layer of its own if other operators read the sums too, or if no layer can include it. It is
then a function of the sums. If the Clip is the only reader of the sums, it can be a function of the quantiser's
integers instead, which saturate at the ends of their datatype:

    Conv → Clip 0…1 → QuantizeLinear of 1/255 becomes Conv → QuantizeLinear: both end at the same integers

    Conv → Clip 0…2 → QuantizeLinear of 1/20 becomes Conv → QuantizeLinear → a table: the integers 0…40

Rounding keeps the order of values, so that clipping before the quantiser and after it gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cnn.datatype import TensorType
from cnn.maps import Padding
from cnn.onnx.layers import Layers, Map
from cnn.onnx.quantised.functions import MOVES
from cnn.ops import Activate, Add, AveragePool, Convolution, Dense, Multiply
from cnn.tables import TABLE_BITS

_SUMS = (Add, AveragePool, Convolution, Dense, Multiply)
_CUTS = {"linear": (-np.inf, np.inf), "relu": (0.0, np.inf), "relu6": (0.0, 6.0)}


def with_clips_behind(layers: Layers, outputs: Sequence[str]) -> Layers:
    """Return the network with each Clip between a layer's sums and their quantiser moved after it, or removed.

    outputs: the names of the graph's outputs. Nodes that lead to no output are removed.
    """
    for index in range(len(layers.nodes)):
        layers = _as_function(layers, index)
        op, type_ = layers.nodes[index].op, layers.mark(index).type
        if isinstance(op, Activate) and op.function == "clip" and type_ is not None:
            layers = _behind(layers, index, type_, outputs)
    return layers.pruned(outputs)


def _as_function(layers: Layers, index: int) -> Layers:
    """Return the network with node ``index`` as a Clip, if it is an identity convolution that only clips sums.

    Such a node is a 1×1 depthwise convolution whose weights are 1 and whose bias is 0.
    """
    node = layers.nodes[index]
    op, mark = node.op, layers.mark(index)
    if (
        not isinstance(op, Convolution)
        or op.activation not in _CUTS
        or mark.type is None
        or mark.thresholds is not None
    ):
        return layers
    (source,) = node.inputs
    is_bare = op.groups == len(op.weights) == op.weights.size and bool((op.weights == 1).all())
    is_plain = is_bare and op.stride == 1 and op.padding == Padding() and op.batch_norm is None and not op.bias.any()
    if not is_plain or layers.type_of(source) is not None or not _of_sums(layers, source):
        return layers
    nodes = list(layers.nodes)
    nodes[index] = replace(node, op=Activate("clip", _CUTS[op.activation]))
    return replace(layers, nodes=tuple(nodes))


def _of_sums(layers: Layers, index: int) -> bool:
    """Return whether the node's output is unquantised sums, its own or an earlier layer's that are only moved."""
    while isinstance(layers.nodes[index].op, MOVES):
        (index,) = layers.nodes[index].inputs
    return isinstance(layers.nodes[index].op, _SUMS)


def _behind(layers: Layers, index: int, type_: TensorType, outputs: Sequence[str]) -> Layers:
    """Return the network with the Clip ``index`` moved after its output's quantiser or removed, if that is possible."""
    (source,) = layers.nodes[index].inputs
    node, mark = layers.nodes[source], layers.mark(source)
    is_given = any(isinstance(value, Map) and value.node == source for value in map(layers.value, outputs))
    readers = sum(each.inputs.count(source) for each in layers.nodes)
    is_open = isinstance(node.op, _SUMS) and getattr(node.op, "activation", "linear") == "linear"
    if not is_open or mark.type is not None or mark.thresholds is not None or is_given or readers != 1:
        return layers
    ends_there, is_cut_at_0 = _ends(layers, index, type_)
    if not ends_there and type_.datatype.bits > TABLE_BITS:
        return layers
    if is_cut_at_0:
        assert isinstance(node.op, (Add, Convolution, Dense, Multiply))
        nodes = list(layers.nodes)
        nodes[source] = replace(node, op=replace(node.op, activation="relu"))
        layers = replace(layers, nodes=tuple(nodes))
    layers = layers.marked(source, replace(mark, type=type_, zero_first=layers.mark(index).zero_first))
    return _without(layers, index, source) if ends_there else layers


def _ends(layers: Layers, index: int, type_: TensorType) -> tuple[bool, bool]:
    """Return whether the output's integers saturate at the Clip's bounds, and whether the Clip acts as a ReLU at 0."""
    op = layers.nodes[index].op
    assert isinstance(op, Activate)
    low, high = (np.rint(np.float64(end) / type_.scale) + type_.zero_point for end in op.parameters)
    before = layers.nodes[layers.nodes[index].inputs[0]].op
    is_cut_at_0 = (
        op.parameters[0] == 0 and type_.zero_point in (0, type_.datatype.low) and not isinstance(before, AveragePool)
    )
    return bool((is_cut_at_0 or low <= type_.datatype.low) and high >= type_.datatype.high), is_cut_at_0


def _without(layers: Layers, index: int, source: int) -> Layers:
    """Return the network with all readers of node ``index`` reading its input ``source`` instead."""
    nodes = tuple(
        replace(node, inputs=tuple(source if i == index else i for i in node.inputs)) for node in layers.nodes
    )
    values = {
        name: replace(value, node=source) if isinstance(value, Map) and value.node == index else value
        for name, value in layers.values.items()
    }
    return replace(layers, nodes=nodes, values=values)
