"""A network on a board as a folding, priced once: its figures, and its JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from boards.board import Board
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrRate
from scheduler.hardware.energy import SOURCE as ENERGY_SOURCE
from scheduler.hardware.energy import Activity, Energy, energy
from scheduler.streaming.area.total import converter_count, fifo_bits, usage_by_block
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.energy import block_activity, dma_activity
from scheduler.streaming.result import FoldingResult
from systolic.styles.options import HardwareOptions

ESTIMATED = "FIFOs as estimated"
"""What a proof covers before a design's trace has gone back into the search."""


@dataclass(frozen=True, eq=False)
class PricedFolding:
    """One folding on one board.

    Attributes:
        network: The network.
        board: The board.
        clock: The target clock.
        folded: The folding with its resources, estimated.
        hardware: The memory and the budget that it was folded for.
        counted: The FIFOs that its proof covers, in words.
        fps: The frames per second that were asked for.
    """

    network: QuantizedNetwork
    board: Board
    clock: Clock
    folded: FoldingResult
    hardware: HardwareOptions = field(default_factory=HardwareOptions)
    counted: str = ESTIMATED
    fps: float | None = None

    @property
    def batch(self) -> int:
        """A pipeline takes frame after frame, and no weights pass."""
        return 1

    @property
    def ddr(self) -> DdrRate:
        """The memory that weights come from."""
        return self.hardware.ddr_rate(self.board)

    @property
    def fits(self) -> bool:
        """The board, as estimated."""
        return self.folded.fits

    @property
    def clock_mhz(self) -> float:
        return self.clock.mhz

    @property
    def frames_per_second(self) -> float:
        """Modelled, at the target clock."""
        return self.folded.frames_per_second(self.clock.mhz)

    @property
    def cycles_per_frame(self) -> int:
        """Modelled."""
        return self.folded.cycles

    @property
    def title(self) -> str:
        return f"{self.network.name} as a streaming pipeline on {self.board.title}"

    @property
    def converters(self) -> int:
        """Width converters between blocks."""
        return converter_count(self.folded.folding)

    @property
    def fifo_bits(self) -> int:
        """Of all FIFOs, as the search estimates them."""
        return fifo_bits(self.folded.folding)

    @property
    def gap(self) -> float | None:
        """How far from the best it may be, as a share; None where nothing is proven."""
        return self.folded.gap if math.isfinite(self.folded.gap) else None

    @property
    def proof(self) -> str:
        """What the search has proven, in words, and with which FIFOs."""
        proofs = {
            "optimal": f"proven cheapest with {self.counted}",
            "feasible": f"within {self.folded.gap:.1%} of the best with {self.counted}",
            "given": "not searched for",
        }
        return proofs.get(self.folded.state, "nothing proven")

    @property
    def estimate(self) -> Mapping[str, int]:
        """Resources by name, as the manifest has them."""
        used = self.folded.usage
        return {
            "dsp": used.dsp,
            "lut": used.lut,
            "lutram": used.lutram,
            "bram36": -(-used.bram18 // 2),
            "uram": used.uram,
        }

    @property
    def block_cycles(self) -> list[int]:
        """Cycles per frame of every block, modelled."""
        graph, folds = self.folded.folding.graph, self.folded.folding.folds
        return [block_cycles(graph, index, fold) for index, fold in enumerate(folds)]

    @property
    def block_usages(self) -> list[StreamingUsage]:
        """Resources of every block with the converters and FIFOs before it; together those of the whole folding."""
        return usage_by_block(self.folded.folding, self.board)

    @cached_property
    def block_activities(self) -> tuple[Activity, ...]:
        """What each block does for one frame; the DMA's is the frame's alone."""
        return tuple(block_activity(*pair) for pair in zip(self.block_usages, self.block_cycles, strict=True))

    @property
    def block_energies(self) -> tuple[Energy, ...]:
        """Of a frame, block by block."""
        return tuple(energy(activity, self.board.family) for activity in self.block_activities)

    @property
    def energy(self) -> Energy:
        """Of a frame: an estimate with bounds."""
        moved = dma_activity(self.folded.folding.graph)
        return energy(sum(self.block_activities, moved), self.board.family)

    def values(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "network": self.network.name,
            "board": self.board.name,
            "clock_mhz": self.clock_mhz,
            "ddr": asdict(self.ddr),
            "cycles": self.cycles_per_frame,
            "frames_per_second": round(self.frames_per_second, 2),
            **asdict(self.folded.usage),
            "converters": self.converters,
            "fifo_bits": self.fifo_bits,
            "energy": {
                **self.energy.values(),
                "source": ENERGY_SOURCE,
                "blocks": [
                    {"name": block.name, **joules.values()}
                    for block, joules in zip(self.folded.folding.graph.blocks, self.block_energies, strict=True)
                ],
            },
            "area": self.folded.boards,
            "fits": self.fits,
            "state": self.folded.state,
            "gap": self.gap,
            "proof": self.proof,
            "seconds": round(self.folded.seconds, 3),
        }
