"""Places every DSP cascade of an engine on the die, and groups the places into the Pblocks of floorplan.xdc.

A cascade uses neighbouring DSPs of one column. PCOUT of a DSP reaches PCIN of the next one by a dedicated wire, so that
Vivado has to place a cascade in one piece. The plan keeps each cascade within a clock region, so that its DSPs have one
leaf clock, and neighbouring cascades of the array close to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boards.errors import DoesNotFitError
from hls_templates.vendor.board_facts import FloorplanFacts


@dataclass(frozen=True)
class Chain:
    """A cascade of DSPs.

    Attributes:
        cell: The cell that has its DSPs and no other, relative to the IP.
        length: The number of its DSPs.
    """

    cell: str
    length: int


@dataclass(frozen=True)
class Place:
    """The sites of a chain: ``length`` sites of column ``column``, from row ``first`` upwards."""

    chain: Chain
    column: int
    first: int


@dataclass(frozen=True)
class Block:
    """A run of DSP sites of one column, which Vivado calls a Pblock, and the chains inside.

    Attributes:
        column: The X of the sites.
        first: The Y of the lowest site.
        last: The Y of the highest site.
        cells: The cells of the chains.
    """

    column: int
    first: int
    last: int
    cells: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"dsp_x{self.column}y{self.first}"


def runs(facts: FloorplanFacts) -> list[tuple[int, int]]:
    """Return the column and the lowest row of each run of ``facts.cascade`` DSPs, in the order in which they fill.

    The order is a snake through the rows of clock regions, so that neighbours in the order are neighbours on the die.
    """
    ordered = sorted(facts.region_columns, key=lambda one: (one[1], one[0] if one[1] % 2 == 0 else -one[0]))
    region, cascade = facts.region, facts.cascade
    return [(column, row * region + at) for column, row in ordered for at in range(0, region - cascade + 1, cascade)]


def place(chains: Sequence[Chain], facts: FloorplanFacts) -> tuple[Place, ...]:
    """Return the sites of every chain, in the order of the chains, which all have the same length.

    Raises:
        DoesNotFitError: There are more chains than places for chains of this length.
    """
    length = max(chain.length for chain in chains)
    runs_ = runs(facts)
    each = facts.cascade // length
    if len(chains) > each * len(runs_):
        within = "a clock region" if facts.cascade == facts.region else "half a clock region"
        raise DoesNotFitError(
            f"a floorplan with DSP chains within {within} ({facts.cascade} DSPs of a column)",
            f"chains of {length} DSPs",
            len(chains),
            each * len(runs_),
            remedy="take a smaller array, or build without floorplan=on",
        )
    slots = [(column, first + k * length) for column, first in runs_ for k in range(each)]
    return tuple(Place(chain, *slot) for chain, slot in zip(chains, slots, strict=False))


def blocks(places: Sequence[Place], facts: FloorplanFacts) -> tuple[Block, ...]:
    """Return a block per run that has chains. The placer may permute the chains of a block."""
    filled: dict[tuple[int, int], list[str]] = {}
    for one in places:
        run = (one.column, one.first // facts.cascade * facts.cascade)
        filled.setdefault(run, []).append(one.chain.cell)
    return tuple(
        Block(column, first, first + facts.cascade - 1, tuple(cells)) for (column, first), cells in filled.items()
    )
