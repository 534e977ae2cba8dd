"""Schedules whose passes are computed by hand."""

from __future__ import annotations

from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from scheduler.systolic.tiling import Tiling, column_tiles
from tests.support.quantised import Builder

WEIGHTS, INPUTS, STREAMED = "weights-resident", "inputs-resident", "streamed"


def scheduled(
    network: QuantizedNetwork, array: Array, ways: list[tuple[int, str, bool, bool]], batch: int = 1
) -> SystolicSchedule:
    """Return the schedule with these tilings.

    Args:
        network: The network.
        array: The array.
        ways: Per layer: the columns of a tile, the order, whether loading overlaps, and whether the map stays on chip.
        batch: The frames per batch.
    """
    tilings = [
        Tiling(column_tiles(network, layer, array, width), order, overlap, stays)
        for layer, (width, order, overlap, stays) in zip(lower(network, batch), ways, strict=True)
    ]
    return schedule_of(network, array, tilings, batch)


def strided() -> SystolicSchedule:
    """Return a schedule for 5 rows, 8 columns and 8 lanes of 8 bits: words have 8 bytes, or 2 pixels.

    The network has a pool, a stride and a depthwise convolution.
    """
    array = Array(5, 8, 8, row_depth=256, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
    build = Builder(3, 26, 60).conv(16, 3).pool().conv(20, (3, 5), 2, Padding(2, 1, 0, 3))
    network = build.conv(0, 3, depthwise=True).conv(12, 1, wide=True).network()
    return scheduled(network, array, [(width, WEIGHTS, True, False) for width in (60, 8, 15, 15)])


def narrow() -> SystolicSchedule:
    """Return a schedule for 6 rows, 16 columns and 8 lanes of 4 bits: words have 4 bytes, or 1 pixel.

    The array computes two positions at once. A map stays on chip. Its reader has more rows of padding at the top than
    the array has rows.
    """
    array = Array(6, 16, 8, bits=4, map_ports=4, weight_ports=2, weight_words=2, map_depth=512, chunk=8)
    build = Builder(2, 14, 10, bits=4).conv(24, 3).conv(16, (9, 3), 1, Padding(8, 1, 0, 1)).conv(8, 1)
    ways = [(10, INPUTS, True, True), (6, STREAMED, True, False), (10, STREAMED, False, False)]
    return scheduled(build.network(), array, ways)


def batched() -> SystolicSchedule:
    """Return a schedule of 3 frames for 4 rows, 8 columns and 8 lanes of 8 bits.

    The frames of the layers are repeated, stacked vertically, or one row each.
    """
    array = Array(4, 8, 8, chunk=4, map_ports=1, weight_ports=4)
    network = Builder(1, 6, 4).conv(8, 3).pool().conv(8, 1).dense(5).network()
    return scheduled(
        network, array, [(4, INPUTS, True, False), (2, STREAMED, False, False), (1, STREAMED, False, False)], 3
    )
