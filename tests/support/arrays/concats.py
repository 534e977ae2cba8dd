"""Networks whose concats store the maps of several layers next to each other in a map buffer, and arrays for them."""

from __future__ import annotations

from dataclasses import replace

from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from tests.support.quantised import Builder

SMALL = Array(4, 8, 8, row_depth=1024, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, map_depth=1024)


ARRAYS = {
    "4 rows": replace(SMALL, windows=True, upscale=2, added_maps=True, map_stride=2),
    "5 rows": replace(SMALL, rows=5, map_ports=4, save_rows=4, windows=True, upscale=2, added_maps=True, map_stride=2),
    "7 rows": replace(SMALL, rows=7, columns=16, windows=True, upscale=2, added_maps=True, map_stride=2),
    "4 bits": replace(
        SMALL, rows=5, columns=16, bits=4, weight_words=4, windows=True, upscale=2, map_stride=2, added_maps=True
    ),
}


def fire(bits: int = 8) -> QuantizedNetwork:
    """Return SqueezeNet's modules: two layers expand a map, and the next layer reads both results as one map."""
    build = Builder(3, 11, 9, seed=1, bits=bits).conv(12, 3).conv(6, 1).conv(20, 1).at(2).conv(12, 3).concat(3, 4)
    build.conv(10, 1).conv(16, 1).at(6).conv(9, 3).concat(7, 8).window(3, 2).conv(8, 3)
    return build.conv(5, 1, wide=True).network()


def kept_long(bits: int = 8) -> QuantizedNetwork:
    """Return a network with a route to an earlier layer, whose map is read at once and again with a later map."""
    build = Builder(3, 12, 9, seed=2, bits=bits).conv(12, 3).conv(20, 3).conv(8, 1).conv(16, 3).conv(6, 1)
    return build.concat(5, 2).conv(16, 3).conv(5, 1, wide=True).network()


def cross_stage(bits: int = 8) -> QuantizedNetwork:
    """Return yolov4-tiny's cross-stage block.

    Two convolutions process a slice of a map. Their results are joined, and the result is joined with the map.
    """
    build = Builder(3, 10, 9, seed=3, bits=bits).conv(16, 3).part(8, 8).conv(8, 3).conv(8, 3).concat(4, 3).conv(16, 1)
    return build.concat(1, 6).pool().conv(16, 3).conv(5, 1, wide=True).network()


def halved(bits: int = 8) -> QuantizedNetwork:
    """Return a network in which a concat and one of its maps are read with stride 2 and the same padding."""
    build = Builder(3, 15, 9, seed=4, bits=bits).conv(12, 3).conv(10, 3).at(1).conv(12, 1).concat(2, 3).conv(16, 3, 2)
    return build.conv(8, 1).conv(5, 1, wide=True).network()


def residuals(bits: int = 8) -> QuantizedNetwork:
    """Return YOLOv8's C2f with 64 channels per part: a bottleneck adds to a slice of the map next to its own result."""
    build = Builder(3, 9, 6, seed=5, bits=bits).conv(128, 1).part(64, 64).conv(32, 3).conv(64, 3).add(4, 2, slope=1)
    build.conv(32, 3).conv(64, 3).add(7, 5, slope=1).concat(1, 5, 8).conv(32, 1)
    return build.conv(5, 1, wide=True).network()


def upsampled(bits: int = 8) -> QuantizedNetwork:
    """Return a U-Net's joins: a map is joined with another one that an upsample or a convolution computes."""
    build = Builder(3, 14, 10, seed=6, bits=bits).conv(12, 3).pool().conv(20, 3).upsample().concat(4, 1).conv(9, 3)
    build.pool().upsample().conv(8, 3)
    return build.conv(5, 1, wide=True).network()


NETWORKS = {
    "upsampled": upsampled,
    "residuals": residuals,
    "fire": fire,
    "kept long": kept_long,
    "cross stage": cross_stage,
    "halved": halved,
}


STAYING = {
    "upsampled": (True, True, True, True, True, True, False),
    "residuals": (True, True, True, True, True, True, False),
    "fire": (True, True, True, True, True, True, True, True, True, False),
    "kept long": (True, True, False, True, True, True, False),
    "cross stage": (True, False, False, True, True, True, False),
    "halved": (True, True, True, True, True, False),
}
"""For each layer, True if its map stays on chip. A map does not stay if it would be written to the buffer that its own
layer reads, or if its only partner in a concat does not stay."""
