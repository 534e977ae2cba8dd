"""A network on a board as a schedule: its figures, how it is shown, and its file."""

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
    """A priced schedule that is shown as text, as a page and as pictures, and saved as a file."""

    def text(self) -> str:
        """Return tables for a terminal."""
        return mapping_text(self)

    __repr__ = text

    def page(self, front: Sequence[SystolicMapping] = ()) -> str:
        """Return one self-contained HTML file. front: see ``exploration.pareto_front``."""
        return mapping_page(self, front)

    def to_json(self) -> str:
        """Return the schedule alone, for an editor and for the option ``schedule``."""
        return to_json(self.schedule, self.cost.ddr.rate)

    def figure(self, kind: str, layer: str | None = None) -> Figure:
        """Draw "cycles", "roofline", "buffers", or "tiling" of one ``layer``, the first one if it is None.

        Raises ChoiceError for another kind, and for a layer that does not exist.
        """
        from systolic.styles.systolic import figures  # matplotlib takes long to import
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
    """``schedule`` on ``board`` with the memory at its clock. Raises the errors of ``check_schedule`` for a rule that
    it breaks, and those of ``check_dsp_clock`` for a clock that is too fast for the DSPs.

    It is placed within the budget, or on the whole board where that is too small.
    """
    check_schedule(schedule)
    check_dsp_clock(board, ddr.clock_mhz, schedule.array.dsp_clock)
    allowed = room(board, budget)
    placement, usage = place(schedule.array, allowed)
    if not usage.fits(allowed):
        placement, usage = place(schedule.array, board)
    clock = board.nearest_clock(ddr.clock_mhz)
    return SystolicMapping(board, clock, schedule, cost(schedule, ddr), usage, placement, proof)
