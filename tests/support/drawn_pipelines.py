"""Random low-bit networks for pipelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cnn.maps import Padding
from cnn.ops import QConvolution, QDense
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantiser, Requantising, Thresholds
from tests.support.low_bit import Layers

FORMATS = (("INT4", "UINT4"), ("INT8", "INT8"), ("TERNARY", "TERNARY"), ("INT2", "UINT2"), ("INT4", "INT8"))


STEPS = (
    "wide",
    "strided",
    "point",
    "sampled",
    "depthwise",
    "pool",
    "overlapped",
    "upsample",
    "skip",
    "branches",
    "reorg",
)


def grow(made: Layers, step: str, random: np.random.Generator) -> Layers:
    """Append one step, or a 3×3 convolution if the map is too small for the step."""
    shape, filters = made.nodes[-1].shape, int(random.integers(1, 5)) * 2
    even = shape.height % 2 == shape.width % 2 == 0 and shape.height >= 4
    if step == "wide":
        top, left, bottom, right = (int(p) for p in random.integers(0, 3, 4))
        return made.conv(filters, 3, 1, Padding(top, left, bottom, right))
    if step == "point":
        return made.conv(filters, 1)
    if step == "depthwise":
        return made.depthwise(3, int(random.integers(1, 3)))
    if step == "skip":
        fork = made.last
        made.conv(shape.channels, 3).conv(shape.channels, 1)
        return made.sum(fork, made.last)
    if step == "branches":
        fork = made.last
        first = made.conv(filters, 3, 1, None, False, fork).last
        return made.conv(filters, 1, 1, None, False, fork).concat(first, made.last)
    if step == "reorg" and even and shape.channels % 4 == 0:
        return made.reorg(2, made.last)
    if step == "upsample" and shape.height <= 8:
        return made.upsample(2)
    if step in ("strided", "sampled") and even:
        return made.conv(filters, 3 if step == "strided" else 1, 2)
    if step in ("pool", "overlapped") and even:
        return made.pool(*((2, 2) if step == "pool" else (3, 2)))
    return made.conv(filters, 3)


def requantising(like: Requantising, node: QNode, kind: int, random: np.random.Generator) -> Requantising:
    """Return an activation of the same channels with random constants, some of which are negative."""
    out, count = node.type.datatype, like.channels
    if kind == 2 and out.bits <= 4:
        levels = np.sort(random.integers(-300, 300, (count, out.levels)), axis=1).astype(np.int64)
        return Thresholds(levels, random.random(count) < 0.5)
    multiplier = random.integers(1 << 15, 1 << 16, count)
    shift, negative = random.integers(18, 23, count), random.integers(0, 2, count)
    if kind == 1:
        return MultiplyShift(multiplier * (1 - 2 * negative), random.integers(-(1 << 22), 1 << 22, count), shift)
    return Requantiser(random.integers(-200, 200, count), multiplier, negative, shift)


def drawn_network(steps: list[str], formats: tuple[str, str], seed: int) -> QuantizedNetwork:
    random = np.random.default_rng(seed)
    height, width = (int(2 * random.integers(3, 7)) for _ in range(2))
    made = Layers(int(random.integers(1, 5)), height, width, *formats).conv(int(random.integers(1, 5)) * 2, 3)
    for step in steps:
        grow(made, step, random)
    made = (made.dense(6) if random.random() < 0.3 else made.conv(5, 1)).wide()
    nodes = []
    for node in made.nodes:
        if isinstance(node.op, (QConvolution, QDense)):
            by = requantising(node.op.requantiser, node, int(random.integers(3)), random)
            node = replace(node, op=replace(node.op, requantiser=by))
        nodes.append(node)
    return QuantizedNetwork("drawn", tuple(nodes))
