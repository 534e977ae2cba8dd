"""The goal and the result of a folding search."""

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
    """The goal of a folding search: a frame rate or the highest one, with the clock and the share of the board.

    Only weights in DDR depend on ``clock_mhz`` and ``rate``.

    Attributes:
        cycles: The maximum cycles per frame, for a search for the least area. With None, the search finds the highest
            frame rate within the budget.
        clock_mhz: The pipeline's clock.
        budget: The share of the board that the folding may take.
        rate: The bandwidth of the DDR. With None, the bandwidth in the board's file.
        traced: The FIFOs of an earlier trace. FIFOs that it does not contain have estimated depths.
    """

    cycles: int | None
    clock_mhz: float = 200.0
    budget: Budget = field(default_factory=Budget)
    rate: DdrRate | None = None
    traced: TracedStreams = UNTRACED


@dataclass(frozen=True, eq=False)
class FoldingResult:
    """A folding with its resources, its cycles per frame, and how far it is proven to be the best.

    Attributes:
        folding: The folding.
        usage: The resources that the folding takes.
        area: The area of ``usage`` in 10⁻⁹ boards (area/budget.py).
        cycles: The cycles per frame.
        fits: Whether the resources and the DDR traffic are within the goal's budget.
        state: "optimal" for a proven optimum, "feasible" for a proof within ``gap`` and ``rate_gap``, "heuristic" for a
            search without a proof, "given" for no search.
        gap: The largest possible saving of area, as a fraction of ``area``. NaN without a proof.
        seconds: The duration of the search.
        rate_gap: The largest possible saving of cycles, as a fraction of ``cycles``, if the goal was the highest rate.
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
        """The area of the folding as a fraction of the board."""
        return self.area / BOARD

    def frames_per_second(self, clock_mhz: float) -> float:
        """Return the modelled frame rate of the folding at ``clock_mhz``."""
        return clock_mhz * 1e6 / self.cycles


def evaluate(graph: g.StreamGraph, folds: Sequence[g.Fold], board: Board, goal: Goal) -> FoldingResult:
    """Return the folding with ``folds``, one per block of ``graph``, with its resources and cycles, without a search.

    Raises:
        MismatchError, SeveralFaultsError: ``check`` found that the folds are not legal.
    """
    folding = check(g.StreamingFolding(graph, tuple(folds), depths(graph, folds)))
    total = usage(folding, board, goal.traced)
    cycles = frame_cycles(graph, folds)
    within = fits(total, limits(board, goal.budget)) and total.ddr_bits <= ddr_limit(board, goal, cycles)
    return FoldingResult(folding, total, area(total, board), cycles, within)


def ddr_limit(board: Board, goal: Goal, cycles: int) -> int:
    """Return the bits of weights that the pipeline may read from DDR in ``cycles`` cycles within the goal's budget."""
    return planned_bits(goal.rate or ddr_rate(board), goal.budget.ddr, cycles, goal.clock_mhz)
