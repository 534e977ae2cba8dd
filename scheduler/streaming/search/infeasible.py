"""Why nothing fits: which resource lacks how much, and what would fit."""

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
"""Of the memory on the chip, what weights may take where something is proposed: maps and FIFOs need the rest, and what
memories of whole blocks waste (SAFE: where weights of fewer bits than the chip has did not fit)."""


def weight_bits(graph: g.StreamGraph) -> dict[str, int]:
    """Bits of the weights of every layer that has any."""
    return {name: unit.weights.size * unit.weight_type.bits for name, unit in _units(graph).items()}


def _units(graph: g.StreamGraph) -> dict[str, g.Unit]:
    return {b.name: b.op for b in graph.blocks if isinstance(b.op, g.Unit)}


def on_chip_bits(board: Board, uram: bool = True) -> int:
    """Of BRAM and URAM, or of BRAM alone."""
    return board.resources.bram36 * BRAM36_BITS + uram * board.resources.uram * URAM_BITS


def too_many_weights(
    graph: g.StreamGraph, board: Board, budget: Budget, external: Sequence[str], uram: bool = True
) -> DoesNotFitError | None:
    """Return the error if the weights that stay are more than all memory of the chip, LUTs included; else None.

    uram: whether weights may be in URAM, which starts empty.
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
    """Return the memory of the board that so many bits are compared with, in words and in bits."""
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
    """Return the number and the types of the weights of ``layers``, in words."""
    units = [unit for name, unit in _units(graph).items() if name in layers]
    kinds, count = {unit.weight_type.name for unit in units}, sum(unit.weights.size for unit in units)
    return f"{count / 1e6:.2f} M weights of {' and '.join(sorted(kinds))}"


def from_ddr(graph: g.StreamGraph, memory: float, external: Sequence[str], share: float) -> tuple[str, ...]:
    """``external`` and so many of the largest layers, one at least, that the rest takes ``share`` of ``memory``; of the
    layers whose weights can come from DDR, which those of a depthwise convolution cannot."""
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
    """Return every resource of which ``usage`` takes more than the budget: its name, the need, what is allowed."""
    limit = limits(board, budget)
    rows = (
        ("LUT", usage.lut, limit.lut),
        ("LUT as memory", usage.lutram, limit.lutram),
        ("DSP", usage.dsp, limit.dsp),
        ("BRAM18", usage.bram18, limit.bram18),
        ("URAM", usage.uram, limit.uram),
    )
    return [row for row in rows if row[1] > row[2]]
