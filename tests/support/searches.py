"""Problems of a network that is not lowered yet, as tests ask for them."""

from __future__ import annotations

from boards.board import Board
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.search.problem import Problem, problem_of
from scheduler.systolic.search.space import Space, space_for
from scheduler.systolic.workload import workload_of


def problem(network: QuantizedNetwork, board: Board, space: Space | None = None, batch: int = 1) -> Problem:
    """Return the problem of ``network`` in batches of so many frames; without a space over all that is built."""
    return problem_of(workload_of(network, batch), board, space)


def space_of(network: QuantizedNetwork, board: Board, bits: int | None = None, batch: int = 1) -> Space:
    """Return all that the engine builds on the board for ``network``."""
    return space_for(workload_of(network, batch), board, bits)
