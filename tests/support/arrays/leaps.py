"""Networks that read on-chip maps with strides of 3 to 7, and arrays for them."""

from __future__ import annotations

from dataclasses import replace

from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from tests.support.quantised import Builder

SMALL = Array(4, 8, 8, row_depth=2048, weight_depth=512, kept_depth=512, chunk=8, channel_tiles=16, map_depth=2048)


ARRAYS = {f"{rows} rows": replace(SMALL, rows=rows, map_stride=7, windows=True) for rows in (2, 3, 4, 5, 6, 7, 9, 12)}


def leaping(stride: int, kernel: int | tuple[int, int], above: int = 0, bits: int = 8) -> QuantizedNetwork:
    """Return a network whose map has two readers: a strided convolution, and a 3×3 one that reads every row.

    Args:
        stride: The stride of the first reader.
        kernel: Its rows and columns, or one number for both.
        above: Its rows of padding at the top.
        bits: The bits of values and weights.
    """
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    build = Builder(3, 31, 11, seed=stride, bits=bits).conv(12, 3)
    build.conv(10, (height, width), stride, Padding(above, 1, 1, 1)).conv(6, 1).at(1).conv(8, 3)
    return build.conv(5, 1, wide=True).network()


def networks(bits: int = 8) -> dict[str, QuantizedNetwork]:
    """Return a network per stride and kernel. Kernels are smaller than, equal to or larger than the stride."""
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
