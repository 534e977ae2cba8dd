"""Additions that the Saver does after the layer before them: the networks and arrays on which they are executed."""

from __future__ import annotations

from dataclasses import replace

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from tests.support.quantised import Builder

SMALL = Array(5, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, added_maps=True)


ARRAYS = {
    "8 bits": replace(SMALL, upscale=2, table_depth=256, windows=True, late_offsets=1, map_products=True),
    "4 bits": replace(
        SMALL, columns=16, bits=4, weight_words=4, save_rows=4, map_ports=1, table_depth=256, windows=True
    ),
    "16 bits": replace(SMALL, lanes=4, bits=16, save_rows=1, chunk=6, windows=True),
    "map buffers": replace(SMALL, rows=4, columns=16, map_depth=512, map_ports=4, table_depth=256, windows=True),
}


def residual(bits: int = 8) -> QuantizedNetwork:
    """Return ResNet's blocks: with a ReLU, with a convolution and stride 2 in both branches, and in sequence.

    The host reads the last sum.
    """
    top = 7 if bits == 4 else 100
    build = Builder(3, 11, 9, seed=8, bits=bits).conv(12, 3).conv(12, 3).conv(12, 3)
    build.add(3, 1, multipliers=(top, top - 3), slope=0).conv(20, 3, stride=2).conv(20, 3)
    build.at(4).conv(20, 1, stride=2).add(6, 7, slope=1).conv(40, 1).conv(40, 3, depthwise=True).conv(20, 1)
    return build.add(8, 11, slope=1).conv(20, 3).add(12, 13, multipliers=(2, 3), slope=1).network()


def behind(bits: int = 8) -> QuantizedNetwork:
    """Return a network of additions after different layers: a fused pool, a pool of stride 1, a window and a table.

    Added maps are also read by a concat. A pool and a table follow additions as separate layers.
    """
    build = Builder(3, 14, 11, seed=9, bits=bits).conv(20, 3).pool().conv(20, 3).pool(1).add(2, 4, slope=1)
    build.conv(20, 3).window(3).add(5, 7, slope=0).pool(1).conv(20, 1)
    build = build.curve() if bits <= 8 else build.conv(20, 1)
    build.add(11, 9, slope=1)
    build = build.curve() if bits <= 8 else build.conv(20, 1)
    return build.concat(5, 13, 8).conv(9, 1).conv(5, 3, wide=True).network()


def own(bits: int = 8) -> QuantizedNetwork:
    """Return a network of additions that cannot be fused, and one that can.

    They add different channels or three maps, a map with two readers, or the result of a layer that is not the previous
    one.
    """
    build = Builder(3, 9, 7, seed=10, bits=bits).conv(12, 3).conv(12, 3).add(1, 2).conv(12, 3).conv(12, 1)
    build.add(3, 4, 5, slope=1).conv(12, 1).add(6, 7, slope=1).at(7).conv(12, 1).conv(12, 1).at(8).conv(12, 3)
    build.add(10, 9, slope=1)
    return build.concat(11, 12).conv(12, 1).conv(12, 1).add(15, 14, slope=1).conv(5, 3, wide=True).network()


NETWORKS = {"residual": residual, "behind": behind, "own": own}


def stage(channels: int, size: int, bits: int = 8) -> QuantizedNetwork:
    """Return a stage of darknet53: two blocks of a 1×1 and a 3×3 convolution."""
    build = Builder(3, size, size, seed=5, bits=bits).conv(channels, 3)
    for _ in range(2):
        source = len(build.nodes) - 1
        build.conv(channels // 2, 1).conv(channels, 3)
        build.add(source, len(build.nodes) - 1, slope=1)
    return build.conv(16, 1).network()
