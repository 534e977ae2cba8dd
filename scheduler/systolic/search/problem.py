"""What a search solves: a workload on a board, over a space of arrays; the same at every clock and for every goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from boards.board import Board
from boards.facts import Clock
from scheduler.systolic.model.clock import highest_mhz
from scheduler.systolic.search.space import Geometry, Space, geometries, space_for
from scheduler.systolic.search.task import NetworkShapes, network_shapes
from scheduler.systolic.workload import Workload


@dataclass(frozen=True, eq=False)
class Problem:
    """A workload, a board and the arrays among which the best is sought. It is made once and passed down.

    Attributes:
        workload: The network, lowered for the batch.
        board: The board, or what a design may take of it.
        space: The arrays, for the same workload.
    """

    workload: Workload
    board: Board
    space: Space

    @cached_property
    def networks(self) -> Mapping[tuple[int, int], NetworkShapes]:
        """The workload in numbers, by the columns and lanes of an array."""
        return {width: network_shapes(self.workload, width, self.space) for width in self.space.shapes}

    @cached_property
    def geometries(self) -> tuple[Geometry, ...]:
        """The geometries whose PEs the board's DSPs can be."""
        return tuple(geometries(self.space, self.board))

    @property
    def clocks(self) -> tuple[Clock, ...]:
        """The board's clocks at which the DSPs may run too."""
        return self.board.clocks(highest_mhz(self.board, self.space.dsp_clock))


def problem_of(workload: Workload, board: Board, space: Space | None = None) -> Problem:
    """Return the problem; without a space it is all that the engine builds on the board for the workload."""
    return Problem(workload, board, space or space_for(workload, board))
