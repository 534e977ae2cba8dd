"""What blocks and converters are made of, part by part, as the headers of hls_templates/streaming build them.

DSPs and memories are counted from structure; LUTs are estimates. Each part says where its number comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from boards.board import Board
from cnn.accumulator import magnitude
from cnn.datatype import DataType
from cnn.network import MaxPool, Shape
from cnn.quantized import MultiplyShift, Requantiser, Requantising, Thresholds
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import WEIGHT_BEAT_BYTES
from scheduler.hardware.primitives import LEAST_FIFO_DEPTH, product_luts
from scheduler.streaming import graph as g
from scheduler.streaming import lanes
from scheduler.streaming.area.memory import NOTHING, Usage, fifo, memory, style
from scheduler.streaming.area.packing import (
    Packing,
    activation_dsps,
    dsps,
    four_products,
    two_pixels,
    two_weights,
    value_range,
)

CONTROL = 100
"""LUT of a block's loop: counters and handshakes. Estimate."""

WALK = 350
"""LUT of the addresses of a default window, a reorg or an up-sampler: some twenty counters and comparators of about
16 bits. Estimate."""

PRODUCT_BITS = 49
"""Of a product of sum and multiplier."""


@dataclass(frozen=True)
class Part:
    """A piece of a block; ``source`` says how it was counted."""

    name: str
    usage: Usage
    source: str


def block_usage(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> Usage:
    total = NOTHING
    for part in parts(graph, index, fold, board):
        total += part.usage
    return total


def converter_usage(how: lanes.Converter, bits: int, board: Board) -> Usage:
    """Of hls_templates/streaming/moving/width.h: a LUT a bit for the words that are taken apart or put together; where
    the widths do not divide each other, a multiplexer over every place that a value can take, three places a LUT."""
    small, large = sorted((how.lanes_in, how.lanes_out))
    if how.kind == "pixels":
        waiting = memory(
            bits * large, ceil_div(how.channels_in * max(how.m_in, how.m_out), large), "auto", board.family
        )
        return waiting + Usage(lut=CONTROL + bits * large)
    unit = gcd(small, large)
    places = 1 if small == unit else (how.lanes_in + how.lanes_out) // unit - 1
    held = how.lanes_in + how.lanes_out if small > unit else large
    return Usage(lut=CONTROL // 2 + bits * held * ceil_div(places, 3))


def parts(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    """What block ``index`` is made of."""
    block = graph.blocks[index]
    op = block.op
    found = [Part("control", Usage(lut=CONTROL), "estimate: counters and handshakes")]
    if isinstance(op, (g.MatrixVector, g.VectorVector)):
        found += _unit(graph, index, fold, board)
    elif isinstance(op, g.Window):
        found += _window(graph, index, fold, board)
    elif isinstance(op, MaxPool):
        found += _pool(graph, index, fold, board)
    elif isinstance(op, (g.Reorg, g.Upsample)):
        found += _mover(graph, index, fold, board)
    elif isinstance(op, (g.Add, g.GlobalPool, g.Activate)):
        found += _sums(graph, index, fold, board)
    else:
        width = max([out.datatype.bits for out in block.outputs], default=8) * fold.m * max(fold.simd, fold.pe)
        found.append(Part("words", Usage(lut=width), "estimate: a LUT a bit of a word"))
    return found


_dsps = lru_cache(maxsize=1 << 16)(dsps)


@dataclass(frozen=True)
class _Arithmetic:
    """What a unit multiplies, the same for every fold."""

    weight: DataType
    value: DataType
    sum_bits: int
    activation: Requantising | None
    out: DataType


@lru_cache(maxsize=4096)
def _arithmetic(block: g.Block, value: DataType) -> _Arithmetic:
    op = block.op
    assert isinstance(op, (g.MatrixVector, g.VectorVector))
    rows = np.abs(op.weights.reshape(op.weights.shape[0], -1).astype(np.int64)).sum(axis=1)
    bits = (int(rows.max()) * magnitude(value)).bit_length() + 1
    return _Arithmetic(op.weight_type, value, max(2, bits), op.activation, block.outputs[0].datatype)


def _unit(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    block = graph.blocks[index]
    deep = isinstance(block.op, g.MatrixVector)
    value = graph.type_of(block.inputs[0]).datatype
    what = _arithmetic(block, value)
    height, width = lanes.matrix(graph, index, fold)
    found = [_multipliers(what, fold, board, deep), _adders(what, fold, board, deep)]
    found += _weights(graph, index, fold, board, what.weight.bits)
    nf, sf = height // fold.pe, width // fold.simd
    if lanes.resident(block, fold):
        found += _resident(block, what, fold, nf, sf, board)
    elif deep and nf > 1:
        kept = memory(fold.pixels * fold.simd * value.bits, sf, "auto", board.family)
        found.append(Part("vector", kept, "SF words, kept for the other folds"))
    if fold.pixels > fold.m:
        come = memory(fold.simd * value.bits, sf, "auto", board.family).times(fold.pixels - 1)
        leave = memory(fold.pe * what.out.bits, nf, "auto", board.family).times(fold.pixels - 1)
        both = come + leave + Usage(lut=2 * CONTROL)
        found.append(Part("pixels", both, "PIXELS − 1 vectors that wait to be gathered, and scattered"))
    return found + _activation(what.activation, what.out, what.sum_bits, fold.pe, fold.pixels, nf, board)


def _resident(block: g.Block, what: _Arithmetic, fold: g.Fold, nf: int, sf: int, board: Board) -> list[Part]:
    """matrix_vector_resident.h: what a unit keeps of a frame so that every weight comes once."""
    groups, family = ceil_div(lanes.positions(block), fold.pixels), board.family
    vectors = memory(fold.pixels * fold.simd * what.value.bits, groups * sf, fold.ram, family)
    results = memory(fold.pixels * fold.pe * what.out.bits, groups * nf, "auto", family)
    sums = memory(fold.pixels * fold.pe * what.sum_bits, groups, "auto", family)
    return [
        Part("vectors", vectors, "matrix_vector_resident.h: MW values a position"),
        Part("results", results, "matrix_vector_resident.h: MH results a position"),
        Part("sums", sums, "matrix_vector_resident.h: PE sums a position"),
    ]


def _multipliers(what: _Arithmetic, fold: g.Fold, board: Board, deep: bool) -> Part:
    bits = what.weight.bits, what.value.bits
    count = _dsps(
        fold.pe, fold.simd, fold.pixels, *bits, what.value.signed, board.dsp.kind, fold.multiplier, depthwise=not deep
    )
    luts = 0 if count else fold.pe * fold.simd * fold.pixels * product_luts(*bits)
    return Part("multipliers", Usage(lut=luts, dsp=count), "DSPs: packing.py; LUTs: rows of partial products")


def _adders(what: _Arithmetic, fold: g.Fold, board: Board, deep: bool) -> Part:
    """Products of a DSP's chain are summed in the DSPs; the chains' fields and the other products in LUTs."""
    terms = _terms(what, fold, board.dsp.kind, deep)
    products = ceil_div(fold.simd, terms)
    luts = tree_luts(products, what.weight.bits + what.value.bits, what.sum_bits) + what.sum_bits
    return Part("adders", Usage(lut=luts * fold.pe * fold.pixels), "adder tree over the chains of DSPs, accumulator")


@lru_cache(maxsize=4096)
def tree_luts(terms: int, bits: int, most: int) -> int:
    """Adders that sum ``terms`` of ``bits``, a LUT a bit, a bit more at each level, no wider than the sum."""
    total, width = 0, bits
    while terms > 1:
        width = min(width + 1, most)
        total += terms // 2 * width
        terms = ceil_div(terms, 2)
    return total


def _terms(what: _Arithmetic, fold: g.Fold, kind: str, deep: bool) -> int:
    """Products that are summed inside of DSPs."""
    bits = what.weight.bits, what.value.bits
    if fold.multiplier == "lut" or min(bits) == 1:
        return 1
    terms = _chain(*bits, what.value.signed, kind, deep and fold.pe > 1, fold.pixels > 1)
    return terms or fold.simd


@lru_cache(maxsize=1024)
def _chain(weight_bits: int, value_bits: int, signed: bool, kind: str, pair: bool, pixels: bool) -> int:
    """Terms of a chain of packed products; 0 where a DSP multiplies one, and its cascade sums as many as come."""
    w, v = value_range(weight_bits, True, True), value_range(value_bits, signed)
    ways: list[Packing] = []
    if pair and pixels:
        ways.append(four_products(w, v, kind))
    if pair:
        ways.append(two_weights(w, v, kind))
    if pixels:
        ways.append(two_pixels(w, v, kind))
    return next((way.terms for way in ways if way.terms), 0)


def _weights(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board, bits: int) -> list[Part]:
    depth = lanes.folds_of(graph, index, fold)
    word = fold.simd * bits
    if fold.memory == "external":
        beats = lanes.tile_beats(graph.blocks[index], fold)
        ddr_bits = depth * beats * 8 * WEIGHT_BEAT_BYTES
        stream = fifo(fold.pe * word, LEAST_FIFO_DEPTH) + Usage(lut=CONTROL, ddr_bits=ddr_bits)
        return [Part("weights", stream, "from DDR: all weights once a frame, in whole beats")]
    if fold.memory == "decoupled":
        kept = memory(fold.pe * word, depth, fold.ram, board.family, constant=True)
        return [Part("weights", kept + fifo(fold.pe * word, LEAST_FIFO_DEPTH) + Usage(lut=CONTROL), "one wide memory")]
    kept = memory(word, depth, fold.ram, board.family, constant=True).times(fold.pe)
    return [Part("weights", kept, f"a memory a PE at its real aspect ratio ({style(word, depth, fold.ram)})")]


def _activation(
    of: Requantising | None, out: DataType, sum_bits: int, pe: int, pixels: int, nf: int, board: Board
) -> list[Part]:
    if of is None:
        return []
    if isinstance(of, Thresholds):
        table = memory(out.levels * sum_bits, nf, "auto", board.family, constant=True).times(pe)
        compared = Usage(lut=out.levels * sum_bits * pe * pixels)
        return [Part("thresholds", table + compared, "FINN-R: levels · bits to compare, and a table of them")]
    kind = "requantise" if isinstance(of, Requantiser) else "multiply"
    count = activation_dsps(pe, pixels, sum_bits, kind)
    bits = 72 if isinstance(of, Requantiser) else 71  # of a channel: bias, multipliers, shift
    table = memory(bits, nf, "auto", board.family, constant=True).times(pe)
    logic = PRODUCT_BITS * (1 + _shift_stages(of)) + 2 * out.bits + (sum_bits + 16 if kind == "requantise" else 0)
    return [
        Part("parameters", table, "bias, multipliers and shift of every channel, a table a PE"),
        Part(
            "requantise",
            Usage(lut=logic * pe * pixels, dsp=count),
            "estimate: rounding, 4:1 stages for the shifts that there are, clip",
        ),
    ]


@lru_cache(maxsize=1024)
def _shift_stages(of: Requantiser | MultiplyShift) -> int:
    """4:1 multiplexers in a row that shift by any of the channels' shifts: none where all are alike."""
    spread = int(of.shift.max() - of.shift.min())
    return ceil_div(spread.bit_length(), 2)


def _window(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    block = graph.blocks[index]
    op, shape = block.op, lanes.in_shape(graph, index)
    assert isinstance(op, g.Window)
    bits = block.outputs[0].datatype.bits
    groups = lanes.in_values(graph, index, fold) // fold.simd
    if fold.style == "default":
        words = window_words(op, shape.height, shape.width, block.outputs[0].shape.height, block.outputs[0].shape.width)
        kept = memory(fold.simd * bits, words * groups + 12, fold.ram, board.family)
        logic = Usage(lut=WALK + fold.simd * bits)
        return [
            Part("rows", kept, "window.h: CAPACITY and margin words, circular"),
            Part("walk", logic, "estimate: addresses, and the zeros of the padding"),
        ]
    word = fold.m * fold.simd * bits
    wide = ceil_div(max(shape.width, op.stride * (block.outputs[0].shape.width - 1) + 1), fold.m)
    rows = memory(max(op.kernel[0] - 1, 1) * word, op.dilation * wide * groups, fold.ram, board.family)
    seen = _bundles(op.kernel[1], op.dilation, op.padding.left, fold.m)
    columns = op.kernel[0] * max(seen - 1, 1) * word
    kept = memory(columns, groups, "auto", board.family) if groups > 4 else NOTHING  # few words are registers
    masks = lanes.out_lanes(block, fold) * bits
    return [
        Part("rows", rows, "window.h: rows of delay in one wide memory"),
        Part("columns", kept, "window.h: the window's columns, a word a channel group"),
        Part("scan", Usage(lut=2 * CONTROL + masks), "estimate: counters, and the zeros of the padding"),
    ]


def _bundles(kernel: int, dilation: int, left: int, pixels: int) -> int:
    """Words of a row that a parallel window sees (scan.h, BUNDLES)."""
    return ceil_div((kernel - 1) * dilation - left, pixels) + ceil_div(left, pixels) + 1


def window_words(op: g.Window, height: int, width: int, out_height: int, out_width: int) -> int:
    """Pixels in a default window's circular buffer (window.h, CAPACITY / G)."""
    high, wide = (op.kernel[0] - 1) * op.dilation, (op.kernel[1] - 1) * op.dilation
    left_over = (height - (out_height - 1) * op.stride) * width
    ahead = max(op.stride * max(width, out_width), left_over) - (out_width - 1) * op.stride
    return high * width + wide + 1 + max(ahead, op.stride)


def _pool(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    block = graph.blocks[index]
    op = block.op
    assert isinstance(op, MaxPool)
    bits = block.outputs[0].datatype.bits
    groups = lanes.in_values(graph, index, fold) // fold.pe
    leaves = lanes.out_pixels(block, fold)
    kept = memory(
        max(op.size - 1, 1) * leaves * fold.pe * bits,
        block.outputs[0].shape.width // leaves * groups,
        fold.ram,
        board.family,
    )
    seen = _bundles(op.size, 1, op.padding.left, fold.m)
    column = max(seen - 1, 1) * fold.m * fold.pe * bits
    columns = memory(column, groups, "auto", board.family) if groups > 4 else NOTHING
    compared = 2 * (op.size - 1) * leaves * fold.pe * (bits + ceil_div(bits, 2))
    return [
        Part("rows", kept, "max_pool.h: KERNEL − 1 rows of what leaves"),
        Part("columns", columns, "max_pool.h: the window's columns"),
        Part("compare", Usage(lut=CONTROL + compared), "2 (KERNEL − 1) compare and select, 1.5 LUT a bit"),
    ]


def _mover(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    """A reorg keeps the rows that it gathers, an up-sampler the row that it repeats and the next."""
    block = graph.blocks[index]
    shape = lanes.in_shape(graph, index)
    pixels = reorg_words(block.op, shape) if isinstance(block.op, g.Reorg) else 2 * shape.width
    bits = fold.simd * block.outputs[0].datatype.bits
    kept = memory(bits, pixels * (shape.channels // fold.simd) + 12, fold.ram, board.family)
    return [
        Part("rows", kept, "reorg.h, upsample.h: CAPACITY and margin words, circular"),
        Part("walk", Usage(lut=WALK), "estimate: addresses"),
    ]


def reorg_words(op: g.Reorg, shape: Shape) -> int:
    """Pixels in a reorg's circular buffer (reorg.h, CAPACITY / G)."""
    stride = op.stride
    if op.order != "darknet":
        return (stride - 1) * shape.width + 2 * stride
    if shape.height % stride**2:
        return 2 * shape.height * shape.width
    return (2 * stride * (stride - 1) + 1) * shape.width + stride


def _sums(graph: g.StreamGraph, index: int, fold: g.Fold, board: Board) -> list[Part]:
    """Add, global pool and activation of their own."""
    block = graph.blocks[index]
    op = block.op
    assert isinstance(op, (g.Add, g.GlobalPool, g.Activate))
    shape, out = lanes.in_shape(graph, index), block.outputs[0].datatype
    pixels = shape.height * shape.width if isinstance(op, g.GlobalPool) else 1
    most = max(magnitude(kind.datatype) for kind in graph.inputs_of(block)) * pixels
    factors = op.multipliers if isinstance(op, g.Add) else (1,)
    bits = (most * sum(factors)).bit_length() + 1
    groups = (shape.channels + fold.pad_in) // fold.pe
    found = []
    if isinstance(op, g.GlobalPool):
        found.append(Part("sums", memory(bits * fold.pe, groups, "auto", board.family), "a sum a channel"))
    multiplied = sum(1 for factor in factors if factor > 1) * fold.pe * fold.m
    adders = Usage(lut=bits * fold.pe * fold.m * max(1, len(factors) - 1), dsp=multiplied)
    found.append(Part("adders", adders, "a LUT a bit; a DSP for a factor that is not 1"))
    return found + _activation(op.activation, out, bits, fold.pe, fold.m, groups, board)
