"""The share of a board that a design may take. The interconnect and the router need the rest, because a full device
does not meet its timing."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from boards.board import Board
from boards.errors import RangeError


@dataclass(frozen=True)
class Budget:
    """The shares of a board's resources that a design may take, each above 0 and at most 1.

    Attributes:
        lut: Share of the LUTs, and of the LUTs that can be memory. The DMA, the interconnect and the router take the
            rest. Designs above this share seldom meet their clock (FINN stops at 0.7).
        dsp: Share of the DSPs. DSPs have columns of their own, so nearly all can be used. A few stay free for
            multipliers of the interconnect.
        bram: Share of the BRAMs, which have columns of their own too. A few stay free for buffers of the interconnect.
        uram: Share of the URAMs, for the same reasons.
        ddr: Share of the sustained DDR bandwidth for weights that a streaming pipeline reads from DDR. One late word
            stalls the whole pipeline, so images, results and the processor get the rest.
    """

    lut: float = 0.8
    dsp: float = 0.97
    bram: float = 0.95
    uram: float = 0.95
    ddr: float = 0.7

    def __str__(self) -> str:
        return ", ".join(f"{share:.0%} {name.upper()}" for name, share in self.fabric.items())

    @property
    def fabric(self) -> dict[str, float]:
        """The budget's shares of DSPs, LUTs, BRAMs and URAMs, without the DDR share, by the names that the command-line
        options use."""
        return {name: getattr(self, name) for name in ("dsp", "lut", "bram", "uram")}


def check_budget(budget: Budget) -> Budget:
    """Return ``budget`` unchanged. Raise RangeError if one of its shares is not above 0 and at most 1."""
    for field in fields(budget):
        share = getattr(budget, field.name)
        if not 0 < share <= 1:
            raise RangeError(f"--{field.name}-share, a share of the board,", share, 0, 1, exclusive=True)
    return budget


def room(board: Board, budget: Budget) -> Board:
    """Return a copy of the board with only the DSPs, LUTs, BRAMs and URAMs that ``budget`` allows, for a search to use
    as limits.

    At least one of each primitive of the board remains, because areas are divided by these counts.
    """

    def limit(count: int, share: float) -> int:
        return min(count, max(1, int(count * share)))

    resources = board.resources
    limits = replace(
        resources,
        lut=limit(resources.lut, budget.lut),
        lutram=limit(resources.lutram, budget.lut),
        bram36=limit(resources.bram36, budget.bram),
        uram=limit(resources.uram, budget.uram),
        dsp=limit(resources.dsp, budget.dsp),
    )
    return replace(board, resources=limits)
