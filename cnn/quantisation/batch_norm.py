"""Batch-norm folding: a network with batch norms → the same function without them, in weights and biases.

    before   y = scale · (W·x − mean) / sqrt(variance + epsilon) + bias
    after    y = (W · g)·x + (bias − mean · g),    g = scale / sqrt(variance + epsilon)

Other tools call it "fuse conv-bn" (PyTorch) or "batch-norm to affine, absorbed" (FINN).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from boards.errors import QuantiseError
from cnn.network import BatchNorm, Convolution, Dense, Network, Node


def fold_batch_norms(network: Network) -> Network:
    """The same nodes at the same indices, no batch norm left; computed in float64, stored as float32. The network
    itself where it has none.

    Raises QuantiseError where a batch norm divides by nothing or a folded number is not finite.
    """
    if not any(isinstance(node.op, (Convolution, Dense)) and node.op.batch_norm for node in network.nodes):
        return network
    return replace(network, nodes=tuple(_without_batch_norm(node) for node in network.nodes))


def _without_batch_norm(node: Node) -> Node:
    op = node.op
    if not isinstance(op, (Convolution, Dense)) or op.batch_norm is None:
        return node
    gain = _gain(op.batch_norm, node)
    weights = op.weights * gain.reshape(-1, *(1,) * (op.weights.ndim - 1))
    bias = op.bias - op.batch_norm.mean * gain
    folded = replace(op, weights=_float32(weights, node), bias=_float32(bias, node), batch_norm=None)
    return replace(node, op=folded)


def _gain(norm: BatchNorm, node: Node) -> npt.NDArray[np.float64]:
    denominator = norm.variance.astype(np.float64) + norm.epsilon
    if not np.all(denominator > 0):
        channel = int(np.flatnonzero(~(denominator > 0))[0])
        raise QuantiseError(
            f"a batch norm needs variance + epsilon > 0, not {denominator[channel]:g} in channel {channel} "
            f"of {node.name!r} ({node.source}); the weights file is damaged or belongs to another network"
        )
    return np.asarray(norm.scale / np.sqrt(denominator), dtype=np.float64)


def _float32(array: npt.NDArray[np.float64], node: Node) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if not np.all(np.isfinite(narrow)):
        raise QuantiseError(
            f"folding the batch norm of {node.name!r} ({node.source}) must give finite float32 numbers, "
            "but some are infinite or not a number; the weights file is damaged or belongs to another network"
        )
    return narrow
