"""Weights as a streamer reads them from DDR (hls_templates/streaming/ends/weights.h): tiles of whole beats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SLOTS = (1, 2, 4, 8, 16)


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
    each = (flat[:, :, None] >> np.arange(slot)) & 1
    packed = np.packbits(each.reshape(count, -1).astype(np.uint8), axis=1, bitorder="little")
    image = np.zeros((count, beats_of(pe * simd, bits, beat_bytes) * beat_bytes), np.uint8)
    image[:, : packed.shape[1]] = packed
    return image
