"""A schedule with its modelled cost, as text, as a page, as figures and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boards.board import Board
from boards.errors import ChoiceError
from scheduler.hardware.budget import Budget, room
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.placement import place
from scheduler.systolic.model.clock import check_dsp_clock
from scheduler.systolic.model.cost import cost
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.schedule_file import to_json
from scheduler.systolic.search.search import Proof
from systolic.styles.systolic.priced import PricedSchedule
from systolic.styles.systolic.report import mapping_html, mapping_page, mapping_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class SystolicMapping(PricedSchedule):
    """A schedule with its modelled cost, which can be printed, drawn and saved as JSON."""

    def text(self) -> str:
        """Return the tables that ``systolic schedule`` prints."""
        return mapping_text(self)

    __repr__ = text

    def page(self, front: Sequence[SystolicMapping] = ()) -> str:
        """Return the schedule's report as one self-contained HTML file, with the Pareto front if given."""
        return mapping_page(self, front)

    def to_json(self) -> str:
        """Return the schedule as JSON. A user can edit it and pass it to the option ``schedule``."""
        return to_json(self.schedule, self.cost.ddr.rate)

    def figure(self, kind: str, layer: str | None = None) -> Figure:
        """Draw the cycles, the roofline, the buffers, or the tiling of one layer.

        Args:
            kind: "cycles", "roofline", "buffers" or "tiling".
            layer: The name of the layer whose tiling is drawn; None for the first layer.

        Raises:
            ChoiceError: The kind is another one, or the layer does not exist.
        """
        from systolic.styles.systolic import figures  # here, because importing matplotlib is slow
        from systolic.styles.systolic.tiling_picture import tiling

        if kind == "tiling":
            return tiling(self, self._layer_index(layer))
        if kind not in figures.OF_MAPPING:
            raise ChoiceError("the kind of a picture of a schedule", kind, (*figures.OF_MAPPING, "tiling"))
        return figures.OF_MAPPING[kind](self)

    def _layer_index(self, name: str | None) -> int:
        names = [layer.shape.name for layer in self.cost.layers]
        if name is not None and name not in names:
            raise ChoiceError("the layer", name, names)
        return 0 if name is None else names.index(name)

    def _repr_html_(self) -> str:
        return mapping_html(self)


def price(
    schedule: SystolicSchedule,
    board: Board,
    ddr: DdrTiming,
    proof: Proof | None = None,
    budget: Budget = Budget(),  # noqa: B008 (frozen)
) -> SystolicMapping:
    """Return the schedule on a board with its modelled cycles, DDR traffic and estimated resources.

    The buffers are placed within the budget. If they do not fit there, they are placed on the whole board.

    Args:
        schedule: The schedule.
        board: The board.
        ddr: The timing of the board's memory at the clock of the array.
        proof: The record of the search that found the schedule; None if no search did.
        budget: The share of the board that the design may use.

    Raises:
        SystolicError: ``check_schedule`` finds a broken rule, or ``check_dsp_clock`` a clock too fast for the DSPs.
    """
    check_schedule(schedule)
    check_dsp_clock(board, ddr.clock_mhz, schedule.array.dsp_clock)
    allowed = room(board, budget)
    placement, usage = place(schedule.array, allowed)
    if not usage.fits(allowed):
        placement, usage = place(schedule.array, board)
    clock = board.nearest_clock(ddr.clock_mhz)
    return SystolicMapping(board, clock, schedule, cost(schedule, ddr), usage, placement, proof)
