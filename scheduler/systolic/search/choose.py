"""The schedule that ``generate`` takes where the user gives none: the most frames a second, proven."""

from __future__ import annotations

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.search.search import SearchResult, search, search_clocks
from scheduler.systolic.search.space import Request


def choose(network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1) -> SearchResult:
    """Best at ``clock_mhz``, at any clock of the board where it is None. Raises ScheduleError where nothing fits."""
    request = Request(batch=batch)
    if clock_mhz is None:
        return search_clocks(network, board, request)
    return search(network, board, ddr_timing(board, clock_mhz), request)
