"""The problem that a search solves: a network on a board, over a space of arrays.

A problem is the same at every clock and for every goal.
"""

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
    """The input of a schedule search: a lowered network, a board and the arrays to consider.

    Attributes:
        workload: The network, lowered for the batch.
        board: The board. Its resources may be limited to the part that a design may take.
        space: The arrays, for the same workload.
    """

    workload: Workload
    board: Board
    space: Space

    @cached_property
    def networks(self) -> Mapping[tuple[int, int], NetworkShapes]:
        """The sizes of all layers for each width, (columns, lanes), of an array."""
        return {width: network_shapes(self.workload, width, self.space) for width in self.space.shapes}

    @cached_property
    def geometries(self) -> tuple[Geometry, ...]:
        """The sizes rows × columns × lanes of the PE array for which the board has enough DSPs."""
        return tuple(geometries(self.space, self.board))

    @property
    def clocks(self) -> tuple[Clock, ...]:
        """The board's clocks up to its target at which its DSPs work, which run ``dsp_clock`` times as fast."""
        return self.board.target_clocks(highest_mhz(self.board, self.space.dsp_clock))


def problem_of(workload: Workload, board: Board, space: Space | None = None) -> Problem:
    """Return the input of a schedule search. Without ``space``, all arrays that the engine supports on the board are
    considered."""
    return Problem(workload, board, space or space_for(workload, board))
