"""Transformations: layers that another one can take in. Batch norms are folded by cnn.quantisation.batch_norm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from cnn.network import Convolution, Dense, FloatArray, Network, Node, Padding
from cnn.passes.view import N, without
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantisation.tables import looked_up
from cnn.quantized import QActivate, QuantizedNetwork, Table


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
