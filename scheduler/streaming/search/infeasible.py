"""Finds the resources that a network lacks on a board, and which weights could stay in DDR instead."""

from __future__ import annotations

from collections.abc import Sequence

from boards.board import Board
from boards.errors import DoesNotFitError
from scheduler.hardware.budget import Budget
from scheduler.hardware.primitives import BRAM36_BITS, LUT_BITS, URAM_BITS
from scheduler.streaming import graph as g
from scheduler.streaming.area.budget import limits
from scheduler.streaming.area.usage import StreamingUsage

FREE, SAFE = 0.9, 0.6
"""The shares of the on-chip memory that weights may take in a proposal. Maps, FIFOs and the unused bits of whole memory
blocks need the rest. SAFE is used if weights did not fit although the memory has more bits."""


def weight_bits(graph: g.StreamGraph) -> dict[str, int]:
    """Return the bits of the weights of each layer with weights, by the layer's name."""
    return {name: unit.weights.size * unit.weight_type.bits for name, unit in _units(graph).items()}


def _units(graph: g.StreamGraph) -> dict[str, g.Unit]:
    return {b.name: b.op for b in graph.blocks if isinstance(b.op, g.Unit)}


def on_chip_bits(board: Board, uram: bool = True) -> int:
    """Return the capacity in bits of the board's BRAM and, with ``uram``, of its URAM."""
    return board.resources.bram36 * BRAM36_BITS + uram * board.resources.uram * URAM_BITS


def too_many_weights(
    graph: g.StreamGraph, board: Board, budget: Budget, external: Sequence[str], uram: bool = True
) -> DoesNotFitError | None:
    """Return an error if the weights on chip exceed all memory that the budget allows, LUTs included; else None.

    Args:
        graph: The graph.
        board: The board.
        budget: The share of the board that may be used.
        external: The names of the layers whose weights stay in DDR.
        uram: Whether weights may be stored in URAM, which has no initial contents.
    """
    layers = {name: bits for name, bits in weight_bits(graph).items() if name not in external}
    total, limit = sum(layers.values()), limits(board, budget)
    blocks = limit.bram18 * BRAM36_BITS // 2 + uram * limit.uram * URAM_BITS
    if total <= blocks + limit.lut * LUT_BITS:
        return None
    primitives, memory = _memory(total, board, uram)
    return DoesNotFitError(
        f"{graph.name} on {board.title} in streaming style, which keeps weights on the chip,",
        f"MB for {_weights(graph, layers)} in {primitives}",
        _megabytes(total),
        _megabytes(memory),
    )


def _memory(total: int, board: Board, uram: bool) -> tuple[str, int]:
    """Return the board's memory to which an error compares ``total`` bits of weights, as a text and in bits."""
    r, memory = board.resources, on_chip_bits(board)
    brams = f"{r.bram36} BRAM36"
    if not r.uram:
        return brams, memory
    empty = "starts empty and cannot hold constants"
    if not uram and total <= memory:
        return f"{brams} ({r.uram} URAM {empty})", on_chip_bits(board, False)
    note = "" if uram else f" (URAM, {_megabytes(r.uram * URAM_BITS):g} MB, {empty})"
    return f"{brams} and {r.uram} URAM{note}", memory


def _weights(graph: g.StreamGraph, layers: dict[str, int]) -> str:
    """Return the number and the datatypes of the weights of ``layers`` as a text for errors."""
    units = [unit for name, unit in _units(graph).items() if name in layers]
    kinds, count = {unit.weight_type.name for unit in units}, sum(unit.weights.size for unit in units)
    return f"{count / 1e6:.2f} M weights of {' and '.join(sorted(kinds))}"


def from_ddr(graph: g.StreamGraph, memory: float, external: Sequence[str], share: float) -> tuple[str, ...]:
    """Return the names of layers to move to weights in DDR: those in ``external`` and the largest others.

    At least one layer is added, and more until the rest of the weights takes at most ``share`` of ``memory``. Depthwise
    convolutions are not considered, because their weights cannot be in DDR.

    Args:
        graph: The graph.
        memory: The bits of on-chip memory.
        external: The names of the layers whose weights stay in DDR already.
        share: The share of ``memory`` that weights may take.
    """
    units = {block.name for block in graph.blocks if isinstance(block.op, g.MatrixVector)}
    layers = {name: bits for name, bits in weight_bits(graph).items() if name in units - set(external)}
    largest: list[str] = []
    for name in sorted(layers, key=lambda n: -layers[n]):
        if largest and sum(layers[n] for n in layers if n not in largest) <= share * memory:
            break
        largest.append(name)
    return (*external, *largest)


def _megabytes(bits: int) -> float:
    return round(bits / 8e6, 2)


def excess(usage: StreamingUsage, board: Board, budget: Budget) -> list[tuple[str, int, int]]:
    """Return the board resources of which ``usage`` exceeds the budget, each as (name, need, limit)."""
    limit = limits(board, budget)
    rows = (
        ("LUT", usage.lut, limit.lut),
        ("LUT as memory", usage.lutram, limit.lutram),
        ("DSP", usage.dsp, limit.dsp),
        ("BRAM18", usage.bram18, limit.bram18),
        ("URAM", usage.uram, limit.uram),
    )
    return [row for row in rows if row[1] > row[2]]
