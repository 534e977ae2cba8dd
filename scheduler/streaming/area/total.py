"""Adds up the resources of a folding: its blocks, converters and FIFOs.

DSPs, memories and FIFOs are counted from the structure of the design, and LUTs are estimates.
"""

from __future__ import annotations

from collections.abc import Sequence

from boards.board import Board
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.memory import fifo
from scheduler.streaming.area.parts import block_usage, converter_usage
from scheduler.streaming.area.usage import StreamingUsage, sum_of
from scheduler.streaming.model.converters import Edge, edge_of, edges
from scheduler.streaming.model.waiting import UNTRACED, TracedStreams


def usage(folding: g.StreamingFolding, board: Board, traced: TracedStreams = UNTRACED) -> StreamingUsage:
    """Return the board resources of a whole folding: all blocks, converters and FIFOs.

    Args:
        folding: The folding.
        board: The board.
        traced: The FIFOs of an earlier trace. FIFOs that it does not contain have estimated depths.
    """
    return sum_of(usage_by_block(folding, board, traced))


def usage_by_block(folding: g.StreamingFolding, board: Board, traced: TracedStreams = UNTRACED) -> list[StreamingUsage]:
    """Return, per block of a folding, the board resources of the block and of the converters and FIFOs at its inputs.

    The sum over all blocks is ``usage``.
    """
    graph, folds = folding.graph, folding.folds
    return [
        block_usage(graph, index, folds[index], board)
        + sum_of(edge_usage(edge_of(graph, folds, index, port), board, traced) for port in range(len(block.inputs)))
        for index, block in enumerate(graph.blocks)
    ]


def usage_with(folding: g.StreamingFolding, board: Board, fifos: Sequence[tuple[int, int]]) -> StreamingUsage:
    """Return the board resources of a whole folding if its FIFOs have the widths and depths in ``fifos``.

    Args:
        folding: The folding.
        board: The board.
        fifos: The bits per word and the depth of every FIFO, as a trace found them.
    """
    graph, folds = folding.graph, folding.folds
    blocks = sum_of(block_usage(graph, index, fold, board) for index, fold in enumerate(folds))
    converters = sum_of(
        converter_usage(converter, edge.bits, board) for edge in edges(graph, folds) for converter in edge.converters
    )
    return blocks + converters + sum_of(fifo(bits, depth) for bits, depth in fifos)


def edge_usage(edge: Edge, board: Board, traced: TracedStreams = UNTRACED) -> StreamingUsage:
    """Return the board resources of the converters and FIFOs between two blocks."""
    converters = sum_of(converter_usage(converter, edge.bits, board) for converter in edge.converters)
    return converters + sum_of(fifo(edge.bits * size, depth) for size, depth in traced.of(edge))


def converter_count(folding: g.StreamingFolding) -> int:
    """Return the number of converters of word widths between the blocks of a folding."""
    return sum(len(edge.converters) for edge in edges(folding.graph, folding.folds))


def fifo_bits(folding: g.StreamingFolding) -> int:
    """Return the total capacity in bits of all FIFOs of a folding at their estimated depths, including the FIFOs before
    converters."""
    return sum(
        edge.bits * size * depth for edge in edges(folding.graph, folding.folds) for size, depth in UNTRACED.of(edge)
    )


def macs(graph: g.StreamGraph) -> int:
    """Return the multiply-accumulates that the graph's matrix-vector and vector-vector units compute per frame."""
    return sum(block.op.weights.size * lanes.positions(block) for block in graph.blocks if isinstance(block.op, g.Unit))
