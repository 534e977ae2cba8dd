"""Batch-norm folding: a network with batch norms becomes the same function without them, in weights and biases.

    before   y = scale · (W·x − mean) / sqrt(variance + epsilon) + bias
    after    y = (W · g)·x + (bias − mean · g),    g = scale / sqrt(variance + epsilon)

Other tools call it "fuse conv-bn" (PyTorch) or "batch-norm to affine, absorbed" (FINN).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense

CHECK_WEIGHTS = "check the weights file: it is damaged or belongs to another network"


def fold_batch_norms(network: Network) -> Network:
    """Return the network with each batch norm folded into its layer's weights and bias; node indices do not change.

    Numbers are computed in float64 and stored as float32. A network without batch norms is returned itself.

    Raises:
        RangeError: A batch norm's variance + epsilon is not above 0.
        InvalidValueError: A folded number is not finite.
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
        what = f"variance + epsilon of the batch norm in channel {channel}"
        value = float(denominator[channel])
        raise RangeError(what, value, low=0, exclusive=True, where=node.place, remedy=CHECK_WEIGHTS)
    return np.asarray(norm.scale / np.sqrt(denominator), dtype=np.float64)


def _float32(array: npt.NDArray[np.float64], node: Node) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    wrong = narrow[~np.isfinite(narrow)]
    if wrong.size:
        what = "a number of the folded batch norm"
        raise InvalidValueError(what, float(wrong[0]), "finite as float32", where=node.place, remedy=CHECK_WEIGHTS)
    return narrow
