"""What every folder takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from boards.board import Board
from scheduler.hardware.ddr import planned_bits
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.cost import Budget, fits, limits, price, usage
from scheduler.streaming.area.memory import Usage
from scheduler.streaming.joins import depths
from scheduler.streaming.rules import check


@dataclass(frozen=True)
class Goal:
    """cycles: a frame at most, with least resources; None for the highest frame rate in the budget.

    clock_mhz: what weights from DDR are counted with; nothing else depends on it.
    """

    cycles: int | None
    clock_mhz: float = 200.0
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, eq=False)
class Folded:
    """A folding and what it takes. price: in 10⁻⁹ boards (cost.py).

    state: "optimal", "feasible" (found, proven to within ``gap`` of the best), "heuristic" (nothing proven). gap: of
    the price, and with the highest frame rate as goal ``rate_gap`` of the cycles.
    """

    folding: g.StreamingFolding
    usage: Usage
    price: int
    cycles: int
    fits: bool
    state: str
    gap: float
    seconds: float
    rate_gap: float = 0.0

    def fps(self, clock_mhz: float) -> float:
        return clock_mhz * 1e6 / self.cycles


def folded(
    graph: g.StreamGraph,
    folds: Sequence[g.Fold],
    board: Board,
    goal: Goal,
    state: str,
    gap: float,
    seconds: float,
    rate_gap: float = 0.0,
) -> Folded:
    """``folds``, checked and counted."""
    folding = check(g.StreamingFolding(graph, tuple(folds), depths(graph, folds)))
    used = usage(folding, board)
    cycles = lanes.frame_cycles(graph, folds)
    within = fits(used, limits(board, goal.budget)) and used.ddr_bits <= ddr_limit(board, goal, cycles)
    return Folded(folding, used, price(used, board), cycles, within, state, gap, seconds, rate_gap)


def ddr_limit(board: Board, goal: Goal, cycles: int) -> int:
    """Bits that DDR brings in ``cycles``."""
    return planned_bits(board, goal.budget.ddr, cycles, goal.clock_mhz)
