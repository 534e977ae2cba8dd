"""Pictures of foldings: where the cycles are, and where the board goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boards.board import Board
from scheduler.streaming.area.budget import available
from scheduler.streaming.area.usage import StreamingUsage
from systolic.report.figures import COLOURS, blank, legend_below
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
    _stack(axes, names, mapping.block_usages, mapping.board)
    return figure


OF_MAPPING: Mapping[str, Callable[[PricedFolding], Figure]] = {"cycles": cycles, "resources": resources}
"""The pictures of one folding, by name, as a page shows them."""


def shares(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Search by search, a bar a resource: its share of the board, which ends at the line where it fits."""
    board = mappings[0][1].board
    total = available(board)
    kinds = [kind for kind in RESOURCES if getattr(total, kind)]
    figure, axes = blank("Resources (estimate)", 0.9 + 0.18 * len(kinds) * len(mappings))
    thickness = 0.8 / len(kinds)
    for number, kind in enumerate(kinds):
        rows = [i + thickness * (number - (len(kinds) - 1) / 2) for i in range(len(mappings))]
        taken = [100 * getattr(mapping.folded.usage, kind) / getattr(total, kind) for _, mapping in mappings]
        axes.barh(rows, taken, height=thickness, color=RESOURCES[kind], label=kind.upper())
    axes.axvline(100, color="#333333", lw=1, ls="--")
    axes.set_yticks(range(len(mappings)), [search for search, _ in mappings])
    axes.set_xlabel(f"% of {board.title}", fontsize=8)
    axes.invert_yaxis()
    legend_below(axes, len(kinds))
    return figure


def _stack(axes: Axes, names: Sequence[str], usages: Sequence[StreamingUsage], board: Board) -> None:
    left = [0.0] * len(names)
    for kind, colour in RESOURCES.items():
        total = getattr(available(board), kind)
        values = [100 * getattr(usage, kind) / total if total else 0.0 for usage in usages]
        if any(values):
            axes.barh(names, values, left=left, color=colour, label=kind.upper())
            left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_xlabel(f"% of {board.title}, one resource after the other", fontsize=8)
    axes.invert_yaxis()
    legend_below(axes, len(RESOURCES))


def cycles_by_search(mappings: Sequence[tuple[str, PricedFolding]]) -> Figure:
    """Cycles of every block by each search: how far from its own slowest block a search leaves the others."""
    names = [block.name for block in mappings[0][1].folded.folding.graph.blocks]
    figure, axes = blank("Cycles of a block a frame, by search (modelled)", 0.9 + 0.34 * len(names))
    thickness = 0.8 / len(mappings)
    for number, (search, mapping) in enumerate(mappings):
        rows = [i + thickness * (number - (len(mappings) - 1) / 2) for i in range(len(names))]
        colour, interval = SEARCH_COLOURS[number % len(SEARCH_COLOURS)], mapping.cycles_per_frame
        label = f"{search}: {interval:,} a frame"
        axes.barh(rows, mapping.block_cycles, height=thickness, color=colour, label=label)
        axes.axvline(interval, color=colour, lw=0.8, ls="--")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    legend_below(axes, len(mappings))
    return figure


def _height(bars: int) -> float:
    return max(1.9, 1.0 + 0.22 * bars)
