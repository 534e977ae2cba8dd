"""The estimated DSPs of the C++ array's processes. Memories are not included: parameters.h has their estimates."""

from __future__ import annotations

from boards import board as board_room
from scheduler.systolic.area.resources import PRODUCTS, used_by
from scheduler.systolic.array import Array
from systolic.styles.estimates import Estimates
from systolic.styles.systolic.simulate import SystolicDesign


def estimates(design: SystolicDesign) -> Estimates:
    """Return the estimated DSPs of the processes: each row of PEs, and the requantisers if they use DSPs."""
    array, board = Array(**vars(design.manifest.array)), board_room.of_design(design.path, design.manifest.board)
    products = used_by(PRODUCTS, array, "dsp", board).dsp
    row = array.mac_dsps // array.rows
    in_dsps = array.mac_dsps + products == design.manifest.estimate.dsp
    dsps = {"pe_row": row * (array.rows - 1), "last_pe_row": row, "requantise": products if in_dsps else 0}
    rows = frozenset({"pe_row", "last_pe_row"})
    return Estimates({process: count for process, count in dsps.items() if count}, cascaded=rows)
