"""Schedules whose modelled cycles are compared with the trace of the generated code."""

from __future__ import annotations

from dataclasses import replace

from boards.board import load
from scheduler.systolic.array import Array
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from tests.support.low_bit import Layers
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, legal_tilings

BOARD = load("zcu104")


RATED = 19.2
"""The peak rate of the DDR in GB/s. The fractions in ``SHARES`` of it carry data."""


TRACED_ARRAY = Array(5, 16, 8, row_depth=1024, weight_depth=2048, kept_depth=512, chunk=16, channel_tiles=8)


TRACED = {
    "odd": Builder(3, 74, 102).conv(16, 3).pool().conv(40, 3).network(),
    "five": Builder(3, 96, 80).conv(16, 5).conv(32, 5, 2).pool().network(),
    "planes": Builder(13, 74, 102).conv(16, 3).pool().conv(40, 3).network(),
    "connected": Builder(3, 40, 40).conv(24, 3, 2).conv(16, 1).pool().dense(120).network(),
    "batch of two": Builder(3, 80, 80).conv(16, 3, 2).pool().conv(64, 3).conv(80, 1).conv(40, 1).network(),
    "batch of five": Builder(3, 20, 22).conv(20, 3, 2).dense(120).network(),
}


SHARES = {"odd": (0.85, 0.4, 0.15), "five": (0.85, 0.4, 0.15), "connected": (0.85, 0.4), "planes": (0.85, 0.4)}


SHARES |= {"batch of two": (0.85, 0.4), "batch of five": (0.85, 0.4)}
"""The fractions of the DDR's peak rate to trace, per network. The last is below the rate of every board."""


FOUR_PORTS = Array(
    16, 24, 8, 2, 4, 1, row_depth=2048, weight_depth=4096, kept_depth=512, chunk=16, weight_words=2, channel_tiles=32
)


SHORT_OF_DDR = {
    "rows of stride 2": (Builder(3, 112, 112).conv(16, 3).conv(24, 3, 2).network(), (0.85, 0.4, 0.2)),
    "weights of the next layer": (Builder(3, 48, 48).conv(16, 3).conv(24, 3, 2).dense(64).network(), (0.85, 0.2)),
    "the port with most rows": (Builder(3, 80, 40).conv(40, 1, 2).conv(29, 3, 2).network(), (0.2,)),
    "rows of the next tile": (Builder(3, 64, 112).conv(24, 1).pool().conv(29, 3).pool().network(), (0.2,)),
    "a map that ends above its tile": (Builder(3, 40, 224).conv(29, 1, 2).pool().conv(24, 3, 2).network(), (0.2,)),
    "what is left of a high map": (Builder(3, 195, 40).conv(29, 1).conv(40, 3, 2).network(), (0.2,)),
    "a pool between two chunks": (Builder(3, 80, 40).conv(29, 1).pool().conv(16, 1).dense(48).network(), (0.85,)),
}


JOINING = Array(
    5, 16, 8, row_depth=1024, weight_depth=2048, kept_depth=512, chunk=32, channel_tiles=8, upscale=2, windows=True
)


LARGE_WINDOWS = replace(JOINING, columns=8)


LARGE_WINDOW = Builder(16, 5, 10).conv(24, 1).window(9).conv(16, 1).network()
"""A network whose pool takes one cycle of the array for each of its 81 taps."""


ASKED_BETWEEN = Builder(16, 5, 7).conv(128, 1).conv(128, 1).conv(128, 1).network()
"""A network whose weight tiles take at least as long to load as the array's steps."""


APART = Layers(3, 40, 44, "INT8", "INT8").conv(16, 1).spaced(24, 3, 6).spaced(16, 3, 12).network("apart")
"""A network of dilated convolutions, whose rows are read in several parts."""


HELD_UP = {
    "a chunk that ends in a round of one burst": Builder(16, 20, 26).conv(8, 1).upsample().network(),
    "elements before an array that is blocked": Builder(16, 40, 64).conv(16, 1).conv(16, 1).conv(32, 1).network(),
    "chunks of one result each": Builder(16, 4, 4).dense(120).dense(40).network(),
    "places of a window": Builder(16, 20, 20).conv(32, 1).window(5).conv(16, 1).network(),
}


def in_columns(schedule: SystolicSchedule, number: int, count: int) -> SystolicSchedule:
    """Return the schedule with layer ``number`` in ``count`` column tiles, with all its weights resident."""
    legal = legal_tilings(schedule.network, schedule.array)[number]
    order = ("weights-resident", True)
    (chosen,) = (way for way in legal if way.columns.count == count and (way.order, way.overlap) == order)
    ways = list(schedule.tilings)
    ways[number] = chosen
    return schedule_of(schedule.network, schedule.array, ways)


DEEP_ROWS = replace(TRACED_ARRAY, row_depth=4096)


def pooled_in_columns() -> SystolicSchedule:
    """Return a schedule with a separate pool, because another layer also reads its input, in two column tiles."""
    network = Builder(3, 40, 100).conv(64, 1).pool().at(1).conv(8, 1, 2).network()
    return in_columns(first_fit(network, DEEP_ROWS), 1, 2)


WIDE_PICTURES = Array(12, 16, 16, 4, 2, 2, row_depth=2048, weight_depth=512, kept_depth=64, chunk=40, channel_tiles=1)


def of_a_wide_picture() -> SystolicSchedule:
    """Return a schedule of the first layer of many detectors, with its image in three column tiles."""
    return in_columns(first_fit(Builder(3, 448, 640).conv(16, 3, 2).network(), WIDE_PICTURES), 0, 3)
