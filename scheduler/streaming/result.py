"""What is asked of a folding search, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from boards.board import Board
from scheduler.hardware.budget import Budget
from scheduler.hardware.ddr import DdrRate, ddr_rate, planned_bits
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import BOARD, area, fits, limits
from scheduler.streaming.area.total import usage
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.cycles import frame_cycles
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams, depths
from scheduler.streaming.rules import check


@dataclass(frozen=True)
class Goal:
    """cycles: a frame at most, with least resources; None for the highest frame rate in the budget.

    clock_mhz, rate: what weights from DDR are counted with; nothing else depends on them. rate: the board's where it is
    None. traced: what FIFOs are counted with; as estimated where there was no trace.
    """

    cycles: int | None
    clock_mhz: float = 200.0
    budget: Budget = field(default_factory=Budget)
    rate: DdrRate | None = None
    traced: TracedStreams = UNTRACED


@dataclass(frozen=True, eq=False)
class FoldingResult:
    """A folding and what it takes of a board. area: in 10⁻⁹ boards (area/budget.py).

    state: "optimal", "feasible" (found, proven to within ``gap`` of the best), "heuristic" (nothing proven), "given".
    gap: of the area, and with the highest frame rate as goal ``rate_gap`` of the cycles.
    """

    folding: g.StreamingFolding
    usage: StreamingUsage
    area: int
    cycles: int
    fits: bool
    state: str = "given"
    gap: float = float("nan")
    seconds: float = 0.0
    rate_gap: float = 0.0

    @property
    def boards(self) -> float:
        """The area, in boards."""
        return self.area / BOARD

    def frames_per_second(self, clock_mhz: float) -> float:
        """Modelled, at a clock."""
        return clock_mhz * 1e6 / self.cycles


def evaluate(graph: g.StreamGraph, folds: Sequence[g.Fold], board: Board, goal: Goal) -> FoldingResult:
    """Check and count ``folds`` as they are. Raises as ``check`` does."""
    folding = check(g.StreamingFolding(graph, tuple(folds), depths(graph, folds)))
    total = usage(folding, board, goal.traced)
    cycles = frame_cycles(graph, folds)
    within = fits(total, limits(board, goal.budget)) and total.ddr_bits <= ddr_limit(board, goal, cycles)
    return FoldingResult(folding, total, area(total, board), cycles, within)


def ddr_limit(board: Board, goal: Goal, cycles: int) -> int:
    """Bits that DDR brings in ``cycles``."""
    return planned_bits(goal.rate or ddr_rate(board), goal.budget.ddr, cycles, goal.clock_mhz)
