"""What a folding takes of a board, before any vendor tool: every block, converter and FIFO, part by part.

DSPs, memories and FIFOs are counted from structure; LUTs are estimates. Each part says where its number comes from.
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
    """All of it: blocks, converters, FIFOs."""
    return sum_of(usage_by_block(folding, board, traced))


def usage_by_block(folding: g.StreamingFolding, board: Board, traced: TracedStreams = UNTRACED) -> list[StreamingUsage]:
    """What every block takes with the converters and FIFOs before it; together the whole folding's."""
    graph, folds = folding.graph, folding.folds
    return [
        block_usage(graph, index, folds[index], board)
        + sum_of(edge_usage(edge_of(graph, folds, index, port), board, traced) for port in range(len(block.inputs)))
        for index, block in enumerate(graph.blocks)
    ]


def usage_with(folding: g.StreamingFolding, board: Board, fifos: Sequence[tuple[int, int]]) -> StreamingUsage:
    """All of it with FIFOs of (bits of a word, depth), as the trace has sized them, instead of the estimated ones."""
    graph, folds = folding.graph, folding.folds
    blocks = sum_of(block_usage(graph, index, fold, board) for index, fold in enumerate(folds))
    converters = sum_of(
        converter_usage(converter, edge.bits, board) for edge in edges(graph, folds) for converter in edge.converters
    )
    return blocks + converters + sum_of(fifo(bits, depth) for bits, depth in fifos)


def edge_usage(edge: Edge, board: Board, traced: TracedStreams = UNTRACED) -> StreamingUsage:
    """Converters and FIFOs of one input."""
    converters = sum_of(converter_usage(converter, edge.bits, board) for converter in edge.converters)
    return converters + sum_of(fifo(edge.bits * size, depth) for size, depth in traced.of(edge))


def converter_count(folding: g.StreamingFolding) -> int:
    """Converters between blocks."""
    return sum(len(edge.converters) for edge in edges(folding.graph, folding.folds))


def fifo_bits(folding: g.StreamingFolding) -> int:
    """Bits of all FIFOs as estimated, those before converters included."""
    return sum(
        edge.bits * size * depth for edge in edges(folding.graph, folding.folds) for size, depth in UNTRACED.of(edge)
    )


def macs(graph: g.StreamGraph) -> int:
    """Multiply-accumulates of a frame."""
    return sum(block.op.weights.size * lanes.positions(block) for block in graph.blocks if isinstance(block.op, g.Unit))
