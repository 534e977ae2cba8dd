"""What both styles tell of traced time: the memory that a trace is solved for, and a line a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from host.contract.parts import Manifest
from systolic.trace.timing import Memory, ProcessTiming


@dataclass(frozen=True)
class LayerTime:
    """cycles: traced, all passes of the layer. modelled_cycles: the scheduler's formula for the same, at the clock and
    the memory that the design was made for."""

    name: str
    cycles: int
    macs: int
    efficiency: float
    modelled_cycles: int


class Described(Protocol):
    """A generated design, opened: its manifest is all that is asked of it."""

    @property
    def manifest(self) -> Manifest: ...


def board_memory(design: Described, efficiency: float | None = None, gbps: float | None = None) -> Memory:
    """The memory that the design was made for, unless the arguments say otherwise."""
    made_for = design.manifest.ddr
    return Memory(
        peak_gbps=made_for.gbps if gbps is None else gbps,
        efficiency=made_for.efficiency if efficiency is None else efficiency,
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
