"""Images of weights and requantisers, in the order in which they stream into the array."""

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
    """[channel tiles · steps · columns, bytes of a word]: the flat values of a step are [lane][column]."""
    if layer.reads_pixels:
        steps = _pixel_steps(layer, array)
    elif on_own_blocks(layer, array):
        steps = _depthwise_steps(layer, array)
    else:
        steps = _channel_steps(layer, array)
    return pack_values(np.ascontiguousarray(steps).reshape(-1, array.lanes), array.bits)


def _pad_axis(array: Weights, axis: int, multiple: int) -> Weights:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths)


def _at_lanes(layer: Layer, array: Array) -> Weights:
    """[filters, lanes of all blocks, kernel height, kernel width]: the weights of a channel at its lane, 0 between."""
    filters, channels = layer.weights.shape[:2]
    every = on_all_channels(layer.weights, filters // channels) if layer.depthwise else layer.weights
    blocks = sum(span.blocks(array.lanes) for span in layer.spans) // layer.spread
    weights = np.zeros((filters, blocks * array.lanes, *every.shape[2:]), every.dtype)
    weights[:, lane_places(layer.spans, array.lanes)[: every.shape[1]]] = every
    return weights


def _channel_steps(layer: Layer, array: Array) -> Weights:
    """[tile, ky, kx, block, lane, column]; where rows are joined [tile, kx, ky, block, lane, column]."""
    weights = _pad_axis(_at_lanes(layer, array), 0, array.columns)
    height, width = weights.shape[2:]
    split = weights.reshape(-1, array.columns, weights.shape[1] // array.lanes, array.lanes, height, width)
    return np.transpose(split, (0, 5, 4, 2, 3, 1) if layer.joined > 1 else (0, 4, 5, 2, 3, 1))


def _pixel_steps(layer: Layer, array: Array) -> Weights:
    """[tile, ky, group of kernel columns, plane, pixel, channel, column]: pixel and channel together are the lane.

    At 4 bits a channel is two lanes, its low and its high nibble, under the same weight: the array counts the odd
    lanes of a pixel 16 times (loader/load.h, array/pe_array.h).
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
    """[tile, ky, kx, block, lane, column], non-zero only where block · lanes + lane is in the column's group."""
    weights = _pad_axis(layer.weights, 0, array.columns)
    channels, height, width = weights.shape[1:]
    tiles = weights.reshape(-1, array.columns, channels, height, width).transpose(0, 3, 4, 2, 1)
    out = np.zeros((*tiles.shape[:3], array.columns, array.columns), tiles.dtype)
    column = np.arange(array.columns)
    for channel in range(channels):
        out[..., column // channels * channels + channel, column] = tiles[..., channel, :]
    return out


PIXEL_OFFSETS = {4: 136, 8: 128, 16: 0}
"""By bits: what is missing in a pixel as the array takes it (loader/load.h), made good by the bias."""


def requantiser_image(scheduled: ScheduledLayer, network: QuantizedNetwork) -> npt.NDArray[np.uint32]:
    """uint32 [channel tiles · columns, 4], behind them the values of a table; filters that do not exist give 0.
    Raises RangeError if a sum does not fit the array's accumulators, or an offset its 48 bits."""
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
"""saver/requantise.h: bits of a word's shift."""


def halves_mark(halves: str) -> int:
    """Return the bit by which the last word of a layer's first channel says how halves are rounded (TO_EVEN and TO_ODD
    in saver/requantise.h)."""
    return {EVEN: 1 << 16, ODD: 1 << 17}.get(halves, 0)


def _late_numbers(
    layer: Layer, requantiser: MultiplyShift, bias: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], ...]:
    """The words of requantisers that add after their multiplication: the offset's lower part, the multiplier and the
    offset's upper part, the shift with its marks. Raises RangeError if an offset has more than 48 bits."""
    offset = bias + (np.int64(1) << (requantiser.shift - 1)) * (requantiser.halves == UP)
    largest = int(np.abs(offset).max())
    if largest >= 1 << 47:
        what, bits = "the number of bits of a requantiser's offset", largest.bit_length() + 1
        raise RangeError(what, bits, high=48, where=layer.name, remedy="check the layer's bias")
    multiplier = (requantiser.multiplier & 0xFFFF) | (((offset >> 32) & 0xFFFF) << 16)
    marks = LATE_OFFSET + np.where(requantiser.multiplier < 0, LATE_SIGN, 0)
    return offset, multiplier, requantiser.shift + marks


def table_words(table: Table, datatype: DataType, depth: int) -> npt.NDArray[np.uint32]:
    """Return a table as ``depth`` words: the output of each value at its two's complement or, of pieces, the start and
    slope at its upper 8 bits. Words that no value reads are 0. The shift, as every word has one, is one more than the
    bits within a piece."""
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
    """Exact sums fit int32 whatever the map holds: Σ|w| · highest + |bias| < 2^31."""
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
