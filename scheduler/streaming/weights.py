"""Weights as units read them: columns in the order of the stream, tiles of PE × SIMD, and beats of DDR.

The beats are those of a streamer (hls_templates/streaming/ends/weights.h): each tile begins with one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cnn.maps import IntArray
from scheduler.streaming import graph as g

SLOTS = (1, 2, 4, 8, 16)


def weight_matrix(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int) -> IntArray:
    """[MH, MW] (vector-vector unit: [channels, taps]) with columns in the order of the stream, zeros where padded.

    A map and a default window bring (tap, channel), a parallel window (group of its SIMD channels, tap, channel).
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
    """[MH, MW] → [PE][NF · SF][SIMD]: row nf · PE + pe, columns sf · SIMD …, stand in tile nf · SF + sf."""
    height, width = weights.shape
    tiles = weights.reshape(height // pe, pe, width // simd, simd).transpose(1, 0, 2, 3)
    return np.ascontiguousarray(tiles.reshape(pe, -1, simd))


def slot_bits(bits: int) -> int:
    """Bits that a weight of ``bits`` bits (at most 16) takes in DDR: 1, 2, 4, 8 or 16."""
    return next(slot for slot in SLOTS if bits <= slot)


def beats_of(weights: int, bits: int, beat_bytes: int) -> int:
    """Beats that a tile of so many weights takes."""
    return -(-weights * slot_bits(bits) // (8 * beat_bytes))


def weight_image(tiles: npt.NDArray[np.integer], bits: int, beat_bytes: int) -> npt.NDArray[np.uint8]:
    """[PE][TILES][SIMD] integers of ``bits`` bits (BIPOLAR as 0 and 1) → uint8 [TILES, beats · beat_bytes].

    Tile by tile; weight pe · SIMD + simd is the next slot, least significant bits first; the last beat is filled up
    with zeros.
    """
    pe, count, simd = tiles.shape
    slot = slot_bits(bits)
    flat = tiles.transpose(1, 0, 2).reshape(count, pe * simd).astype(np.int64)
    each_bit = (flat[:, :, None] >> np.arange(slot)) & 1
    packed = np.packbits(each_bit.reshape(count, -1).astype(np.uint8), axis=1, bitorder="little")
    image = np.zeros((count, beats_of(pe * simd, bits, beat_bytes) * beat_bytes), np.uint8)
    image[:, : packed.shape[1]] = packed
    return image
