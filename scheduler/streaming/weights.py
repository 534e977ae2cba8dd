"""Arranges the weights of units: as matrices in stream order, as tiles of PE × SIMD, and as beats for DDR.

In DDR each tile begins with a new beat, because the streamer (hls_templates/streaming/ends/weights.h) reads whole beats
per tile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cnn.maps import IntArray
from scheduler.streaming import graph as g

SLOTS = (1, 2, 4, 8, 16)
"""The possible bits per weight in DDR."""


def weight_matrix(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int) -> IntArray:
    """Return the weights of matrix-vector or vector-vector unit ``index`` as a matrix, with columns in the order of its
    input stream.

    The weights of padding channels are 0, or −1 for BIPOLAR weights.

    Returns:
        For a matrix-vector unit a matrix of (MH, MW). Its columns are in the order (tap, channel) after a default
        window or without a window, and (group of SIMD channels of the window, tap, channel) after a parallel window.
        For a vector-vector unit a matrix of (channels, taps), because its windows have the order (channel, tap).
    """
    block, fold = graph.blocks[index], folds[index]
    op = block.op
    assert isinstance(op, g.Unit)
    over_channels = isinstance(op, g.MatrixVector)
    padding = [(0, fold.pad_out), (0, fold.pad_in if over_channels else 0), (0, 0), (0, 0)]
    weights = np.pad(op.weights, padding, constant_values=op.weight_type.low if op.weight_type.few == "BIPOLAR" else 0)
    rows, channels = weights.shape[:2]
    columns = weights.reshape(rows, channels, -1).transpose(0, 2, 1)
    window = block.inputs[0].block
    if isinstance(graph.blocks[window].op, g.Window) and folds[window].style == "parallel" and over_channels:
        simd = folds[window].simd
        columns = columns.reshape(rows, -1, channels // simd, simd).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(columns.reshape(rows, -1))


def weight_tiles(weights: IntArray, pe: int, simd: int) -> IntArray:
    """Return a weight matrix of (MH, MW) cut into tiles of PE × SIMD, as an array of (PE, NF · SF, SIMD).

    Tile nf · SF + sf has the rows nf · PE … nf · PE + PE − 1 and the columns sf · SIMD … sf · SIMD + SIMD − 1.
    """
    height, width = weights.shape
    tiles = weights.reshape(height // pe, pe, width // simd, simd).transpose(1, 0, 2, 3)
    return np.ascontiguousarray(tiles.reshape(pe, -1, simd))


def slot_bits(bits: int) -> int:
    """Return the bits that a weight of ``bits`` bits (at most 16) occupies in DDR."""
    return next(slot for slot in SLOTS if bits <= slot)


def beats_of(weights: int, bits: int, beat_bytes: int) -> int:
    """Return the DDR beats that a tile of ``weights`` weights occupies."""
    return -(-weights * slot_bits(bits) // (8 * beat_bytes))


def weight_image(tiles: npt.NDArray[np.integer], bits: int, beat_bytes: int) -> npt.NDArray[np.uint8]:
    """Return tiles of weights as bytes for DDR, a uint8 array of (tiles, beats · beat_bytes).

    Weight pe · SIMD + simd of a tile is in slot pe · SIMD + simd, from the least significant bit on. A slot has
    ``slot_bits(bits)`` bits. Zeros fill the last beat of each tile.

    Args:
        tiles: Integers of shape (PE, tiles, SIMD). BIPOLAR weights are 0 and 1.
        bits: The bits per weight.
        beat_bytes: The bytes per beat.
    """
    pe, count, simd = tiles.shape
    slot = slot_bits(bits)
    flat = tiles.transpose(1, 0, 2).reshape(count, pe * simd).astype(np.int64)
    each_bit = (flat[:, :, None] >> np.arange(slot)) & 1
    packed = np.packbits(each_bit.reshape(count, -1).astype(np.uint8), axis=1, bitorder="little")
    image = np.zeros((count, beats_of(pe * simd, bits, beat_bytes) * beat_bytes), np.uint8)
    image[:, : packed.shape[1]] = packed
    return image
