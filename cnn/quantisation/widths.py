"""The bits of activations for lanes of 16 bits, chosen so that sums fit 32 bits.

Weights and activations share the 32 bits of a sum. Let W and A be the greatest integers of weights and activations, and
reach the greatest |activation|. A filter's |acc + bias| is then at most W · A · r with

    r = Σ|w| / max|w| + |bias| / (reach · max|w|)

independent of the scales. So W · A ≤ 2³¹ / r. For a 3×3 kernel on 512 channels r is about 900: W and A have 21 bits
together in addition to their signs, and with 16-bit activations only 6 bits would remain for the weights.

The worse factor determines the noise of a product, so weights and activations share these bits evenly. Activations then
get MORE bits in addition: they have one scale per tensor and stronger peaks, while weights have one scale per filter.
MORE is measured. Among 0…4, 2 gives the best SQNR of the head on a trained YOLO-LITE and on tiny-YOLOv2 with random
weights. It is 1 dB below the best on the embedded network (table in docs/explanation/quantisation.md). Each filter's
weights then use the bits that remain in its own sum, up to 16 bits (cnn.quantisation.quantise).
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
    """Return the bit width of every node's output, 8…16: the least of the widths that its readers can take.

    Args:
        network: The float network without batch norms (cnn.quantisation.batch_norm).
        ranges: The ranges that calibration chose for it.
    """
    bits = [WIDEST] * len(network.nodes)
    for node in network.nodes:
        for source in node.inputs:
            bits[source] = min(bits[source], _asked_by(network, node, ranges.values[source] or 1.0))
    return tuple(bits)


def _asked_by(network: Network, node: Node, reach: float) -> int:
    """Return the most bits of an input, with |x| up to ``reach``, for which the sums of ``node`` fit 32 bits."""
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
    # The median counts, because an almost dead filter (a tiny gamma with a bias) can use fewer bits for its weights.
    return _within(1 + int((SUM_BITS - math.log2(float(np.median(share))) + MORE) / 2))


def _within(bits: int) -> int:
    return max(NARROWEST, min(WIDEST, bits))
