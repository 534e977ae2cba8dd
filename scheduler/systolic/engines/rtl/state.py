"""The state of the SystemVerilog engine's cycle model, which is carried from tile to tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.systolic.engines.rtl.stages import LOAD_TO_STEP, TILE_TO_STEP
from scheduler.systolic.model.grid import Times
from scheduler.systolic.model.progress import Progress


@dataclass(frozen=True, eq=False)
class RtlState(Progress):
    """The state of the SystemVerilog engine's cycle model after a tile: the cycles at which its modules are done.

    Attributes:
        emptied: Time at which arrange has output the last chunk that it has taken.
        emptied_before: Time at which arrange has output the chunk before that one.
        columns: Output columns that the array has computed so far.
        requantised: Time at which the constants of the requantisers are loaded.
        rows_asked: Words of rows that were requested from a map port so far.
    """

    emptied: Times
    emptied_before: Times
    columns: Times
    requantised: Times
    rows_asked: Times

    word_to_step: ClassVar[tuple[int, int]] = (LOAD_TO_STEP, TILE_TO_STEP)
