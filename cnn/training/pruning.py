"""Removes the filters with the least weights, whole channels at a time. The result is a smaller network of that form.

The weight of a filter is the L1 norm of its weights with the batch norm's gain (arXiv:1608.08710). Training compensates
for the loss of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, UnsupportedError
from cnn.maps import Shape
from cnn.network import Network, Node
from cnn.ops import AveragePool, BatchNorm, Convolution, Dense, MaxPool, Upsample
from cnn.quantisation.batch_norm import fold_batch_norms

PASSES_ON = (MaxPool, Upsample, AveragePool)
"""Layers that have the channels of their input."""
MULTIPLE = 4
"""The number of remaining channels is a multiple of this, because lanes and folds divide by it."""

Channels = npt.NDArray[np.intp]


def pruned(network: Network, share: float) -> Network:
    """Return the network without the lightest ``share`` of filters of layers that only weighted layers read.

    Layers that joins, heads or groups read keep all filters. Every layer keeps at least MULTIPLE.

    Args:
        network: The float network.
        share: The share of the filters to remove, at least 0 and below 1.

    Raises:
        InvalidValueError: The share is outside this range.
        UnsupportedError: No layer can lose filters.
    """
    if not 0 <= share < 1:
        raise InvalidValueError("--prune", share, "a share of the filters, at least 0 and below 1")
    if share == 0:
        return network
    folded = fold_batch_norms(network)
    remaining: dict[int, Channels] = {}
    nodes = []
    for index, node in enumerate(network.nodes):
        if isinstance(node.op, PASSES_ON) and node.inputs[0] in remaining:
            remaining[index] = remaining[node.inputs[0]]
        elif isinstance(node.op, Convolution) and _can_lose(network, index):
            remaining[index] = _heaviest(folded.nodes[index].op, share)
        nodes.append(_shortened(node, index, network, remaining))
    if not remaining:
        reason = "joins, heads or groups read the filters of every layer"
        raise UnsupportedError(f"pruning of {network.name}", reason, remedy="leave out --prune")
    return replace(network, nodes=tuple(nodes))


def _can_lose(network: Network, index: int) -> bool:
    """Return whether filters of the layer can be removed, because all its readers accept fewer channels."""
    op = network.nodes[index].op
    if isinstance(op, Convolution) and op.groups != 1:
        return False
    readers = [(number, node) for number, node in enumerate(network.nodes) if index in node.inputs]
    return bool(readers) and all(
        isinstance(node.op, Dense)
        or (isinstance(node.op, Convolution) and node.op.groups == 1)
        or (isinstance(node.op, PASSES_ON) and _can_lose(network, number))
        for number, node in readers
    )


def _heaviest(op: Any, share: float) -> Channels:
    """Return the indices of the filters to keep, those with the greatest L1 norm, in ascending order."""
    weight = np.abs(op.weights.astype(np.float64)).sum(axis=(1, 2, 3))
    count = -(-round((1 - share) * weight.size) // MULTIPLE) * MULTIPLE
    heaviest = np.argsort(-weight, kind="stable")[: min(max(count, MULTIPLE), weight.size)]
    return np.sort(heaviest)


def _shortened(node: Node, index: int, network: Network, remaining: Mapping[int, Channels]) -> Node:
    op, ours = node.op, remaining.get(index)
    if isinstance(op, (Convolution, Dense)):
        source = node.inputs[0]
        if source in remaining:
            op = replace(op, weights=_read(op, remaining[source], network.nodes[source].shape))
        if ours is not None:
            norm = None if op.batch_norm is None else _norm(op.batch_norm, ours)
            op = replace(op, weights=op.weights[ours], bias=op.bias[ours], batch_norm=norm)
    shape = node.shape if ours is None else replace(node.shape, channels=ours.size)
    return replace(node, op=op, shape=shape)


def _read(op: Convolution | Dense, channels: Channels, shape: Shape) -> npt.NDArray[np.float32]:
    """Return a layer's weights for the remaining input channels only; ``shape`` is its input's shape before pruning."""
    if isinstance(op, Convolution):
        return op.weights[:, channels]
    outputs = op.weights.shape[0]
    by_channel = op.weights.reshape(outputs, shape.channels, shape.height * shape.width)
    return by_channel[:, channels].reshape(outputs, -1)


def _norm(norm: BatchNorm, channels: Channels) -> BatchNorm:
    return replace(norm, scale=norm.scale[channels], mean=norm.mean[channels], variance=norm.variance[channels])
