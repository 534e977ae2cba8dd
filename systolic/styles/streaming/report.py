"""Foldings as one self-contained HTML page, and the same parts for Jupyter."""

from __future__ import annotations

from dataclasses import astuple
from html import escape

from boards.board import Board, load
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.budget import Budget, available, limits
from scheduler.streaming.model.cycles import bottleneck
from scheduler.streaming.result import FoldingResult
from systolic.report.figures import bars
from systolic.report.page import html_table, page, picture
from systolic.report.tables import Cell
from systolic.styles.streaming import figures
from systolic.styles.streaming.compared import HEAD, Comparison, legend, proof, rows_of
from systolic.styles.streaming.fifos import Fifos

BLOCK_HEAD = (
    "block",
    "kind",
    "PE",
    "SIMD",
    "M",
    "PIXELS",
    "style",
    "memory",
    "RAM",
    "multiplier",
    "cycles",
    "of the slowest",
    "LUT",
    "DSP",
    "BRAM18",
    "URAM",
)

UNITS = (g.MatrixVector, g.VectorVector)


def block_rows(found: FoldingResult, board: Board) -> list[list[Cell]]:
    """A line a block under BLOCK_HEAD; a dash where a block has no such fold."""
    blocks, folds = found.folding.graph.blocks, found.folding.folds
    lists = zip(blocks, folds, figures.block_cycles(found), figures.block_usages(found, board), strict=True)
    return [
        [
            block.name,
            type(block.op).__name__,
            *_folds(block, fold),
            cycles,
            f"{cycles / found.cycles:.0%}",
            used.lut,
            used.dsp,
            used.bram18,
            used.uram,
        ]
        for block, fold, cycles, used in lists
    ]


def _folds(block: g.Block, fold: g.Fold) -> list[Cell]:
    unit, moves = isinstance(block.op, UNITS), isinstance(block.op, lanes.MOVERS)
    return [
        None if moves else fold.pe,
        fold.simd if unit or moves else None,
        fold.m,
        max(fold.m, fold.pixels) if isinstance(block.op, g.MatrixVector) else None,
        fold.style if isinstance(block.op, g.Window) else None,
        *((fold.memory, fold.ram, fold.multiplier) if unit else (None, None, None)),
    ]


BUDGET_HEAD = ("resource", "used", "budget", "of", "of the board")


def budget_rows(found: FoldingResult, board: Board) -> list[list[Cell]]:
    """Totals against what a folding may take of the board, and what the board has."""
    names = ("LUT", "LUT as memory", "DSP", "BRAM18", "URAM")
    three = (astuple(of) for of in (found.usage, limits(board, Budget()), available(board)))
    return [
        [name, used, most, all_, f"{used / all_:.1%}"]
        for name, used, most, all_ in zip(names, *three, strict=False)
        if all_
    ]


def folded_html(found: FoldingResult, board: Board, clock_mhz: float) -> str:
    """A part of a page: one folding, block by block."""
    name, _ = bottleneck(found.folding.graph, found.folding.folds)
    fits = "" if found.fits else " <b>It does not fit the budget of this board.</b>"
    note = (
        f"<p>A frame every {found.cycles:,} cycles, {found.frames_per_second(clock_mhz):,.1f} frames/s at "
        f"{clock_mhz:g} MHz (target): {escape(name)} is the slowest. Cost {found.boards:.3f} boards, {proof(found)}."
        f"{fits}</p>"
    )
    return "".join(
        (
            note,
            html_table(BUDGET_HEAD, budget_rows(found, board)),
            html_table(BLOCK_HEAD, block_rows(found, board)),
            picture(figures.cycles(found)),
            picture(figures.resources(found, board)),
        )
    )


def fifos_html(fifos: Fifos) -> str:
    """A part of a page: FIFOs that the trace sized."""
    rows: list[list[Cell]] = [[name, depth] for name, depth in fifos.depths.items()]
    said = (
        f"FIFOs: {fifos.bits:,} bits ({fifos.fixed_bits:,} at a fixed depth); a frame every "
        f"{fifos.interval:,} cycles, latency {fifos.latency:,} (traced)"
    )
    return f"<p>{said}</p>{html_table(('stream', 'depth'), rows)}"


def compared_html(compared: Comparison) -> str:
    """A part of a page: the folders side by side; a lone one block by block."""
    board = load(compared.board)
    found = [(row.folder, row.found) for row in compared.rows if row.found is not None]
    parts = [html_table(HEAD, rows_of(compared)), f'<p class="note">{escape(legend(compared))}</p>']
    if len(compared.rows) == 1 and found:
        return "".join((*parts, folded_html(found[0][1], board, compared.clock_mhz)))
    if found:
        rates = [(name, one.frames_per_second(compared.clock_mhz)) for name, one in found]
        drawn = (bars(rates, "frames/s (modelled)"), figures.shares(found, board), figures.cycles_by_folder(found))
        parts += map(picture, drawn)
    return "".join(parts)


def folding_page(compared: Comparison) -> str:
    """The page of ``systolic fold --report``."""
    board = load(compared.board)
    parts = [compared_html(compared)]
    if len(compared.rows) > 1:
        parts += [
            f"<h2>{escape(row.folder)}</h2>{folded_html(row.found, board, compared.clock_mhz)}"
            for row in compared.rows
            if row.found is not None
        ]
    return page(f"{compared.network} as a streaming pipeline on {board.title}", *parts)
