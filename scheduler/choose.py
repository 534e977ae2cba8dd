"""The schedule that ``generate`` takes where the user gives none: the most frames a second, proven."""

from __future__ import annotations

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.cost import link_of
from scheduler.search import search
from scheduler.tile import SystolicSchedule


def choose(
    network: QuantizedNetwork, board: Board, clock_mhz: float | None = None, batch: int = 1
) -> SystolicSchedule:
    """Best at ``clock_mhz``, the board's highest clock where it is None. Raises ScheduleError where nothing fits."""
    clock = board.clocks()[-1].mhz if clock_mhz is None else clock_mhz
    return search(network, board, link_of(board, clock), batch=batch).schedule
