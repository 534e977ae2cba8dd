"""How much of a board a design may take. What is left is for the interconnect and the router: a full device does not
close its timing."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from boards.board import Board
from boards.errors import RangeError


@dataclass(frozen=True)
class Budget:
    """Shares of a board that a design may take; of LUTs that are memory the same as of all LUTs.

    lut: what is left is for the DMA, the interconnect and the router; designs above that seldom meet their clock (FINN
    stops at .7). dsp, bram, uram: they stand in columns of their own and can nearly be filled, but one stray product or
    buffer of the interconnect must still find its place.
    ddr: of what the DDR sustains, for weights that stream into a pipeline. It stalls as a whole when a word is late, so
    there is room for pictures, results and the processor.
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
        """All but the DDR, by the names that options have."""
        return {name: getattr(self, name) for name in ("dsp", "lut", "bram", "uram")}


def check_budget(budget: Budget) -> Budget:
    """Return the budget itself; raise RangeError if a part of it is not a share."""
    for field in fields(budget):
        share = getattr(budget, field.name)
        if not 0 < share <= 1:
            raise RangeError(f"--{field.name}-share, a share of the board,", share, 0, 1, exclusive=True)
    return budget


def room(board: Board, budget: Budget) -> Board:
    """The board as large as a design may be: a search that is given it keeps to the budget. A share leaves at least one
    of each primitive that the board has, so that an area can be given in shares of it."""

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
