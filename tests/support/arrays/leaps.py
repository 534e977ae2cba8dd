"""Maps on chip that are read with strides of 3 to 7: networks and arrays."""

from __future__ import annotations

from dataclasses import replace

from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from tests.support.quantised import Builder

SMALL = Array(4, 8, 8, row_depth=2048, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, map_depth=2048)


ARRAYS = {f"{rows} rows": replace(SMALL, rows=rows, map_stride=7, windows=True) for rows in (2, 3, 4, 5, 6, 7, 9, 12)}


def leaping(stride: int, kernel: int | tuple[int, int], above: int = 0, bits: int = 8) -> QuantizedNetwork:
    """A map, and a convolution that reads it under so many rows of padding; beside it a 3 × 3 that reads each row."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    build = Builder(3, 31, 11, seed=stride, bits=bits).conv(12, 3)
    build.conv(10, (height, width), stride, Padding(above, 1, 1, 1)).conv(6, 1).at(1).conv(8, 3)
    return build.conv(5, 1, wide=True).network()


def networks(bits: int = 8) -> dict[str, QuantizedNetwork]:
    """Every stride, under kernels that are smaller, as large and larger, of as many rows as columns and not."""
    kernels: dict[str, tuple[int, int | tuple[int, int], int]] = {
        "3 of 3": (3, 3, 1),
        "3 of 1": (3, 1, 0),
        "3 of 5 × 2": (3, (5, 2), 2),
        "4 of 4": (4, 4, 0),
        "4 of 2 × 5": (4, (2, 5), 1),
        "5 of 7": (5, 7, 3),
        "6 of 3": (6, 3, 2),
        "7 of 7": (7, 7, 1),
        "7 of 9 × 1": (7, (9, 1), 4),
    }
    nets = {name: leaping(stride, kernel, above, bits) for name, (stride, kernel, above) in kernels.items()}
    window = Builder(3, 20, 9, seed=2, bits=bits).conv(12, 3).window(3, 3, Padding(1, 1, 1, 1))
    nets["window of 3"] = window.conv(5, 1, wide=True).network()
    return nets
