"""Bar charts of foldings: the cycles of each block, and its share of the board's resources."""

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
"""The colour of each resource in all pictures."""

SEARCH_COLOURS = (COLOURS["compute"], COLOURS["rows"], COLOURS["ddr"], COLOURS["saver"])
"""The colours of the searches in their order, repeated if there are more searches."""


def cycles(mapping: PricedFolding) -> Figure:
    """Draw the modelled cycles per frame of each block as bars, with a line at the slowest block."""
    names = [block.name for block in mapping.folded.folding.graph.blocks]
    figure, axes = blank("Cycles of each block per frame (modelled)", _height(len(names)))
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
    """Draw one bar per block: its shares of the board's LUTs, DSPs, BRAMs and URAMs, stacked."""
    names = [block.name for block in mapping.folded.folding.graph.blocks]
    figure, axes = blank("Resources of each block with its converters and FIFOs (estimate)", _height(len(names)))
    stacked_bars(axes, names, _of_board(mapping.block_usages, mapping.board))
    axes.set_xlabel(f"% of {mapping.board.title}, the resources stacked", fontsize=8)
    legend_below(axes, len(RESOURCES))
    return figure


OF_MAPPING: Mapping[str, Callable[[PricedFolding], Figure]] = {"cycles": cycles, "resources": resources}
"""The pictures of one folding by name, in the order in which a page shows them."""


def shares(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Draw the share of each board resource that each search's folding takes, with a line at 100 %."""
    board = mappings[0][1].board
    taken = _of_board([mapping.folded.usage for _, mapping in mappings], board)
    figure, axes = blank("Resources (estimate)", 0.9 + 0.18 * len(taken) * len(mappings))
    grouped_bars(axes, [search for search, _ in mappings], taken)
    axes.axvline(100, color="#333333", lw=1, ls="--")
    axes.set_xlabel(f"% of {board.title}", fontsize=8)
    legend_below(axes, len(taken))
    return figure


def _of_board(usages: Sequence[StreamingUsage], board: Board) -> list[Series]:
    """Return one series of bars per resource that the board has: the percentages of the board in ``usages``."""
    total = available(board)
    return [
        (kind.upper(), [100 * getattr(usage, kind) / getattr(total, kind) for usage in usages], colour)
        for kind, colour in RESOURCES.items()
        if getattr(total, kind)
    ]


def cycles_by_search(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Draw the cycles of each block for each search method's folding, with a line at its cycles per frame.

    The distance from a bar to its line shows how much faster the block is than the slowest block.
    """
    names = [block.name for block in mappings[0][1].folded.folding.graph.blocks]
    figure, axes = blank("Cycles of each block per frame, by search (modelled)", 0.9 + 0.34 * len(names))
    coloured = list(zip(mappings, cycle(SEARCH_COLOURS)))
    grouped_bars(
        axes,
        names,
        [(f"{search}: {m.cycles_per_frame:,} per frame", m.block_cycles, colour) for (search, m), colour in coloured],
    )
    for (_, mapping), colour in coloured:
        axes.axvline(mapping.cycles_per_frame, color=colour, lw=0.8, ls="--")
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend_below(axes, len(mappings))
    return figure


def _height(bars: int) -> float:
    return max(1.9, 1.0 + 0.22 * bars)
