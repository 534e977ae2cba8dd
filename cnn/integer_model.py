"""The numpy golden model: what every integer of every layer must be.

Matrix products of integers run in floating point through BLAS. That is exact as long as every partial sum fits the
significand: |sum| ≤ 2^24 for float32, 2^53 for float64. Where Σ|w|·max|a| is above 2^24, the input channels are cut
into a few parts that each keep the float32 bound, and the parts are added in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError, UnsupportedError
from cnn.accumulator import magnitude
from cnn.datatype import DataType
from cnn.extending.layers import values_of
from cnn.float_model import (
    Places,
    apart,
    at_places,
    depth_to_space,
    every_place,
    places_of,
    repeated,
    space_to_depth,
    top_k,
)
from cnn.network import (
    Concat,
    Custom,
    DepthToSpace,
    FloatArray,
    MaxPool,
    Pad,
    Padding,
    Reorg,
    Shape,
    Slice,
    TopK,
    Upsample,
)
from cnn.quantisation.tables import looked_up
from cnn.quantized import (
    NEAR_HALF,
    ODD,
    UP,
    MultiplyShift,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QNode,
    QSoftmax,
    QuantizedNetwork,
    Requantiser,
    Requantising,
    TensorType,
    Thresholds,
    has_integers,
)
from cnn.softmax import shares

Integers = npt.NDArray[Any]
Floats = npt.NDArray[Any]

FLOAT32_EXACT = 1 << 24
MAX_PARTS = 8
COLUMN_BYTES = 1 << 20  # of im2col at a time: stays in the second-level cache

Part = tuple[slice, Floats]
"""Input channels, and their weights as floats."""

KEPT_WEIGHTS = 1 << 24
"""Of an operation, at most, whose floats stay in memory as long as it does: 64 MB as float32."""

_kept_parts: WeakKeyDictionary[QConvolution | QDense, tuple[tuple[Any, ...], list[Part]]] = WeakKeyDictionary()


def run_integer(network: QuantizedNetwork, picture: npt.NDArray[np.uint8]) -> list[Integers | None]:
    """Every node's integers in its datatype's carrier, [channels, height, width]; None for nodes that run on the host.

    picture: uint8 of the network's input shape, else ShapeError.
    """
    _check_picture(network, picture)
    outputs: list[Integers | None] = []
    for index, node in enumerate(network.nodes):
        computes = has_integers(network.nodes, index)
        outputs.append(run_node(node, network.nodes, outputs, picture) if computes else None)
    return outputs


def dequantise(array: Integers, type: TensorType) -> FloatArray:
    """(integer − zero point) × scale as float32, in the shape of ``array``."""
    return np.asarray((array.astype(np.int64) - type.zero_point) * np.float64(type.scale), dtype=np.float32)


def requantise(accumulators: npt.NDArray[np.int64], requantiser: Requantising, datatype: DataType) -> Integers:
    """The contract itself, in int64: accumulators [C, …] → the datatype's carrier [C, …].

    |acc + bias| < 2^31, |m| < 2^16, a MultiplyShift's |bias| < 2^47 and s ≤ 47, so every intermediate fits 49 bits.
    """
    if isinstance(requantiser, Thresholds):
        return _threshold(accumulators, requantiser, datatype)
    column = (-1, *(1,) * (accumulators.ndim - 1))
    shift = requantiser.shift.reshape(column)
    if isinstance(requantiser, MultiplyShift):
        product = accumulators * requantiser.multiplier.reshape(column) + requantiser.bias.reshape(column)
    else:
        total = accumulators + requantiser.bias.reshape(column)
        product = total * np.where(
            total < 0, requantiser.negative.reshape(column), requantiser.multiplier.reshape(column)
        )
    if requantiser.halves != UP:
        product &= -1 << NEAR_HALF
    doubled = product + (np.int64(1) << (shift - 1))
    shifted = doubled >> shift
    if requantiser.halves != UP:  # of a half the integer below it, where that is the one of the right parity
        is_half = doubled & ((np.int64(1) << shift) - 1) == 0
        shifted -= is_half & ((shifted & 1) != (requantiser.halves == ODD))
    return _carried(np.clip(shifted, datatype.low, datatype.high), datatype)


def _threshold(accumulators: Integers, by: Thresholds, datatype: DataType) -> Integers:
    """The count of thresholds reached, by bisection: they ascend."""
    signs = np.where(by.flip, -1, 1)
    result = np.empty(accumulators.shape, datatype.carrier)
    for channel, (sums, sign, thresholds) in enumerate(zip(accumulators, signs, by.thresholds, strict=True)):
        reached = np.searchsorted(thresholds, (sums * sign).astype(np.int64), side="right")
        result[channel] = datatype.low + reached * datatype.step
    return result


def _requantise_floats(accumulators: Floats, requantiser: Requantising, datatype: DataType) -> Integers:
    """``requantise`` for integers in floats [C, n], several times faster.

    Exact: every intermediate has at most 49 bits, scaling by 2^-s only moves the exponent, and floor
    is the arithmetic shift.
    """
    if isinstance(requantiser, Thresholds):
        return _threshold(accumulators, requantiser, datatype)
    total = _products(accumulators.astype(np.float64), requantiser)
    shift = requantiser.shift[:, None].astype(np.int32)
    if requantiser.halves == UP:
        total *= np.ldexp(1.0, -shift)
        total += 0.5
        np.floor(total, out=total)
    else:
        np.floor(np.ldexp(total, -NEAR_HALF, out=total), out=total)
        total *= np.ldexp(1.0, NEAR_HALF - shift)
        parity = float(requantiser.halves == ODD)
        total -= parity
        np.rint(total, out=total)
        total += parity
    np.clip(total, datatype.low, datatype.high, out=total)
    return _carried(total, datatype)


def _products(total: Floats, requantiser: Requantiser | MultiplyShift) -> Floats:
    if isinstance(requantiser, MultiplyShift):
        total *= requantiser.multiplier[:, None]
        total += requantiser.bias[:, None]
        return total
    total += requantiser.bias[:, None]
    positive = requantiser.multiplier[:, None].astype(np.float64)
    negative = requantiser.negative[:, None].astype(np.float64)
    if np.array_equal(positive, negative):
        total *= positive
    elif np.all(negative <= positive):  # then the greater product is the one that the sign selects
        total = np.maximum(total * positive, total * negative)
    else:
        total *= np.where(total < 0, negative, positive)
    return total


def _carried(values: Integers, datatype: DataType) -> Integers:
    return np.asarray(values, dtype=np.dtype(datatype.carrier))


def _check_picture(network: QuantizedNetwork, picture: npt.NDArray[np.uint8]) -> None:
    shape = network.input_shape
    if picture.dtype != np.uint8 or picture.shape != (shape.channels, shape.height, shape.width):
        sides = "×".join(str(side) for side in picture.shape)
        raise ShapeError(
            f"the picture for {network.name!r}",
            f"type {picture.dtype} and shape {sides}",
            f"type uint8 and shape {shape}",
            remedy="resize it and put the channels first",
        )


def run_node(node: QNode, nodes: Sequence[QNode], outputs: Sequence[Integers | None], picture: Integers) -> Integers:
    """One node's integers. nodes, outputs: at least those before it. picture: uint8 [channels, height, width]."""
    inputs = [output for i in node.inputs if (output := outputs[i]) is not None]
    types = [nodes[i].type.datatype for i in node.inputs]
    op, out = node.op, node.type.datatype
    if isinstance(op, QInput):
        return np.array(picture)
    if isinstance(op, QConvolution):
        return convolve(inputs[0], types[0], op, node.shape, out)
    if isinstance(op, QDense):
        return _dense(inputs[0], types[0], op, out)
    if isinstance(op, QAveragePool):
        return requantise(inputs[0].sum(axis=(1, 2), keepdims=True, dtype=np.int64), op.requantiser, out)
    if isinstance(op, (QActivate, QSoftmax)):
        return _carried(_looked_up(inputs[0], op, types[0]), out)
    if isinstance(op, QAdd):
        total = sum(i.astype(np.int64) * m for i, m in zip(inputs, op.multipliers, strict=True))
        return requantise(np.asarray(total), op.requantiser, out)
    if isinstance(op, QMultiply):
        return requantise(inputs[0].astype(np.int64) * inputs[1], op.requantiser, out)
    return _move(node, inputs, out)


def _looked_up(array: Integers, op: QActivate | QSoftmax, read: DataType) -> Integers:
    """read: the datatype of ``array``."""
    if isinstance(op, QSoftmax):
        return shares(array, op, read.low)
    return looked_up(op.table, array, read)


def _move(node: QNode, inputs: list[Integers], datatype: DataType) -> Integers:
    """Operations that compute nothing: they keep or move integers."""
    op = node.op
    if isinstance(op, MaxPool):
        return max_pool(inputs[0], op, node.shape, datatype)
    if isinstance(op, Concat):
        return np.concatenate(inputs)
    if isinstance(op, Slice):
        return inputs[0][op.first : op.first + op.channels]
    if isinstance(op, Reorg):
        return space_to_depth(inputs[0], op)
    if isinstance(op, DepthToSpace):
        return depth_to_space(inputs[0], op)
    if isinstance(op, Pad):
        return repeated(inputs[0], op)
    if isinstance(op, Upsample):
        return inputs[0].repeat(op.stride, axis=1).repeat(op.columns, axis=2)
    if isinstance(op, Custom):
        values = values_of(op, [array.astype(np.int64) for array in inputs], node.shape)
        return _carried(np.clip(values, datatype.low, datatype.high), datatype)
    if isinstance(op, TopK):
        return _carried(top_k(inputs[0], op), datatype)
    raise UnsupportedError(type(op).__name__, "it is not an integer layer", where=node.place)


def max_pool(array: Integers, op: MaxPool, shape: Shape, datatype: DataType) -> Integers:
    """The greatest integer of each window, [C, H, W] of ``shape``; padding has the least value of the datatype."""
    padded = _pad(array, op.padding, array.dtype, datatype.low)
    taps = _taps(padded, every_place(op.window), op.stride, shape)
    result: Integers = next(taps).copy()
    for tap in taps:
        np.maximum(result, tap, out=result)
    return result


def _pad(array: Integers, padding: Padding, dtype: npt.DTypeLike, value: int) -> Integers:
    channels, height, width = array.shape
    shape = (channels, height + padding.top + padding.bottom, width + padding.left + padding.right)
    padded = np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
    padded[:, padding.top : padding.top + height, padding.left : padding.left + width] = array
    return padded


def _taps(padded: Integers, places: Places, stride: int, shape: Shape) -> Iterator[Integers]:
    """For each of these places of the window, what it sees: views [C, H, W] of the output's shape."""
    for y, x in places:
        rows = slice(y, y + (shape.height - 1) * stride + 1, stride)
        yield padded[:, rows, x : x + (shape.width - 1) * stride + 1 : stride]


def _dense(array: Integers, datatype: DataType, op: QDense, out: DataType) -> Integers:
    weights = op.weights.reshape(1, *op.weights.shape, 1)
    columns = array.reshape(1, -1, 1, 1)
    parts = _parts_of(op, weights, magnitude(datatype))
    total = _multiply(parts, columns.astype(np.float64))
    return _requantise_floats(total.reshape(-1, 1), op.requantiser, out)[:, :, None]


def convolve(array: Integers, datatype: DataType, op: QConvolution, shape: Shape, out: DataType) -> Integers:
    """The outputs of a convolution, [filters, height, width] of ``shape`` in the carrier of ``out``.

    array [C, H, W] of ``datatype``. It runs some output rows at a time: im2col into a buffer that stays in cache,
    matrix product, requantisation.
    """
    filters, channels = op.weights.shape[:2]
    places = places_of(op.weights)
    taps, weights = len(places), at_places(op.weights, places).reshape(op.groups, filters // op.groups, channels, -1)
    parts, places = _parts_of(op, weights, magnitude(datatype)), apart(places, op.dilation)
    padded = _pad(array, op.padding, parts[0][1].dtype, op.around)
    result = np.empty((filters, shape.height, shape.width), out.carrier)
    for first, last in _row_blocks(shape, array.shape[0] * taps * padded.itemsize):
        block = Shape(filters, last - first, shape.width)
        columns = _columns(padded[:, first * op.stride :], places, op.stride, block)
        total = _multiply(parts, columns.reshape(op.groups, channels, taps, -1))
        result[:, first:last] = _requantise_floats(total, op.requantiser, out).reshape(filters, -1, shape.width)
    return result


def _row_blocks(shape: Shape, column_bytes: int) -> Iterator[tuple[int, int]]:
    rows = max(1, COLUMN_BYTES // (column_bytes * shape.width))
    # At least 128 columns a product: with fewer, reading the weights would take most of the time.
    rows = max(rows, -(-128 // shape.width))
    return ((first, min(first + rows, shape.height)) for first in range(0, shape.height, rows))


def _columns(padded: Floats, places: Places, stride: int, shape: Shape) -> Floats:
    """im2col [C, taps, H · W]: what each output position sees at each of these places of the window."""
    columns = np.empty((padded.shape[0], len(places), shape.height, shape.width), padded.dtype)
    for i, tap in enumerate(_taps(padded, places, stride, shape)):
        columns[:, i] = tap
    return columns.reshape(padded.shape[0], len(places), -1)


def _parts_of(op: QConvolution | QDense, weights: Integers, greatest: int) -> list[Part]:
    """``_parts`` of an operation's weights, kept for the next picture where they are not too many."""
    key, stored = (weights.shape, greatest), _kept_parts.get(op)
    if stored is not None and stored[0] == key:
        return stored[1]
    parts = _parts(weights, greatest)
    if weights.size <= KEPT_WEIGHTS:
        _kept_parts[op] = key, parts
    return parts


def _parts(weights: Integers, greatest: int) -> list[Part]:
    """weights [groups, filters, channels, taps] cut along channels so that each part is exact in its float.

    Parts are float32 where Σ|w|·max|a| ≤ 2^24 in every filter of each and at most MAX_PARTS are needed. Otherwise there
    is one part in float64, which is exact because accumulators have at most 32 bits. greatest: max|a|.
    """
    groups, filters, channels, _ = weights.shape
    size = np.abs(weights.astype(np.int32)).sum(axis=3, dtype=np.int64).cumsum(axis=2) * greatest
    edges = [0]
    while edges[-1] < channels and len(edges) <= MAX_PARTS:
        earlier = size[:, :, edges[-1] - 1, None] if edges[-1] else 0
        edges.append(int(np.all(size - earlier <= FLOAT32_EXACT, axis=(0, 1)).nonzero()[0].max(initial=-1)) + 1)
        if edges[-1] == edges[-2]:
            break
    dtype = np.float32 if edges[-1] == channels else np.float64
    cuts = [slice(a, b) for a, b in pairwise(edges)] if edges[-1] == channels else [slice(0, channels)]
    return [(cut, weights[:, :, cut].astype(dtype).reshape(groups, filters, -1)) for cut in cuts]


def _multiply(parts: list[Part], columns: Floats) -> Floats:
    """Σ over parts of weights × columns [groups, channels, taps, n] → [groups · filters, n]."""
    groups, _, _, n = columns.shape
    products = (weights @ columns[:, cut].reshape(groups, -1, n) for cut, weights in parts)
    total = next(products)
    for product in products:
        total = total.astype(np.float64, copy=False) + product
    return total.reshape(-1, n)
