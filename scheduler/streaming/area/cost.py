"""What a folding takes of a board, before any vendor tool: every block, converter and FIFO, part by part.

DSPs, memories and FIFOs are counted from structure; LUTs are estimates. Each part says where its number comes from.

Cost is one number, the sum over LUT, DSP, BRAM and URAM of the fraction of the board that is taken. The sum and not the
greatest fraction, because what is not scarcest would otherwise be free and would be wasted; and because a sum of blocks
is a sum of their costs, which is what makes a search exact and fast. What does not fit is excluded, not priced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boards.board import Board
from scheduler.hardware.ddr import PLANNED_SHARE
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.memory import NOTHING, Usage, fifo
from scheduler.streaming.area.parts import block_usage, converter_usage
from scheduler.streaming.joins import depth_of

_PARTS = 1_000_000_000


@dataclass(frozen=True)
class Budget:
    """How much of a board a folding may take, as fractions.

    LUT: what is left is for the DMA, the interconnect and the router; designs above that seldom meet their clock (FINN
    stops at .7). DSPs and memories stand in columns of their own and can be filled.
    ddr: of the DDR's bandwidth at the speed of the board's preset, for external weights.
    """

    lut: float = 0.8
    dsp: float = 1.0
    bram: float = 0.95
    uram: float = 1.0
    ddr: float = PLANNED_SHARE


# --- the scalar ------------------------------------------------------------------------------------------------


def have(board: Board) -> Usage:
    r = board.resources
    return Usage(r.lut, r.lutram, r.dsp, 2 * r.bram36, r.uram)


def limits(board: Board, budget: Budget) -> Usage:
    """The most of each that a folding may take."""
    all_ = have(board)
    return Usage(
        int(all_.lut * budget.lut),
        int(all_.lutram * budget.lut),
        int(all_.dsp * budget.dsp),
        int(all_.bram18 * budget.bram),
        int(all_.uram * budget.uram),
    )


def weights_of(board: Board) -> Usage:
    """Cost of one of each, in 10⁻⁹ of the board; LUTs that are memory cost what LUTs do."""
    all_ = have(board)
    return Usage(_PARTS // all_.lut, 0, _PARTS // all_.dsp, _PARTS // all_.bram18, _PARTS // max(1, all_.uram))


def price(usage: Usage, board: Board) -> int:
    """The cost of ``usage`` in 10⁻⁹ boards."""
    w = weights_of(board)
    return usage.lut * w.lut + usage.dsp * w.dsp + usage.bram18 * w.bram18 + usage.uram * w.uram


def fits(usage: Usage, limit: Usage) -> bool:
    return (
        usage.lut <= limit.lut
        and usage.lutram <= limit.lutram
        and usage.dsp <= limit.dsp
        and usage.bram18 <= limit.bram18
        and usage.uram <= limit.uram
    )


# --- a folding -------------------------------------------------------------------------------------------------


def usage(folding: g.StreamingFolding, board: Board) -> Usage:
    """All of it: blocks, converters, FIFOs."""
    graph, folds = folding.graph, folding.folds
    total = NOTHING
    for index in range(len(graph.blocks)):
        total += block_usage(graph, index, folds[index], board)
        for port in range(len(graph.blocks[index].inputs)):
            total += edge_usage(graph, folds, index, port, board)
    return total


def usage_with(folding: g.StreamingFolding, board: Board, fifos: Sequence[tuple[int, int]]) -> Usage:
    """All of it with FIFOs of (bits of a word, depth), as the trace has sized them, instead of the estimated ones."""
    graph, folds, total = folding.graph, folding.folds, NOTHING
    for index, block in enumerate(graph.blocks):
        total += block_usage(graph, index, folds[index], board)
        for port, source in enumerate(block.inputs):
            bits = graph.type_of(source).datatype.bits
            for one in lanes.converters(graph, folds, index, port):
                total += converter_usage(one, bits, board)
    for bits, depth in fifos:
        total += fifo(bits, depth)
    return total


def edge_usage(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int, port: int, board: Board) -> Usage:
    """Converters and FIFOs of one input."""
    source = graph.blocks[index].inputs[port]
    return between_usage(graph, source, folds[source.block], index, port, folds[index], board)


def between_usage(
    graph: g.StreamGraph, source: g.Port, writer: g.Fold, index: int, port: int, reader: g.Fold, board: Board
) -> Usage:
    chain = lanes.between(graph, source, writer, index, port, reader)
    bits = graph.type_of(source).datatype.bits
    total = fifo(bits * lanes.in_lanes(graph.blocks[index], reader, port), depth_of(graph, index, port, reader))
    for one in chain:
        total += converter_usage(one, bits, board) + fifo(bits * one.lanes_in, LEAST_FIFO_DEPTH)
    return total


def converter_count(folding: g.StreamingFolding) -> int:
    graph = folding.graph
    return sum(
        len(lanes.converters(graph, folding.folds, i, port))
        for i, block in enumerate(graph.blocks)
        for port in range(len(block.inputs))
    )


def fifo_bits(folding: g.StreamingFolding) -> int:
    """Bits of all FIFOs, those behind converters included."""
    graph, folds, total = folding.graph, folding.folds, 0
    for index, block in enumerate(graph.blocks):
        for port, source in enumerate(block.inputs):
            bits = graph.type_of(source).datatype.bits
            total += bits * lanes.in_lanes(block, folds[index], port) * depth_of(graph, index, port, folds[index])
            chain = lanes.converters(graph, folds, index, port)
            total += sum(bits * one.lanes_in * LEAST_FIFO_DEPTH for one in chain)
    return total


def macs(graph: g.StreamGraph) -> int:
    """Multiply-accumulates of a frame."""
    return sum(
        block.op.weights.size * lanes.positions(block)
        for block in graph.blocks
        if isinstance(block.op, (g.MatrixVector, g.VectorVector))
    )
