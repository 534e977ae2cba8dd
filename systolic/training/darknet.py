"""What was trained as darknet's cfg and weights: the float form, without the rounding of values.

Values clipped to 0…1 are darknet's relu6 of values six times as large, and what reads them divides by six.
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

LARGEST = 6.0
"""Of relu6."""

_SECTION = re.compile(r"(?m)^(?=\s*\[)")
_HIDDEN = re.compile(r"(?m)^(\s*activation\s*=\s*)(?!linear)\w+")
_FILTERS = re.compile(r"(?m)^(\s*filters\s*=\s*)\d+")


def darknet_files(cfg: str, source: Network, exported: Exported) -> tuple[bytes, bytes]:
    """cfg and weights. cfg: of the network that training began with. source: that network, as it was trained: without
    the filters that were left out."""
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
            node = replace(node, op=replace(op, bias=biases.get(node.name, op.bias)))  # else the host adds it
        nodes.append(node)
    filters = [node.op.weights.shape[0] for node in nodes if isinstance(node.op, Convolution)]
    weights = write_darknet_weights(replace(source, nodes=tuple(nodes)))
    return _rewritten(cfg, filters).encode(), weights


def _scaled(op: Convolution | Dense, trained: Node, reads_picture: bool) -> Convolution | Dense:
    """The numbers of a trained layer whose inputs and outputs are LARGEST times as large."""
    form = trained.op
    assert isinstance(form, Convolution)  # as topologies have dense layers, too
    inputs = 1.0 if reads_picture else LARGEST
    outputs = LARGEST if form.activation == UNIT else 1.0
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
    """With relu6 in the hidden layers, and the filters that are left."""
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
