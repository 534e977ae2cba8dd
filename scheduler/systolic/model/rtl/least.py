"""What a pass of the engine in SystemVerilog takes at least, of which the search makes its bounds."""

from __future__ import annotations

from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.model.rtl.stages import ANSWERED, ASKED, ENDED, LEFT, LOADED, PASS_TAKEN
from scheduler.systolic.shape import LayerShape, moved_together, rows_in

LEAST_SUMS, LEAST_RESULTS = 7, 9
"""stages_of: of the shortest chains that there are, beside the skew of the rows; of the simplest requantiser."""


def least_fill(shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
    """Cycles before the array's first step: see ``_first_rows``. map_ports: at most; row_words: at least, of all column
    tiles together."""
    strides = ceil_div(rows_in(shape, rows, 1), shape.phases)
    loads = ceil_div(strides, moved_together(shape, rows) if shape.from_chip else map_ports) * shape.phases * row_words
    if shape.from_chip:
        return 1 + loads + LOADED
    padding = 0 if shape.stride == 1 else min(shape.pad_top, shape.phases) * row_words
    return ASKED + ddr.read_latency + ANSWERED + max(0, loads - padding) + LOADED


def least_drain(shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
    """Cycles after the array's last step: see ``_end``. A group of sums and a word of results are one cycle each."""
    drained = LEAST_SUMS + rows // 2 + 1 + LEAST_RESULTS + 1 + LEFT + ENDED
    return drained if shape.to_chip else drained + ddr.write_latency


def least_weights(cycles: int, ddr: DdrTiming) -> int:
    """Cycles before the array can take the last of the weights that arrive in so many: see ``load_weights``."""
    return ASKED + ddr.read_latency + ANSWERED + cycles


def program_cycles(_: DdrTiming) -> int:
    """Of a pass, that is read while the one before runs."""
    return PASS_TAKEN
