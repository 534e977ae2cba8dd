"""The schedule that ``generate`` takes where the user gives none: the most frames a second, proven."""

from __future__ import annotations

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.search.search import Found, search, search_clocks


def choose(network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1) -> Found:
    """Best at ``clock_mhz``, at any clock of the board where it is None. Raises ScheduleError where nothing fits."""
    if clock_mhz is None:
        return search_clocks(network, board, batch=batch)
    return search(network, board, ddr_timing(board, clock_mhz), batch=batch)
