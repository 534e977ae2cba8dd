"""Networks that read on-chip maps with stride 2, and arrays for them."""

from __future__ import annotations

from dataclasses import replace

from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from tests.support.quantised import Builder

SMALL = Array(4, 8, 8, row_depth=2048, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, map_depth=2048)


ARRAYS = {f"{rows} rows": replace(SMALL, rows=rows, map_stride=2) for rows in (2, 3, 4, 5, 7, 8)}


def halved(kernel: int, padding: Padding | None = None, height: int = 19, bits: int = 8) -> QuantizedNetwork:
    """Return a network whose second convolution reads a map with stride 2."""
    build = Builder(3, height, 9, seed=kernel, bits=bits).conv(16, 3).conv(16, kernel, 2, padding)
    return build.conv(5, 1, wide=True).network()


def shortcut(bits: int = 8) -> QuantizedNetwork:
    """Return a ResNet's block that halves the map: a 3×3 and a 1×1 convolution with stride 2 read the same map."""
    build = Builder(3, 22, 9, seed=4, bits=bits).conv(8, 3).conv(16, 3, 2).conv(16, 3).at(1).conv(16, 1, 2)
    return build.add(3, 4, slope=0).conv(5, 1, wide=True).network()


def networks(bits: int = 8) -> dict[str, QuantizedNetwork]:
    """Return a network per kernel and padding."""
    depthwise = Builder(3, 17, 9, seed=6, bits=bits).conv(16, 3).conv(16, 3, 2, depthwise=True)
    return {
        "3 × 3": halved(3, bits=bits),
        "3 × 3, no padding above": halved(3, Padding(0, 0, 1, 1), bits=bits),
        "1 × 1": halved(1, bits=bits),
        "2 × 2": halved(2, Padding(0, 0, 1, 1), bits=bits),
        "5 × 5": halved(5, bits=bits),
        "7 × 7": halved(7, bits=bits),
        "rows beside": halved(3, Padding(2, 1, 2, 1), height=6, bits=bits),
        "depthwise": depthwise.conv(5, 1, wide=True).network(),
        "shortcut": shortcut(bits),
    }
