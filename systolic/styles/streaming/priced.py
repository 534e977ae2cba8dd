"""A folding with its modelled cycles, estimated resources and energy, and its JSON object."""

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
from systolic.styles.ddr_profiles import ProfileRate, profile_rates, profile_values
from systolic.styles.options import HardwareOptions

ESTIMATED = "FIFOs as estimated"
"""The FIFOs that a proof covers if the search had no traced FIFO depths."""


@dataclass(frozen=True, eq=False)
class PricedFolding:
    """A folding on one board, with its modelled cycles, estimated resources and energy.

    Attributes:
        network: The quantised network.
        board: The board.
        clock: The target clock.
        folded: The folding, its estimated resources, and the result of its search.
        hardware: The DDR rate and the budget of the search.
        counted: The FIFOs that the proof of the search covers, in words.
        fps: The requested frames per second; None if no rate was requested.
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
        """The number of frames in a batch, which is 1: a pipeline has no weight loads that a batch could share."""
        return 1

    @property
    def ddr(self) -> DdrRate:
        """The DDR rate at which weights outside the chip are read."""
        return self.hardware.ddr_rate(self.board)

    @property
    def fits(self) -> bool:
        """Return whether the estimated resources are within the budget of the search, or the board after a trace.

        After a trace has sized the FIFOs, the resources must be within the whole board instead.
        """
        return self.folded.fits

    @property
    def clock_mhz(self) -> float:
        return self.clock.mhz

    @property
    def frames_per_second(self) -> float:
        """The modelled frames per second at the target clock."""
        return self.folded.frames_per_second(self.clock.mhz)

    @property
    def ddr_profiles(self) -> tuple[ProfileRate, ...]:
        """The modelled rate at each DDR profile of the board.

        They differ only if weights stay in DDR, and if the DDR cannot read them as fast as the pipeline multiplies.
        """
        return profile_rates(self.board, self._rate_at)

    def _rate_at(self, share: float) -> float:
        bits = self.folded.usage.ddr_bits
        read = DdrRate(self.ddr.gbps, share).sustained_gbps * 8e9 / bits if bits else math.inf
        return min(self.frames_per_second, read)

    @property
    def cycles_per_frame(self) -> int:
        """The modelled cycles per frame: the cycles of the slowest block."""
        return self.folded.cycles

    @property
    def title(self) -> str:
        return f"{self.network.name} as a streaming pipeline on {self.board.title}"

    @property
    def converters(self) -> int:
        """The number of width converters between blocks."""
        return converter_count(self.folded.folding)

    @property
    def fifo_bits(self) -> int:
        """The size of all FIFOs in bits, with the depths that the search estimates."""
        return fifo_bits(self.folded.folding)

    @property
    def gap(self) -> float | None:
        """The greatest share by which the area can be above the optimum; None if the search proved nothing."""
        return self.folded.gap if math.isfinite(self.folded.gap) else None

    @property
    def proof(self) -> str:
        """The words for what the search proved, such as "proven cheapest with FIFOs as estimated"."""
        proofs = {
            "optimal": f"proven cheapest with {self.counted}",
            "feasible": f"within {self.folded.gap:.1%} of the best with {self.counted}",
            "given": "not searched for",
        }
        return proofs.get(self.folded.state, "nothing proven")

    @property
    def estimate(self) -> Mapping[str, int]:
        """{"dsp", "lut", "lutram", "bram36", "uram": estimated number}, as in the manifest."""
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
        """The modelled cycles per frame of each block."""
        graph, folds = self.folded.folding.graph, self.folded.folding.folds
        return [block_cycles(graph, index, fold) for index, fold in enumerate(folds)]

    @property
    def block_usages(self) -> list[StreamingUsage]:
        """The LUTs, DSPs, BRAMs and URAMs of each block with the converters and FIFOs before it."""
        return usage_by_block(self.folded.folding, self.board)

    @cached_property
    def block_activities(self) -> tuple[Activity, ...]:
        """The DSP, memory and FIFO activity of each block in one frame, from which energy is estimated."""
        return tuple(block_activity(*pair) for pair in zip(self.block_usages, self.block_cycles, strict=True))

    @property
    def block_energies(self) -> tuple[Energy, ...]:
        """The estimated energy of each block for one frame, without the DMA."""
        return tuple(energy(activity, self.board.family) for activity in self.block_activities)

    @property
    def energy(self) -> Energy:
        """The estimated energy of one frame in the whole pipeline and the DMA, with bounds."""
        moved = dma_activity(self.folded.folding.graph)
        return energy(sum(self.block_activities, moved), self.board.family)

    def values(self) -> dict[str, Any]:
        """Return the folding's cycles, rate, resources, energy and proof as a JSON object."""
        return {
            "network": self.network.name,
            "board": self.board.name,
            "clock_mhz": self.clock_mhz,
            "clock_link": "target",
            "ddr": asdict(self.ddr),
            **profile_values(self.board, self.ddr, self.ddr_profiles),
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
