"""The trained network as darknet's .cfg and .weights, a float network without rounded activations.

The trained network clips activations to 0…1, and darknet's relu6 clips to 0…6. Layers are therefore scaled so that
their outputs are six times as large, and the layers that read them divide by six.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cnn.activations import UNIT
from cnn.darknet.files import write_darknet_weights
from cnn.darknet.graph import DARKNET_EPSILON
from cnn.exported.network import Exported
from cnn.maps import FloatArray
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense
from cnn.quantisation.batch_norm import fold_batch_norms

RELU6_MAX = 6.0
"""The largest output of relu6."""

_SECTION = re.compile(r"(?m)^(?=\s*\[)")
_HIDDEN = re.compile(r"(?m)^(\s*activation\s*=\s*)(?!linear)\w+")
_FILTERS = re.compile(r"(?m)^(\s*filters\s*=\s*)\d+")


def darknet_files(cfg: str, source: Network, exported: Exported) -> tuple[bytes, bytes]:
    """Return the content of the .cfg file and of the .weights file of a trained network.

    Args:
        cfg: The cfg of the network from which training started.
        source: That network without the filters that were pruned.
        exported: The trained network.
    """
    trained = exported.network
    folded = fold_batch_norms(trained)
    biases = {
        layer.name: exported.arrays[f"conv{kernel.number}_b"]
        for layer, kernel in exported.topology.kernels
        if kernel.output_bits is None
    }
    nodes = []
    for index, node in enumerate(source.nodes):
        if isinstance(node.op, (Convolution, Dense)):
            form = (trained if node.op.batch_norm is not None else folded).nodes[index]
            op = _scaled(node.op, form, reads_picture=node.inputs == (0,))
            # A layer whose outputs are not quantised has its bias outside the trained graph, where the host adds it.
            node = replace(node, op=replace(op, bias=biases.get(node.name, op.bias)))
        nodes.append(node)
    filters = [node.op.weights.shape[0] for node in nodes if isinstance(node.op, Convolution)]
    weights = write_darknet_weights(replace(source, nodes=tuple(nodes)))
    return _rewritten(cfg, filters).encode(), weights


def _scaled(op: Convolution | Dense, trained: Node, reads_picture: bool) -> Convolution | Dense:
    """Return the layer with its trained weights, scaled because darknet's relu6 clips at 6 and training at 1.

    Args:
        op: The operation of the source network, whose weights have the required shape.
        trained: The same layer of the trained network.
        reads_picture: Whether the layer reads the input picture, which is not scaled.
    """
    form = trained.op
    assert isinstance(form, Convolution)  # topologies represent dense layers as convolutions, too
    inputs = 1.0 if reads_picture else RELU6_MAX
    outputs = RELU6_MAX if form.activation == UNIT else 1.0
    norm = form.batch_norm
    if norm is not None:
        weights, bias = form.weights, form.bias * outputs
        deviation = np.sqrt(norm.variance.astype(np.float64) + norm.epsilon) * inputs
        variance = _single(np.maximum(deviation - DARKNET_EPSILON, 0) ** 2)
        norm = BatchNorm(_single(norm.scale * outputs), _single(norm.mean * inputs), variance)
    else:
        weights, bias = form.weights * (outputs / inputs), form.bias * outputs
    return replace(op, weights=_single(weights).reshape(op.weights.shape), bias=_single(bias), batch_norm=norm)


def _single(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> FloatArray:
    return np.asarray(values, np.float32)


def _rewritten(cfg: str, filters: Sequence[int]) -> str:
    """Return the .cfg text with relu6 in the hidden layers and the number of filters after pruning."""
    remaining = iter(filters)
    sections = []
    for section in _SECTION.split(cfg):
        kind = section.strip().split("]")[0].lstrip("[")
        if kind in ("convolutional", "connected"):
            section = _HIDDEN.sub(r"\g<1>relu6", section)
        if kind == "convolutional":
            count = next(remaining)
            section = _FILTERS.sub(rf"\g<1>{count}", section)
        sections.append(section)
    return "".join(sections)
