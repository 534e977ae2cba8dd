"""Pictures of foldings: where the cycles are, and where the board goes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boards.board import Board
from scheduler.streaming.area.budget import available
from scheduler.streaming.area.total import usage_by_block
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.cycles import block_cycles as cycles_of
from scheduler.streaming.result import FoldingResult
from systolic.report.figures import COLOURS, blank

RESOURCES = {"lut": COLOURS["compute"], "dsp": COLOURS["rows"], "bram18": COLOURS["ddr"], "uram": COLOURS["saver"]}
"""One colour a resource, the same in every picture."""

FOLDER_COLOURS = (COLOURS["compute"], COLOURS["rows"], COLOURS["ddr"], COLOURS["saver"])


def block_cycles(found: FoldingResult) -> list[int]:
    """Cycles a frame of every block, modelled."""
    graph, folds = found.folding.graph, found.folding.folds
    return [cycles_of(graph, index, fold) for index, fold in enumerate(folds)]


def block_usages(found: FoldingResult, board: Board) -> list[StreamingUsage]:
    """What every block takes with the converters and FIFOs before it; together the whole folding's."""
    return usage_by_block(found.folding, board)


def cycles(found: FoldingResult) -> Figure:
    """A bar a block, and the frame's interval, below which none of them may come."""
    names = [block.name for block in found.folding.graph.blocks]
    figure, axes = blank("Cycles of a block a frame (modelled)", _height(len(names)))
    values = block_cycles(found)
    axes.barh(names, values, color=[COLOURS["weights" if v == max(values) else "compute"] for v in values])
    _bound(axes, found.cycles)
    axes.invert_yaxis()
    return figure


def _bound(axes: Axes, cycles: int) -> None:
    axes.axvline(cycles, color="#333333", lw=1, ls="--", label=f"a frame every {cycles:,} cycles")
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _legend(axes, 1)


def resources(found: FoldingResult, board: Board) -> Figure:
    """What each block takes, as shares of the board: the sum of a bar is its part of the cost."""
    names = [block.name for block in found.folding.graph.blocks]
    figure, axes = blank("Resources of a block with its converters and FIFOs (estimate)", _height(len(names)))
    _stack(axes, names, block_usages(found, board), board)
    return figure


def shares(folders: Sequence[tuple[str, FoldingResult]], board: Board) -> Figure:
    """Folder by folder, the shares of the board one after the other: the length of a bar is the cost."""
    figure, axes = blank("Resources (estimate)", _height(len(folders)))
    _stack(axes, [name for name, _ in folders], [found.usage for _, found in folders], board)
    return figure


def _stack(axes: Axes, names: Sequence[str], used: Sequence[StreamingUsage], board: Board) -> None:
    left = [0.0] * len(names)
    for kind, colour in RESOURCES.items():
        all_ = getattr(available(board), kind)
        values = [100 * getattr(one, kind) / all_ if all_ else 0.0 for one in used]
        if any(values):
            axes.barh(names, values, left=left, color=colour, label=kind.upper())
            left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_xlabel(f"% of {board.title}, one resource after the other", fontsize=8)
    axes.invert_yaxis()
    _legend(axes, len(RESOURCES))


def cycles_by_folder(folders: Sequence[tuple[str, FoldingResult]]) -> Figure:
    """Cycles of every block as each folder has it: how far from its own slowest block a folder leaves the others."""
    names = [block.name for block in folders[0][1].folding.graph.blocks]
    figure, axes = blank("Cycles of a block a frame, by folder (modelled)", 0.9 + 0.34 * len(names))
    wide = 0.8 / len(folders)
    for number, (folder, found) in enumerate(folders):
        at = [i + wide * (number - (len(folders) - 1) / 2) for i in range(len(names))]
        colour = FOLDER_COLOURS[number % len(FOLDER_COLOURS)]
        axes.barh(at, block_cycles(found), height=wide, color=colour, label=f"{folder}: {found.cycles:,} a frame")
        axes.axvline(found.cycles, color=colour, lw=0.8, ls="--")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("cycles", fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    _legend(axes, len(folders))
    return figure


def _height(bars: int) -> float:
    return max(1.9, 1.0 + 0.22 * bars)


def _legend(axes: Axes, columns: int) -> None:
    """Under the picture, where no bar is."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(loc="outside lower center", fontsize=7, frameon=False, ncols=columns)
