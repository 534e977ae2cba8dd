"""The limits of a board's resources, and the area of a folding as a single number.

The area is the sum of four fractions of the board: LUTs, DSPs, BRAMs and URAMs. A sum is better than the greatest
fraction for two reasons. The search would waste all other resources if only the scarcest one counted. In addition, the
area of a folding is the sum of its blocks' areas, which makes the exact search fast. Foldings above the limits are
excluded at any area.
"""

from __future__ import annotations

from boards.board import Board
from scheduler.hardware.budget import Budget, room
from scheduler.streaming.area.usage import StreamingUsage

BOARD = 1_000_000_000
"""The area of all LUTs of a board, and of all its DSPs, BRAMs or URAMs. Areas are integers, so that sums are exact."""


def available(board: Board) -> StreamingUsage:
    """Return the amounts of LUTs, DSPs, BRAM18s and URAMs of the whole board."""
    resources = board.resources
    return StreamingUsage(resources.lut, resources.lutram, resources.dsp, 2 * resources.bram36, resources.uram)


def limits(board: Board, budget: Budget) -> StreamingUsage:
    """Return the maximum of each board resource that a folding may take under ``budget``."""
    return available(room(board, budget))


def unit_areas(board: Board) -> StreamingUsage:
    """Return the area of one LUT, DSP, BRAM18 and URAM, as a fraction of all of its kind on the board, in 10⁻⁹.

    LUTs used as memory have no area of their own, because they are counted as LUTs already.
    """
    whole_board = available(board)
    return StreamingUsage(
        lut=BOARD // whole_board.lut,
        dsp=BOARD // whole_board.dsp,
        bram18=BOARD // whole_board.bram18,
        uram=BOARD // max(1, whole_board.uram),
    )


def area(usage: StreamingUsage, board: Board) -> int:
    """Return the resources ``usage`` as one number: the sum of the fractions of the board's LUTs, DSPs, BRAMs and
    URAMs, in 10⁻⁹ boards."""
    unit = unit_areas(board)
    return usage.lut * unit.lut + usage.dsp * unit.dsp + usage.bram18 * unit.bram18 + usage.uram * unit.uram


def fits(usage: StreamingUsage, limit: StreamingUsage) -> bool:
    """Return whether ``usage`` is within ``limit`` for every FPGA resource. The bits that are read from DDR are not
    compared."""
    return (
        usage.lut <= limit.lut
        and usage.lutram <= limit.lutram
        and usage.dsp <= limit.dsp
        and usage.bram18 <= limit.bram18
        and usage.uram <= limit.uram
    )
