"""What is carried from tile to tile of the engine in SystemVerilog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.systolic.engines.rtl.stages import LOADED, STORED
from scheduler.systolic.model.grid import Times
from scheduler.systolic.model.progress import Progress


@dataclass(frozen=True, eq=False)
class RtlState(Progress):
    """emptied: when the last chunk that arrange has taken leaves it; emptied_before: the chunk before that one.
    columns: that the array has given so far. requantised: when the requantisers' constants are there. rows_asked: words
    of rows that a port has been asked for.
    """

    emptied: Times
    emptied_before: Times
    columns: Times
    requantised: Times
    rows_asked: Times

    word_to_step: ClassVar[tuple[int, int]] = (LOADED, STORED)
