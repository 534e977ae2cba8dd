"""What both styles tell of traced time: the memory that a trace is solved for, and a line a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from boards import board as board_room
from host.contract.parts import Manifest
from scheduler.hardware.ddr import DDR_EFFICIENCY
from systolic.trace.timing import Memory, ProcessTiming


@dataclass(frozen=True)
class LayerTime:
    """cycles: traced, all passes of the layer. modelled_cycles: the scheduler's formula for the same, at the design's
    clock and the board's DDR at its rated speed and DDR_EFFICIENCY."""

    name: str
    cycles: int
    macs: int
    efficiency: float
    modelled_cycles: int


class Described(Protocol):
    """A generated design, opened: its manifest is all that is asked of it."""

    @property
    def manifest(self) -> Manifest: ...


def board_memory(design: Described, efficiency: float | None = None, peak_gbps: float | None = None) -> Memory:
    """The DDR of a design's board, at its rated speed unless ``peak_gbps`` says otherwise."""
    board = board_room.load(design.manifest.board)
    return Memory(
        peak_gbps=board.ddr.peak_gbps if peak_gbps is None else peak_gbps,
        efficiency=DDR_EFFICIENCY if efficiency is None else efficiency,
        read_outstanding=design.manifest.outstanding,
        write_outstanding=design.manifest.outstanding,
        max_burst_beats=design.manifest.burst_words,
    )


def process_values(process: ProcessTiming) -> dict[str, Any]:
    """Cycles of one process, by what it did."""
    return {
        "name": process.name,
        "busy": process.busy,
        "wait_input": process.wait_input,
        "wait_space": process.wait_space,
        "wait_memory": process.wait_memory,
        "idle": process.idle,
    }
