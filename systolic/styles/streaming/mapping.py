"""A network on a board as a folding, priced once: everything that is told of it, and generated from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boards.board import Board
from boards.errors import ChoiceError, InvalidValueError, shown
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import DdrRate
from scheduler.hardware.energy import SOURCE as ENERGY_SOURCE
from scheduler.hardware.energy import Activity, Energy, energy
from scheduler.streaming.area.total import converter_count, fifo_bits, usage_by_block
from scheduler.streaming.folding_file import to_json
from scheduler.streaming.graph import Fold
from scheduler.streaming.model.cycles import block_cycles
from scheduler.streaming.model.energy import block_activity, dma_activity
from scheduler.streaming.result import FoldingResult
from systolic.styles.options import HardwareOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATED = "FIFOs as estimated"
"""What a proof covers before a design's trace has gone back into the search."""


@dataclass(frozen=True, eq=False)
class StreamingMapping:
    """One folding on one board. folded: with what it takes of the board, estimated. hardware: the memory and the
    budget that it was folded for. counted: the FIFOs that its proof covers, in words. fps: frames a second that were
    asked for."""

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

    @cached_property
    def block_activities(self) -> tuple[Activity, ...]:
        """What each block does for one frame; the DMA's is the frame's alone."""
        folding = self.folded.folding
        usages = usage_by_block(folding, self.board)
        cycles = (block_cycles(folding.graph, index, fold) for index, fold in enumerate(folding.folds))
        return tuple(block_activity(*pair) for pair in zip(usages, cycles, strict=True))

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

    def text(self) -> str:
        """A table for a terminal, and what it sums up to."""
        from systolic.styles.streaming.report import mapping_text

        return mapping_text(self)

    __repr__ = text

    def page(self) -> str:
        """One self-contained HTML file."""
        from systolic.styles.streaming.report import mapping_page

        return mapping_page(self)

    def to_json(self) -> str:
        """The folding alone, for an editor, and for the option ``folding``."""
        return to_json(self.folded.folding, self.ddr)

    def figure(self, kind: str) -> Figure:
        """Draw "cycles" or "resources", one bar per block; ChoiceError for another kind."""
        from systolic.styles.streaming import figures

        if kind not in figures.OF_MAPPING:
            raise ChoiceError("the kind of a picture of a folding", kind, tuple(figures.OF_MAPPING))
        return figures.OF_MAPPING[kind](self)

    def _repr_html_(self) -> str:
        from systolic.styles.streaming.report import mapping_html

        return mapping_html(self)


PLAIN = "one value a cycle"


def fold_text(fold: Fold) -> str:
    """A fold in words: what differs from doing one value at a time."""
    standard = Fold()
    parts = [f"{name} {value}" for name, value in vars(fold).items() if value != getattr(standard, name)]
    return ", ".join(parts) or PLAIN


def fold_of(text: str) -> Fold:
    """Return the fold that ``fold_text`` put into words; InvalidValueError for other words."""
    standard = vars(Fold())
    pairs = [part.partition(" ")[::2] for part in text.split(", ")] if text != PLAIN else []
    try:
        return Fold(**{name: type(standard[name])(value) for name, value in pairs})
    except (KeyError, ValueError) as error:
        raise InvalidValueError("a fold", text, f"in the form {shown(fold_text(Fold(pe=2)))}") from error
