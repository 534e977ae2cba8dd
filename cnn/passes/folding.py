"""Transformations: layers that another one can take in. Batch norms are folded by cnn.quantisation.batch_norm."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any, cast

import numpy as np

from cnn.network import Activate, AveragePool, Convolution, Dense, FloatArray, Network, Node, Padding
from cnn.passes.view import N, without
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.tables import looked_up
from cnn.quantized import QActivate, QuantizedNetwork, Table

OF_PIXELS = (Activate, AveragePool, Convolution, Dense)
"""What computes other values of the picture's, whatever holds these."""


def fold_pointwise(network: Network) -> Network:
    """A 1×1 convolution of each channel by itself, as a factor and an offset of the channels are, goes into the
    convolution or matrix before it, where that has no activation and nothing else reads it.

    Batch norms of both are folded first. The node that stays has the name of the second.
    """
    for index, node in enumerate(network.nodes):
        source = _read_alone(network, index)
        if source is None or not (_is_factor(node) and isinstance(source, Node) and _is_open(source)):
            continue
        plain = fold_batch_norms(replace(network, nodes=(source, node)))
        first, second = (cast("Convolution | Dense", each.op) for each in plain.nodes)
        factor: FloatArray = second.weights.ravel()
        op = replace(
            first,
            weights=first.weights * factor.reshape(-1, *(1,) * (first.weights.ndim - 1)),
            bias=first.bias * factor + second.bias,
            activation=second.activation,
        )
        return _merged(network, index, op)
    return network


def convolve_picture(network: Network) -> Network:
    """What moves, adds or joins the picture's values reads a 1×1 convolution of it, which changes none of them: the
    systolic array has the picture's bytes in no map."""
    moving = {i for i, node in enumerate(network.nodes) if 0 in node.inputs and not isinstance(node.op, OF_PIXELS)}
    if not moving:
        return network
    channels = network.input_shape.channels
    weights, bias = np.ones((channels, 1, 1, 1), np.float32), np.zeros(channels, np.float32)
    same = Convolution(weights, bias, None, 1, Padding(), channels, "linear")
    name = next(name for name in map("picture{}".format, count(1)) if name not in {node.name for node in network.nodes})
    nodes = [network.nodes[0], Node(name, same, (0,), network.input_shape, f"{network.name}: its picture")]
    for index, node in enumerate(network.nodes[1:], 1):
        inputs = tuple(i + 1 if i else int(index in moving) for i in node.inputs)
        nodes.append(replace(node, inputs=inputs))
    return replace(network, nodes=tuple(nodes))


def merge_tables(network: QuantizedNetwork) -> QuantizedNetwork:
    """A table behind an exact one that nothing else reads becomes one table: y = second[first[x]]."""
    for index, node in enumerate(network.nodes):
        source = _read_alone(network, index)
        if source is None or not (isinstance(node.op, QActivate) and isinstance(source.op, QActivate)):
            continue
        if source.op.table.slopes is not None:
            continue  # one table of pieces would not have the bits of both
        values = looked_up(node.op.table, source.op.table.values, network.nodes[node.inputs[0]].type.datatype)
        return _merged(network, index, QActivate(Table(values)))
    return network


def _read_alone(network: Network | QuantizedNetwork, index: int) -> Any:
    """The node before, where it is read by this one alone; None of several inputs."""
    inputs = network.nodes[index].inputs
    readers = sum(node.inputs.count(inputs[0]) for node in network.nodes) if len(inputs) == 1 else 0
    return network.nodes[inputs[0]] if readers == 1 else None


def _merged(network: N, index: int, op: Any) -> N:
    """The node does what it and the one before did."""
    nodes: list[Any] = [*network.nodes]
    source = nodes[index].inputs[0]
    nodes[index] = replace(nodes[index], op=op, inputs=nodes[source].inputs)
    return without(replace(network, nodes=cast(Any, tuple(nodes))), source)


def _is_factor(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Convolution) or op.stride != 1 or op.padding != Padding():
        return False
    return op.weights.shape == (op.groups, 1, 1, 1)


def _is_open(node: Node) -> bool:
    return isinstance(node.op, (Convolution, Dense)) and node.op.activation == "linear"
