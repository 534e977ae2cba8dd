"""How many bits activations may have where the lanes hold 16: sums stay within 32 bits, so weights and activations
share what is left of them.

With W and A the greatest integers of weights and activations, a filter's |acc + bias| is at most W · A · r,

    r = Σ|w| / max|w| + |bias| / (reach · max|w|),

whatever the scales: W · A ≤ 2³¹ / r. The noise of a product is that of its worse factor, so both get half of these
bits, but activations, which have one scale a tensor and more of a peak, two more than weights, which have one a
filter: of 0…4 this is what the head's SQNR is best with on a trained YOLO-LITE and on tiny-YOLOv2 with random weights,
and 1 dB below the best on the embedded network (docs/explanation/quantisation.md has the table). A 3×3 kernel on
512 channels (r about 900) leaves 12 bits and 10 bits beside the signs; 16-bit activations would leave its weights 6.
Each filter then takes what its own sum leaves (``cnn.quantise``), up to 16 bits.
"""

from __future__ import annotations

import math

import numpy as np

from cnn.network import AveragePool, Convolution, Dense, Network, Node
from cnn.quantisation.calibration import Ranges

SUM_BITS = 31
WIDEST, LEAST = 16, 8
MORE = 2  # bits that activations have more than weights


def shared_bits(network: Network, ranges: Ranges) -> tuple[int, ...]:
    """Per node of a folded network the bits of its output, 8…16: the fewest that one of its readers asks for."""
    bits = [WIDEST] * len(network.nodes)
    for node in network.nodes:
        for source in node.inputs:
            bits[source] = min(bits[source], _asked(network, node, ranges.values[source] or 1.0))
    return tuple(bits)


def _asked(network: Network, node: Node, reach: float) -> int:
    op = node.op
    if isinstance(op, AveragePool):
        shape = network.nodes[node.inputs[0]].shape
        return _within(SUM_BITS - math.ceil(math.log2(shape.height * shape.width)) + 1)
    if not isinstance(op, (Convolution, Dense)):
        return WIDEST
    rows = np.abs(op.weights.reshape(op.weights.shape[0], -1).astype(np.float64))
    alive = rows.max(axis=1) > 0
    if not alive.any():
        return WIDEST
    greatest = rows[alive].max(axis=1)
    share = rows[alive].sum(axis=1) / greatest + np.abs(op.bias[alive]) / (reach * greatest)
    # The median: an almost dead filter (a tiny gamma beside a bias) gives up bits of its own weights instead.
    return _within(1 + int((SUM_BITS - math.log2(float(np.median(share))) + MORE) / 2))


def _within(bits: int) -> int:
    return max(LEAST, min(WIDEST, bits))
