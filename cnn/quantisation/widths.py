"""How many bits activations get where the lanes hold 16 bits: sums must stay within 32.

Weights and activations share what the 32 bits of a sum leave. W and A are the greatest integers of weights and
activations, and reach is the greatest |activation|. A filter's |acc + bias| is then at most W · A · r with

    r = Σ|w| / max|w| + |bias| / (reach · max|w|)

whatever the scales are. So W · A ≤ 2³¹ / r. For a 3×3 kernel on 512 channels r is about 900: W and A have 21 bits
together beside their signs, and 16-bit activations would leave the weights 6.

The noise of a product is that of its worse factor, so both get half of these bits. Activations get MORE bits more than
weights: they have one scale a tensor and stronger peaks, while weights have one scale a filter. MORE is measured:
of 0…4, 2 gives the best SQNR of the head on a trained YOLO-LITE and on tiny-YOLOv2 with random weights, and is 1 dB
below the best on the embedded network (table in docs/explanation/quantisation.md). Each filter then uses what its own
sum leaves, up to 16 bits (cnn.quantisation.quantise).
"""

from __future__ import annotations

import math

import numpy as np

from cnn.network import Network, Node
from cnn.ops import AveragePool, Convolution, Dense
from cnn.quantisation.calibration import CalibratedRanges

SUM_BITS = 31
WIDEST, NARROWEST = 16, 8
MORE = 2


def shared_bits(network: Network, ranges: CalibratedRanges) -> tuple[int, ...]:
    """Bits of every node's output, 8…16: the fewest that one of its readers can take.

    network: without batch norms (cnn.quantisation.batch_norm). ranges: of its calibration.
    """
    bits = [WIDEST] * len(network.nodes)
    for node in network.nodes:
        for source in node.inputs:
            bits[source] = min(bits[source], _asked_by(network, node, ranges.values[source] or 1.0))
    return tuple(bits)


def _asked_by(network: Network, node: Node, reach: float) -> int:
    """The most bits that ``node`` can take of an input whose greatest |x| is ``reach``."""
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
    # The median, since an almost dead filter (a tiny gamma beside a bias) can give up bits of its own weights instead.
    return _within(1 + int((SUM_BITS - math.log2(float(np.median(share))) + MORE) / 2))


def _within(bits: int) -> int:
    return max(NARROWEST, min(WIDEST, bits))
