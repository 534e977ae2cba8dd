"""The weights and the requantisers of a layer, as arrays in the order in which the engine reads them."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from cnn.datatype import DataType, magnitude
from cnn.quantized import QuantizedNetwork
from cnn.requantise import EVEN, ODD, UP, MultiplyShift
from cnn.tables import Table, fraction_bits
from contract.geometry import PIXEL_BYTES
from scheduler.convolutions import on_all_channels
from scheduler.systolic.array import TABLE_VALUES, Array
from scheduler.systolic.formats import pack_values
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.network.views import lane_places
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import on_own_blocks

Bytes = npt.NDArray[np.int8]
Weights = npt.NDArray[np.signedinteger]


def weight_image(layer: Layer, array: Array) -> Bytes:
    """Return a layer's weights as the engine reads them from DDR, with shape (channel tiles · steps · columns, bytes
    per word).

    The values of one step have the order (lane, column).
    """
    if layer.reads_pixels:
        steps = _pixel_steps(layer, array)
    elif on_own_blocks(layer, array):
        steps = _depthwise_steps(layer, array)
    else:
        steps = _channel_steps(layer, array)
    return pack_values(np.ascontiguousarray(steps).reshape(-1, array.lanes), array.bits)


def _pad_axis(array: Weights, axis: int, multiple: int) -> Weights:
    """Return the numpy array with zeros at the end of an axis, so that its length is a multiple of ``multiple``."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths)


def _at_lanes(layer: Layer, array: Array) -> Weights:
    """Return the layer's weights with each input channel at its lane: (filters, lanes of all words, kernel height,
    kernel width).

    Each channel's weights are at the channel's lane. The weights of unused lanes are 0.
    """
    filters, channels = layer.weights.shape[:2]
    every = on_all_channels(layer.weights, filters // channels) if layer.depthwise else layer.weights
    blocks = sum(span.blocks(array.lanes) for span in layer.spans) // layer.spread
    weights = np.zeros((filters, blocks * array.lanes, *every.shape[2:]), every.dtype)
    weights[:, lane_places(layer.spans, array.lanes)[: every.shape[1]]] = every
    return weights


def _channel_steps(layer: Layer, array: Array) -> Weights:
    """Return a layer's weights in the array's order: (tile, ky, kx, block, lane, column), or (tile, kx, ky, …) if rows
    are joined."""
    weights = _pad_axis(_at_lanes(layer, array), 0, array.columns)
    height, width = weights.shape[2:]
    split = weights.reshape(-1, array.columns, weights.shape[1] // array.lanes, array.lanes, height, width)
    return np.transpose(split, (0, 5, 4, 2, 3, 1) if layer.joined > 1 else (0, 4, 5, 2, 3, 1))


def _pixel_steps(layer: Layer, array: Array) -> Weights:
    """Return the weights of a layer that reads the image: (tile, ky, group of kernel columns, plane, pixel, channel,
    column).

    Pixel and channel together are the lane. On arrays of 4 bits, each channel has two lanes with the same weight, for
    the low and the high nibble of its byte. The array multiplies the products of the high nibbles by 16
    (loader/load.h, array/pe_array.h).
    """
    weights = _pad_axis(_pad_axis(layer.weights, 0, array.columns), 1, PIXEL_BYTES)
    planes = weights.shape[1] // PIXEL_BYTES
    weights = np.repeat(weights, array.pixel_lanes // PIXEL_BYTES, axis=1)
    pixels = array.step_pixels
    weights = _pad_axis(weights, 3, pixels)
    groups = weights.shape[3] // pixels
    split = weights.reshape(-1, array.columns, planes, array.pixel_lanes, layer.kernel[0], groups, pixels)
    return np.transpose(split, (0, 4, 5, 2, 6, 3, 1))


def _depthwise_steps(layer: Layer, array: Array) -> Weights:
    """Return a depthwise layer's weights in the array's order: (tile, ky, kx, block, lane, column).

    They are 0 if block · lanes + lane is not in the column's group.
    """
    weights = _pad_axis(layer.weights, 0, array.columns)
    channels, height, width = weights.shape[1:]
    tiles = weights.reshape(-1, array.columns, channels, height, width).transpose(0, 3, 4, 2, 1)
    out = np.zeros((*tiles.shape[:3], array.columns, array.columns), tiles.dtype)
    column = np.arange(array.columns)
    for channel in range(channels):
        out[..., column // channels * channels + channel, column] = tiles[..., channel, :]
    return out


PIXEL_OFFSETS = {4: 136, 8: 128, 16: 0}
"""The offset per bit width that the loader subtracts from pixels (loader/load.h). The bias compensates for it."""


def requantiser_image(scheduled: ScheduledLayer, network: QuantizedNetwork) -> npt.NDArray[np.uint32]:
    """Return a layer's requantisers as the engine reads them: uint32 with shape (channel tiles · columns, 4), then the
    layer's table.

    The words of the layer's table follow, if it has one. The filters that fill up the last channel tile give 0.

    Raises:
        RangeError: A sum does not fit the array's accumulators, or an offset does not fit its 48 bits.
    """
    layer, array, requantiser = scheduled.layer, scheduled.array, scheduled.layer.requantiser
    bias = requantiser.bias.astype(np.int64)
    highest = magnitude(network.nodes[layer.input].type.datatype)
    if layer.multiplied:
        highest = prod(magnitude(network.nodes[span.node].type.datatype) for span in layer.spans)
    if layer.reads_pixels:
        offset = PIXEL_OFFSETS[array.bits]
        highest = max(offset, 255 - offset)
        bias = bias + offset * layer.weights.astype(np.int64).sum(axis=(1, 2, 3))
    if isinstance(requantiser, MultiplyShift):
        early = np.zeros_like(bias)
        late = requantiser.bias + requantiser.multiplier * (bias - requantiser.bias)
        numbers = _late_numbers(layer, requantiser, late)
    else:
        early = bias
        numbers = (bias, requantiser.multiplier | (requantiser.negative << 16), requantiser.shift)
    _check_sums(layer, early, highest)
    image = np.zeros((scheduled.channel_tiles * array.columns, 4), np.uint32)
    image[:, 2] = 1
    count = len(bias)
    for place, words in enumerate(numbers):
        image[:count, place] = (words & 0xFFFFFFFF).astype(np.uint32)
    image[0, 3] = halves_mark(requantiser.halves)
    if layer.table is None or layer.looked_up is None:
        return image
    image[0, 3] += array.table_depth
    read = network.nodes[layer.looked_up].type.datatype
    return np.concatenate([image, table_words(layer.table, read, array.table_depth)])


LATE_OFFSET, LATE_SIGN = 64, 128
"""Bits of the word that holds the shift: the offset is added late, and the multiplier is negative
(saver/requantise.h)."""


def halves_mark(halves: str) -> int:
    """Return the bit that encodes for the engine how halves are rounded (TO_EVEN and TO_ODD in saver/requantise.h).

    The last word of a layer's first channel holds this bit.
    """
    return {EVEN: 1 << 16, ODD: 1 << 17}.get(halves, 0)


def _late_numbers(
    layer: Layer, requantiser: MultiplyShift, bias: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the offset, multiplier and shift words of requantisers that add their offset after the multiplication.

    These are the lower 32 bits of the offset, then the multiplier with the upper 16 bits of the offset, then the shift
    with LATE_OFFSET and LATE_SIGN.

    Args:
        layer: The layer.
        requantiser: Its requantiser.
        bias: The offset per channel, without the half that rounds.

    Raises:
        RangeError: An offset has more than 48 bits.
    """
    offset = bias + (np.int64(1) << (requantiser.shift - 1)) * (requantiser.halves == UP)
    largest = int(np.abs(offset).max())
    if largest >= 1 << 47:
        what, bits = "the number of bits of a requantiser's offset", largest.bit_length() + 1
        raise RangeError(what, bits, high=48, where=layer.name, remedy="check the layer's bias")
    multiplier = (requantiser.multiplier & 0xFFFF) | (((offset >> 32) & 0xFFFF) << 16)
    marks = LATE_OFFSET + np.where(requantiser.multiplier < 0, LATE_SIGN, 0)
    return offset, multiplier, requantiser.shift + marks


def table_words(table: Table, datatype: DataType, depth: int) -> npt.NDArray[np.uint32]:
    """Return an activation table as the engine reads it, uint32 with shape (depth, 4).

    A table of single values holds the output of each value at the value's two's complement. A piecewise-linear table
    holds the start and the slope of each piece at the upper 8 bits of its values. Words that no value reads are 0. The
    shift of every word is one more than the number of bits within a piece.

    Args:
        table: The table.
        datatype: The type of the values that are looked up.
        depth: The number of words.
    """
    words = np.zeros((depth, 4), np.uint32)
    places = 0 if table.slopes is None else fraction_bits(datatype)
    words[:, 2] = 1 + places
    pieces = np.arange(datatype.low >> places, (datatype.high >> places) + 1)
    pieces %= depth if table.slopes is None else TABLE_VALUES
    words[pieces, 0] = table.values.astype(np.int32).view(np.uint32)
    if table.slopes is not None:
        words[pieces, 1] = table.slopes.astype(np.int32).view(np.uint32)
    return words


def _check_sums(layer: Layer, bias: npt.NDArray[np.int64], highest: int) -> None:
    """Raise RangeError unless the layer's exact sums always fit int32: Σ|w| · highest + |bias| < 2^31.

    Args:
        layer: The layer.
        bias: The bias per channel that is added before the multiplication.
        highest: The largest magnitude of a value that is multiplied.
    """
    largest = np.abs(layer.weights.astype(np.int64)).sum(axis=(1, 2, 3)) * highest + np.abs(bias)
    if int(largest.max()) >= 1 << 31:
        channel = int(largest.argmax())
        raise RangeError(
            f"the largest sum of channel {channel}, for accumulators of 32 bits,",
            int(largest.max()),
            high=(1 << 31) - 1,
            where=layer.name,
            remedy="check the layer's bias, or quantise it to fewer bits",
        )
