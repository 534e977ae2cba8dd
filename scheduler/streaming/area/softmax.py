"""Counts the resources of a softmax: two delay lines, a division, and a table and a multiplier per lane (softmax.h)."""

from __future__ import annotations

from boards.board import Board
from cnn.ops.softmax import POWER_BITS, SHARE_BITS
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.primitives import product_dsps
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.activations import LUT_ENTRIES
from scheduler.streaming.area.memory import memory
from scheduler.streaming.area.part import Part
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.depths import inverse_bits

REGISTERS = 4
"""The maximum words of a delay line in registers (delay.h), which are not counted."""


def softmax_parts(graph: g.StreamGraph, index: int, op: g.Softmax, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of a softmax block with their resources, except its control logic."""
    read = graph.type_of(graph.blocks[index].inputs[0])
    bits, pe = read.datatype.bits, fold.pe
    greatest = Part(
        "greatest", StreamingUsage(lut=2 * bits * pe), "estimate: one LUT per bit to compare and one to choose"
    )
    if op.powers is None:
        chosen = StreamingUsage(lut=SHARE_BITS * pe)
        return [greatest, Part("shares", chosen, "estimate: a comparison and a choice per lane")]
    words = lanes.in_values(graph, index, fold) // pe
    inverse, sums = inverse_bits(op.method), POWER_BITS + max(1, (read.shape.channels - 1).bit_length())
    stable = op.method == "stable"
    looked_up = ceil_div(op.powers.values.size, LUT_ENTRIES) * POWER_BITS * pe
    products = product_dsps(POWER_BITS + 1, inverse + 1, board.dsp.kind) * pe
    return [
        *(
            [greatest, Part("values", _line(bits * pe, words, fold, board), "softmax.h: the values of a pixel")]
            if stable
            else []
        ),
        Part("powers", StreamingUsage(lut=looked_up), "one LUT per 64 one-bit values, in every lane"),
        Part("held", _line(POWER_BITS * pe, words - 1 + inverse, fold, board), "softmax.h: powers during the division"),
        Part("sum", StreamingUsage(lut=sums * pe), "one LUT per bit of each addition"),
        Part("division", StreamingUsage(lut=2 * sums * inverse), "estimate: a subtraction and a choice per bit"),
        Part("products", StreamingUsage(lut=2 * SHARE_BITS * pe, dsp=products), "power · inverse, rounded"),
    ]


def _line(bits: int, words: int, fold: g.Fold, board: Board) -> StreamingUsage:
    """Return the resources of a delay line of ``words`` words. A line of at most REGISTERS words is built from
    registers and counts as nothing."""
    return StreamingUsage() if words <= REGISTERS else memory(bits, words, fold.ram, board.family)
