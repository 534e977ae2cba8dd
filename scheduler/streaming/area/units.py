"""Counts the resources of matrix-vector and vector-vector units: multipliers, adders, weights and stored vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from boards.board import Board
from cnn.datatype import DataType, magnitude
from cnn.requantise import Requantising
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.hardware.primitives import MIN_FIFO_DEPTH, product_luts
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.activations import Functors, activation_parts
from scheduler.streaming.area.memory import fifo, memory, style
from scheduler.streaming.area.packing import (
    Operands,
    Unrolling,
    dsps,
    four_products,
    two_pixels,
    two_weights,
    value_range,
)
from scheduler.streaming.area.part import CONTROL, Part
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.model.cycles import resident, tile_beats


@dataclass(frozen=True)
class _Arithmetic:
    """The operand widths, sum width and activation of a matrix-vector or vector-vector unit, which do not depend on its
    fold.

    Attributes:
        operands: The operands of the products.
        sum_bits: The bits of the exact sum of an output value.
        activation: The unit's activation.
        out: The type of an output value.
        shares_values: Whether all PEs multiply the same input values, as in a matrix-vector unit.
    """

    operands: Operands
    sum_bits: int
    activation: Requantising | None
    out: DataType
    shares_values: bool


@lru_cache(maxsize=4096)
def _arithmetic(op: g.Unit, value: DataType, out: DataType) -> _Arithmetic:
    rows = np.abs(op.weights.reshape(op.weights.shape[0], -1).astype(np.int64)).sum(axis=1)
    bits = (int(rows.max()) * magnitude(value)).bit_length() + 1
    operands = Operands(op.weight_type.bits, value.bits, value.signed)
    return _Arithmetic(operands, max(2, bits), op.activation, out, isinstance(op, g.MatrixVector))


def unit_parts(graph: g.StreamGraph, index: int, op: g.Unit, fold: g.Fold, board: Board) -> list[Part]:
    """Return the hardware parts of matrix-vector or vector-vector unit ``index`` with their resources, except its
    control logic."""
    block = graph.blocks[index]
    unit = _arithmetic(op, graph.type_of(block.inputs[0]).datatype, block.outputs[0].datatype)
    height, width = lanes.matrix(graph, index, fold)
    nf, sf = height // fold.pe, width // fold.simd
    parts = [_multipliers(unit, fold, board), _adders(unit, fold, board)]
    parts.append(_weights(graph, index, op, fold, board))
    parts += _vectors(block, unit, fold, (nf, sf), board)
    if fold.pixels > fold.m:
        gathered = memory(fold.simd * unit.operands.value_bits, sf, "auto", board.family).times(fold.pixels - 1)
        scattered = memory(fold.pe * unit.out.bits, nf, "auto", board.family).times(fold.pixels - 1)
        waiting = gathered + scattered + StreamingUsage(lut=2 * CONTROL)
        parts.append(Part("pixels", waiting, "PIXELS − 1 input vectors and results in memories"))
    functors = Functors(fold.pe, fold.pixels, nf, unit.sum_bits, unit.out)
    return parts + activation_parts(unit.activation, functors, board.family)


def _multipliers(unit: _Arithmetic, fold: g.Fold, board: Board) -> Part:
    unrolling, operands = Unrolling(fold.pe, fold.simd, fold.pixels), unit.operands
    count = dsps(unrolling, operands, board.dsp.kind, fold.multiplier, depthwise=not unit.shares_values)
    in_luts = not count and not operands.are_one_bit  # an XNOR is in the LUTs of the first adders
    luts = unrolling.products * product_luts(operands.weight_bits, operands.value_bits) if in_luts else 0
    return Part(
        "multipliers", StreamingUsage(lut=luts, dsp=count), "DSPs: packing.py; LUTs: adders of partial products"
    )


def _adders(unit: _Arithmetic, fold: g.Fold, board: Board) -> Part:
    """Return the LUTs of the adder trees and accumulators of a matrix-vector or vector-vector unit.

    The DSPs of a chain sum their own products. LUTs sum the results of the chains, and the products that are not in
    DSPs.
    """
    products = ceil_div(fold.simd, _chained(unit, fold, board.dsp.kind))
    operands = unit.operands
    product_bits = 1 if operands.are_one_bit else operands.weight_bits + operands.value_bits
    luts = tree_luts(products, product_bits, unit.sum_bits) + unit.sum_bits
    usage = StreamingUsage(lut=luts * fold.pe * fold.pixels)
    return Part("adders", usage, "adder tree over the chains of DSPs, and an accumulator")


@lru_cache(maxsize=4096)
def tree_luts(terms: int, bits: int, most_bits: int) -> int:
    """Return the number of LUTs of an adder tree, with one LUT per bit of each sum.

    Args:
        terms: The number of terms to sum.
        bits: The bits per term. Sums have one bit more at each level of the tree.
        most_bits: The maximum bits of a sum.
    """
    total, width = 0, bits
    while terms > 1:
        width = min(width + 1, most_bits)
        total += terms // 2 * width
        terms = ceil_div(terms, 2)
    return total


def _chained(unit: _Arithmetic, fold: g.Fold, dsp: str) -> int:
    """Return the number of products that a cascade of DSPs sums before LUTs add its results, or 1 if products are not
    in DSPs."""
    if fold.multiplier == "lut" or unit.operands.is_one_bit:
        return 1
    return _chain(unit.operands, dsp, unit.shares_values and fold.pe > 1, fold.pixels > 1) or fold.simd


@lru_cache(maxsize=1024)
def _chain(operands: Operands, dsp: str, weights_pair: bool, pixels_pair: bool) -> int:
    """Return how many packed products a chain of DSPs may sum in a field before it overflows, or 0 if no packing fits.

    Without packing, each DSP has one product, and a chain can be of any length.

    Args:
        operands: The operands.
        dsp: The board's kind of DSP.
        weights_pair: Whether two weights may share a DSP.
        pixels_pair: Whether two pixels may share a DSP.
    """
    ranges = value_range(operands.weight_bits, True, True), value_range(operands.value_bits, operands.signed)
    packings = []
    if weights_pair and pixels_pair:
        packings.append(four_products(*ranges, dsp))
    if weights_pair:
        packings.append(two_weights(*ranges, dsp))
    if pixels_pair:
        packings.append(two_pixels(*ranges, dsp))
    return next((packing.terms for packing in packings if packing.terms), 0)


def _weights(graph: g.StreamGraph, index: int, op: g.Unit, fold: g.Fold, board: Board) -> Part:
    depth = lanes.folds_of(graph, index, fold)
    word = fold.simd * op.weight_type.bits
    stream = fifo(fold.pe * word, MIN_FIFO_DEPTH) + StreamingUsage(lut=CONTROL)
    if fold.memory == "external":
        ddr_bits = depth * tile_beats(graph.blocks[index], fold) * 8 * WEIGHT_BEAT_BYTES
        usage = stream + StreamingUsage(ddr_bits=ddr_bits)
        return Part("weights", usage, "from DDR: all weights once per frame, in whole beats")
    if fold.memory == "decoupled":
        rom = memory(fold.pe * word, depth, fold.ram, board.family, constant=True)
        return Part("weights", rom + stream, "one wide memory")
    roms = memory(word, depth, fold.ram, board.family, constant=True).times(fold.pe)
    return Part("weights", roms, f"one memory per PE, at its real aspect ratio ({style(word, depth, fold.ram)})")


def _vectors(block: g.Block, unit: _Arithmetic, fold: g.Fold, folds: tuple[int, int], board: Board) -> list[Part]:
    """Return the hardware parts that store the input vectors and results of a matrix-vector or vector-vector unit.

    A matrix-vector unit with NF above 1 stores the current vector, because each of the NF folds reads it. A unit with
    weights from DDR stores the vectors, sums and results of a whole frame, so that it reads each weight once per frame.

    Args:
        block: The unit's block.
        unit: The unit's arithmetic.
        fold: The unit's fold.
        folds: NF and SF, the folds of the weight matrix's rows and columns.
        board: The board.
    """
    nf, sf = folds
    bits = fold.pixels * fold.simd * unit.operands.value_bits
    if not resident(block, fold):
        if not unit.shares_values or nf == 1:
            return []
        return [Part("vector", memory(bits, sf, "auto", board.family), "SF words, stored for the other folds")]
    groups, family, lanes_out = ceil_div(lanes.positions(block), fold.pixels), board.family, fold.pixels * fold.pe
    vectors = memory(bits, groups * sf, fold.ram, family)
    results = memory(lanes_out * unit.out.bits, groups * nf, "auto", family)
    sums = memory(lanes_out * unit.sum_bits, groups, "auto", family)
    return [
        Part("vectors", vectors, "matrix_vector_resident.h: MW values per position"),
        Part("results", results, "matrix_vector_resident.h: MH results per position"),
        Part("sums", sums, "matrix_vector_resident.h: PE sums per position"),
    ]
