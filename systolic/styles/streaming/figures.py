"""Pictures of foldings: where the cycles are, and where the board goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boards.board import Board
from scheduler.streaming.area.budget import available
from scheduler.streaming.area.usage import StreamingUsage
from systolic.report.figures import COLOURS, Series, blank, grouped_bars, legend_below, stacked_bars
from systolic.styles.streaming.priced import PricedFolding

RESOURCES = {"lut": COLOURS["compute"], "dsp": COLOURS["rows"], "bram18": COLOURS["ddr"], "uram": COLOURS["saver"]}
"""One colour a resource, the same in every picture."""

SEARCH_COLOURS = (COLOURS["compute"], COLOURS["rows"], COLOURS["ddr"], COLOURS["saver"])


def cycles(mapping: PricedFolding) -> Figure:
    """A bar a block, and the frame's interval, below which none of them may come."""
    names = [block.name for block in mapping.folded.folding.graph.blocks]
    figure, axes = blank("Cycles of a block a frame (modelled)", _height(len(names)))
    values = mapping.block_cycles
    axes.barh(names, values, color=[COLOURS["weights" if v == max(values) else "compute"] for v in values])
    _bound(axes, mapping.cycles_per_frame)
    axes.invert_yaxis()
    return figure


def _bound(axes: Axes, cycles: int) -> None:
    axes.axvline(cycles, color="#333333", lw=1, ls="--", label=f"a frame every {cycles:,} cycles")
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend_below(axes, 1)


def resources(mapping: PricedFolding) -> Figure:
    """What each block takes, as shares of the board: the sum of a bar is its part of the area."""
    names = [block.name for block in mapping.folded.folding.graph.blocks]
    figure, axes = blank("Resources of a block with its converters and FIFOs (estimate)", _height(len(names)))
    stacked_bars(axes, names, _of_board(mapping.block_usages, mapping.board))
    axes.set_xlabel(f"% of {mapping.board.title}, one resource after the other", fontsize=8)
    legend_below(axes, len(RESOURCES))
    return figure


OF_MAPPING: Mapping[str, Callable[[PricedFolding], Figure]] = {"cycles": cycles, "resources": resources}
"""The pictures of one folding, by name, as a page shows them."""


def shares(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Search by search, a bar a resource: its share of the board, which ends at the line where it fits."""
    board = mappings[0][1].board
    taken = _of_board([mapping.folded.usage for _, mapping in mappings], board)
    figure, axes = blank("Resources (estimate)", 0.9 + 0.18 * len(taken) * len(mappings))
    grouped_bars(axes, [search for search, _ in mappings], taken)
    axes.axvline(100, color="#333333", lw=1, ls="--")
    axes.set_xlabel(f"% of {board.title}", fontsize=8)
    legend_below(axes, len(taken))
    return figure


def _of_board(usages: Sequence[StreamingUsage], board: Board) -> list[Series]:
    """Return the usages as percentages of the board, for each resource that the board has."""
    total = available(board)
    return [
        (kind.upper(), [100 * getattr(usage, kind) / getattr(total, kind) for usage in usages], colour)
        for kind, colour in RESOURCES.items()
        if getattr(total, kind)
    ]


def cycles_by_search(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Cycles of every block by each search: how far from its own slowest block a search leaves the others."""
    names = [block.name for block in mappings[0][1].folded.folding.graph.blocks]
    figure, axes = blank("Cycles of a block a frame, by search (modelled)", 0.9 + 0.34 * len(names))
    coloured = list(zip(mappings, cycle(SEARCH_COLOURS)))
    grouped_bars(
        axes,
        names,
        [(f"{search}: {m.cycles_per_frame:,} a frame", m.block_cycles, colour) for (search, m), colour in coloured],
    )
    for (_, mapping), colour in coloured:
        axes.axvline(mapping.cycles_per_frame, color=colour, lw=0.8, ls="--")
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend_below(axes, len(mappings))
    return figure


def _height(bars: int) -> float:
    return max(1.9, 1.0 + 0.22 * bars)
