"""Reports of foldings: tables for a terminal, and a page with the same tables and pictures."""

from __future__ import annotations

from dataclasses import astuple
from html import escape

from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import available, limits
from scheduler.streaming.blocks.kinds import kind_of
from scheduler.streaming.model.cycles import bottleneck
from systolic.report.clock import RateClock
from systolic.report.page import html_table, page, picture
from systolic.report.tables import BUILT_FIFO_HEAD, ENERGY_HEAD, Cell, built_fifo_rows, energy_rows, table
from systolic.styles.ddr_profiles import profiles_text
from systolic.styles.streaming.fifos import PipelineFifos
from systolic.styles.streaming.fold_words import fold_text
from systolic.styles.streaming.priced import PricedFolding

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
"""The operations with weights."""


def block_rows(mapping: PricedFolding) -> list[list[Cell]]:
    """Return the rows of the block table: folds, cycles and resources; None for a fold that a block lacks."""
    folding = mapping.folded.folding
    lists = zip(folding.graph.blocks, folding.folds, mapping.block_cycles, mapping.block_usages, strict=True)
    return [
        [
            block.name,
            g.kind_name(block.op),
            *_fold_cells(block, fold),
            count,
            f"{count / mapping.cycles_per_frame:.0%}",
            used.lut,
            used.dsp,
            used.bram18,
            used.uram,
        ]
        for block, fold, count, used in lists
    ]


def _fold_cells(block: g.Block, fold: g.Fold) -> list[Cell]:
    unit, moves = isinstance(block.op, UNITS), kind_of(block.op).writes == "simd"
    return [
        None if moves else fold.pe,
        fold.simd if unit or moves else None,
        fold.m,
        max(fold.m, fold.pixels) if isinstance(block.op, g.MatrixVector) else None,
        fold.style if isinstance(block.op, g.Window) else None,
        *((fold.memory, fold.ram, fold.multiplier) if unit else (None, None, None)),
    ]


BUDGET_HEAD = ("resource", "used", "budget", "of", "of the board")


def budget_rows(mapping: PricedFolding) -> list[list[Cell]]:
    """Return the rows of the resource table: estimated use, limit of the search, and the board's amount."""
    names = ("LUT", "LUT as memory", "DSP", "BRAM18", "URAM")
    board = mapping.board
    columns = (
        astuple(usage) for usage in (mapping.folded.usage, limits(board, mapping.hardware.budget), available(board))
    )
    return [
        [name, used, limit, total, f"{used / total:.1%}"]
        for name, used, limit, total in zip(names, *columns, strict=False)
        if total
    ]


def totals(mapping: PricedFolding, clock: RateClock | None = None) -> str:
    """Return a few lines for a terminal: cycles per frame, rate, resources, proof and energy of a folding.

    Args:
        mapping: The folding.
        clock: The clock for the frame rate, if a check found one for the sources; None for the target clock.
    """
    used, board = mapping.folded.usage, mapping.board
    resources = board.resources
    text = (
        f"{mapping.network.name} on {board.title}: a frame every {mapping.cycles_per_frame:,} cycles (modelled), "
        f"{(clock or RateClock(mapping.clock_mhz)).text(mapping.frames_per_second)}\n"
        f"{used.lut:,} of {resources.lut:,} LUT, {used.dsp} of {resources.dsp} DSP, "
        f"{-(-used.bram18 // 2)} of {resources.bram36} BRAM36, {used.uram} of {resources.uram} URAM (estimate); "
        f"folding {mapping.folded.state}, {mapping.proof}, {mapping.folded.seconds:.1f} s"
    )
    text += f"{bits_text(mapping.folded.folding.graph)}{ddr_text(mapping)}\n{mapping.energy}"
    if not mapping.fits:
        text += f"\nIT DOES NOT FIT {board.title}: request a lower rate with --fps, or fewer bits with --bits"
    if mapping.fps is not None and mapping.frames_per_second < mapping.fps:
        text += (
            f"\nIT STAYS BELOW the requested {mapping.fps:g} frames/s: --folding exact finds a folding that reaches "
            "them, or reports the missing resources"
        )
    return text


def ddr_text(mapping: PricedFolding) -> str:
    """Return a line with the rate at each DDR profile; empty if the pipeline reads no weights from DDR."""
    if not mapping.folded.usage.ddr_bits:
        return ""
    return f"\n{profiles_text(mapping.board, mapping.ddr, mapping.ddr_profiles)}"


def bits_text(graph: g.StreamGraph) -> str:
    """Return a line with the bits of the weights and inputs of each layer; "" if all layers have the same bits.

    The 8-bit picture that the first layer reads does not count as a difference.
    """
    units = [(block.name, block.op, block.inputs[0]) for block in graph.blocks if isinstance(block.op, UNITS)]
    bits = [(op.weight_type.bits, graph.type_of(port).datatype.bits) for _, op, port in units]
    if len({weights for weights, _ in bits}) < 2 and len(set(bits[1:])) < 2:
        return ""
    layers = [
        f"{weights}, {inputs} in {' '.join(name for (name, *_), both in zip(units, bits, strict=True) if both == pair)}"
        for pair in sorted(set(bits), reverse=True)
        for weights, inputs in [pair]
    ]
    return f"\nbits of weights, inputs: {'; '.join(layers)}"


def mapping_text(mapping: PricedFolding, clock: RateClock | None = None) -> str:
    """Return a table with each block's fold, and the totals below it. For ``clock`` see ``totals``."""
    folding = mapping.folded.folding
    rows: list[list[Cell]] = [
        [block.name, g.kind_name(block.op), fold_text(fold)]
        for block, fold in zip(folding.graph.blocks, folding.folds, strict=True)
    ]
    return f"{table(('block', 'kind', 'folding'), rows)}\n\n{totals(mapping, clock)}"


def mapping_html(mapping: PricedFolding) -> str:
    """Return the HTML with the tables and figures of one folding, without the head of a page."""
    from systolic.styles.streaming import figures  # here, because importing matplotlib is slow

    name, _ = bottleneck(mapping.folded.folding.graph, mapping.folded.folding.folds)
    fits = "" if mapping.fits else " <b>It does not fit the budget of this board.</b>"
    note = (
        f"<p>A frame every {mapping.cycles_per_frame:,} cycles, {mapping.frames_per_second:,.1f} frames/s at "
        f"{mapping.clock_mhz:g} MHz (target): {escape(name)} is the slowest block. The fullest resource is "
        f"{escape(fullest(mapping))}; cost {mapping.folded.boards:.3f}, the sum of all shares; {mapping.proof}.{fits}"
        "</p>"
    )
    return "".join(
        (
            note,
            html_table(BUDGET_HEAD, budget_rows(mapping)),
            html_table(BLOCK_HEAD, block_rows(mapping)),
            f"<p>{escape(str(mapping.energy))}.</p>",
            html_table(ENERGY_HEAD, energy_rows(_names(mapping), mapping.block_energies, mapping.energy)),
            *(picture(draw(mapping)) for draw in figures.OF_MAPPING.values()),
        )
    )


def _names(mapping: PricedFolding) -> list[str]:
    return [block.name for block in mapping.folded.folding.graph.blocks]


def mapping_page(mapping: PricedFolding) -> str:
    """Return the HTML page that ``systolic fold --report`` writes for one folding."""
    return page(mapping.title, mapping_html(mapping))


def fullest(mapping: PricedFolding) -> str:
    """Return the resource of which the folding takes the largest share of the board, such as "LUT 64%"."""
    used, total = mapping.folded.usage, available(mapping.board)
    names = ("lut", "lutram", "dsp", "bram18", "uram")
    shares = {name: getattr(used, name) / getattr(total, name) for name in names if getattr(total, name)}
    name = max(shares, key=lambda name: shares[name])
    return f"{name.upper()} {shares[name]:.0%}"


def fifos_html(fifos: PipelineFifos) -> str:
    """Return the HTML with the table of a generated pipeline's FIFOs, without the head of a page."""
    text = (
        f"FIFOs: {fifos.bits:,} bits ({fifos.fixed_bits:,} at a fixed depth); a frame every "
        f"{fifos.interval:,} cycles, latency {fifos.latency:,} (traced)"
    )
    return f"<p>{text}</p>{html_table(BUILT_FIFO_HEAD, built_fifo_rows(fifos.table))}"
