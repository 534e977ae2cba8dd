"""Search problems for networks that are not lowered yet."""

from __future__ import annotations

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.search.problem import Problem, problem_of
from scheduler.systolic.search.space import Space, space_for
from scheduler.systolic.workload import workload_of


def problem(network: QuantizedNetwork, board: Board, space: Space | None = None, batch: int = 1) -> Problem:
    """Return the search problem of ``network``. By default, its space is all that the engine supports."""
    return problem_of(workload_of(network, batch), board, space)


def space_of(network: QuantizedNetwork, board: Board, bits: int | None = None, batch: int = 1) -> Space:
    """Return the space of all arrays that the engine supports on the board for ``network``."""
    return space_for(workload_of(network, batch), board, bits)
