"""The float reference: what a network computes in float32, as darknet does it.

Convolutions are im2col and a matrix product, some output rows at a time, so that the columns stay in cache whatever the
picture's size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, ShapeError, UnsupportedError
from cnn.activations import FUNCTIONS
from cnn.extending.layers import values_of
from cnn.network import (
    ACTIVATIONS,
    LEAKY_SLOPE,
    SIGN,
    SYMMETRIC,
    UNIT,
    Activate,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Custom,
    Dense,
    DepthToSpace,
    Detection,
    FloatArray,
    Input,
    IntegerSoftmax,
    MaxPool,
    Multiply,
    Network,
    Node,
    Output,
    Pad,
    Padding,
    Reorg,
    Shape,
    Slice,
    Softmax,
    TopK,
    Upsample,
)

T = TypeVar("T", bound=np.generic)
Places: TypeAlias = Sequence[tuple[int, int]]
"""Rows and columns of a window, row by row."""

COLUMN_VALUES = 1 << 19  # of im2col at a time: stays in the second-level cache
LEAST_COLUMNS = 256  # a product: with fewer, reading the weights would take most of the time


def run_float(network: Network, picture: FloatArray) -> list[FloatArray]:
    """Every node's output, float32 [channels, height, width], in the order of ``network.nodes``.

    picture: float32 [channels, height, width], 0…1, of the network's input shape, else ShapeError.
    Detection nodes pass their raw input on; the host decodes boxes (host.vision.detection).
    """
    _check_picture(network, picture)
    outputs: list[FloatArray] = []
    for node in network.nodes:
        if isinstance(node.op, Input):
            outputs.append(picture.copy())
        else:
            outputs.append(_run_node(node, [outputs[i] for i in node.inputs]))
    return outputs


def _check_picture(network: Network, picture: FloatArray) -> None:
    shape = network.input_shape
    if picture.dtype != np.float32 or picture.shape != (shape.channels, shape.height, shape.width):
        sides = "×".join(str(side) for side in picture.shape)
        raise ShapeError(
            f"the picture for {network.name!r}",
            f"type {picture.dtype} and shape {sides}",
            f"type float32 and shape {shape}",
            remedy="resize it, put the channels first and divide by 255",
        )


def _run_node(node: Node, inputs: list[FloatArray]) -> FloatArray:
    op, first = node.op, inputs[0]
    if isinstance(op, Convolution):
        return _convolve(first, op, node.shape)
    if isinstance(op, Dense):
        product: FloatArray = op.weights @ first.reshape(-1, 1)
        return _finish(product, op).reshape(-1, 1, 1)
    if isinstance(op, MaxPool):
        return _max_pool(first, op, node.shape)
    if isinstance(op, AveragePool):
        return np.asarray(first.mean(axis=(1, 2), keepdims=True, dtype=np.float64), dtype=np.float32)
    if isinstance(op, Add):
        return activate(sum(inputs[2:], inputs[0] + inputs[1]), op.activation)
    if isinstance(op, Multiply):
        return activate(inputs[0] * inputs[1], op.activation)
    if isinstance(op, Activate):
        values = FUNCTIONS[op.function].values(first.astype(np.float64), *op.parameters)
        return np.asarray(values, dtype=np.float32)
    if isinstance(op, Softmax):
        return _softmax(first, op)
    if isinstance(op, IntegerSoftmax):
        return softmax_of_positions(first)
    if isinstance(op, TopK):
        return np.asarray(top_k(first, op), dtype=np.float32)
    return _move(node, inputs)


def _move(node: Node, inputs: list[FloatArray]) -> FloatArray:
    """Operations that move values, and what the host reads, which is left as it is."""
    op, first = node.op, inputs[0]
    if isinstance(op, Concat):
        return np.concatenate(inputs)
    if isinstance(op, Slice):
        return first[op.first : op.first + op.channels]
    if isinstance(op, Reorg):
        return space_to_depth(first, op)
    if isinstance(op, DepthToSpace):
        return depth_to_space(first, op)
    if isinstance(op, Pad):
        return repeated(first, op)
    if isinstance(op, Upsample):
        larger: FloatArray = first.repeat(op.stride, axis=1).repeat(op.columns, axis=2) * np.float32(op.scale)
        return larger
    if isinstance(op, Custom):
        return values_of(op, inputs, node.shape)
    if isinstance(op, (Detection, Output)):
        return first if len(inputs) == 1 else np.concatenate(inputs)
    raise UnsupportedError(type(op).__name__, "it has no float reference", where=node.place)


def activate(array: FloatArray, name: str) -> FloatArray:
    """An activation of cnn.network by its name, float32 of any shape; ``array`` may be overwritten.

    ChoiceError for another name.
    """
    if name == "leaky":
        np.maximum(array, array * np.float32(LEAKY_SLOPE), out=array)
    elif name == "relu":
        np.maximum(array, np.float32(0), out=array)
    elif name == "relu6":
        np.clip(array, np.float32(0), np.float32(6), out=array)
    elif name == UNIT:
        np.clip(array, np.float32(0), np.float32(1), out=array)
    elif name == SYMMETRIC:
        np.clip(array, np.float32(-1), np.float32(1), out=array)
    elif name == SIGN:
        array = np.where(array < 0, np.float32(-1), np.float32(1))
    elif name != "linear":
        raise ChoiceError("the activation", name, (*ACTIVATIONS, UNIT, SYMMETRIC, SIGN))
    return array


def _finish(products: FloatArray, op: Convolution | Dense) -> FloatArray:
    """Batch norm or bias, then the activation, in place: [filters, n]."""
    if op.batch_norm is not None:
        products -= op.batch_norm.mean[:, None]
        products *= _gain(op.batch_norm)[:, None]
    products += op.bias[:, None]
    return activate(products, op.activation)


def _gain(norm: BatchNorm) -> FloatArray:
    root = np.sqrt(norm.variance.astype(np.float64) + norm.epsilon)
    return np.asarray(norm.scale / root, dtype=np.float32)


def _convolve(array: FloatArray, op: Convolution, shape: Shape) -> FloatArray:
    filters, channels = op.weights.shape[:2]
    places = places_of(op.weights)
    taps, weights = len(places), at_places(op.weights, places).reshape(op.groups, filters // op.groups, -1)
    places = apart(places, op.dilation)
    padded = _pad(array, op.padding, op.around)
    result = np.empty((filters, shape.height, shape.width), np.float32)
    for first, last in _row_blocks(shape, channels * op.groups * taps):
        block = Shape(filters, last - first, shape.width)
        columns = _columns(padded[:, first * op.stride :], places, op.stride, block)
        products = weights @ columns.reshape(op.groups, channels * taps, -1)
        result[:, first:last] = _finish(products.reshape(filters, -1), op).reshape(filters, -1, shape.width)
    return result


def _row_blocks(shape: Shape, column: int) -> Iterator[tuple[int, int]]:
    rows = max(COLUMN_VALUES // (column * shape.width), -(-LEAST_COLUMNS // shape.width), 1)
    return ((first, min(first + rows, shape.height)) for first in range(0, shape.height, rows))


def every_place(window: tuple[int, int]) -> Places:
    """Row by row."""
    return [(y, x) for y in range(window[0]) for x in range(window[1])]


def places_of(weights: npt.NDArray[Any]) -> Places:
    """Return the places at which windows [filters, channels, rows, columns] have a weight other than 0."""
    if weights.shape[2:] == (1, 1):
        return [(0, 0)]
    used = np.argwhere(weights.any(axis=(0, 1)))
    return [(int(y), int(x)) for y, x in used] or [(0, 0)]


def apart(places: Places, dilation: tuple[int, int]) -> Places:
    """Return the rows and columns of the map at which the places of a dilated window lie."""
    return [(y * dilation[0], x * dilation[1]) for y, x in places]


def at_places(weights: npt.NDArray[T], places: Places) -> npt.NDArray[T]:
    """[filters, channels, places]: the weights there, in the order of the places."""
    flat = weights.reshape(*weights.shape[:2], -1)
    if len(places) == flat.shape[2]:
        return flat
    return flat[..., [y * weights.shape[3] + x for y, x in places]]


def _columns(padded: FloatArray, places: Places, stride: int, shape: Shape) -> FloatArray:
    """im2col [C, taps, H · W]: what each output position sees at each of these places of the window."""
    columns = np.empty((padded.shape[0], len(places), shape.height, shape.width), np.float32)
    for i, tap in enumerate(_taps(padded, places, stride, shape)):
        columns[:, i] = tap
    return columns.reshape(padded.shape[0], len(places), -1)


def _taps(padded: FloatArray, places: Places, stride: int, shape: Shape) -> Iterator[FloatArray]:
    """For each of these places of the window, what it sees: views [C, H, W] of the output's H and W."""
    for y, x in places:
        rows = slice(y, y + (shape.height - 1) * stride + 1, stride)
        yield padded[:, rows, x : x + (shape.width - 1) * stride + 1 : stride]


def _pad(array: FloatArray, padding: Padding, value: float) -> FloatArray:
    if padding == Padding():
        return array
    channels, height, width = array.shape
    sides = height + padding.top + padding.bottom, width + padding.left + padding.right
    padded = np.full((channels, *sides), value, np.float32)
    padded[:, padding.top : padding.top + height, padding.left : padding.left + width] = array
    return padded


def _max_pool(array: FloatArray, op: MaxPool, shape: Shape) -> FloatArray:
    padded = _pad(array, op.padding, -np.inf)
    taps = _taps(padded, every_place(op.window), op.stride, shape)
    result: FloatArray = next(taps).copy()
    for tap in taps:
        np.maximum(result, tap, out=result)
    return result


def _softmax(array: FloatArray, op: Softmax) -> FloatArray:
    parts = array.reshape((1, array.shape[0], -1) if op.each else (op.groups, -1, 1)).astype(np.float64)
    parts = parts - parts.max(axis=1, keepdims=True)
    total = np.exp(parts).sum(axis=1, keepdims=True)
    values = parts - np.log(total) if op.logarithm else np.exp(parts) / total
    return np.asarray(values, dtype=np.float32).reshape(array.shape)


def softmax_of_positions(array: FloatArray) -> FloatArray:
    """[C, …] → the softmax over the channels of each position, of the same shape."""
    return _softmax(array, Softmax(each=True))


def top_k(array: npt.NDArray[Any], op: TopK) -> npt.NDArray[Any]:
    """[C, H, W] of any dtype → [k, H, W]: int64 labels, or the values themselves."""
    order = np.argsort(-array.astype(np.float64), axis=0, kind="stable")[: op.k]
    return order if op.labels else np.take_along_axis(array, order, axis=0)


def repeated(array: npt.NDArray[T], op: Pad) -> npt.NDArray[T]:
    """Return the map [C, H, W] with the rows and columns of a ``Pad`` around it."""
    sides, mode = op.padding, op.mode
    around = ((0, 0), (sides.top, sides.bottom), (sides.left, sides.right))
    larger: npt.NDArray[T] = np.pad(array, around, mode=mode)  # type: ignore[call-overload]
    return larger


def depth_to_space(array: npt.NDArray[T], op: DepthToSpace) -> npt.NDArray[T]:
    """[rows · columns · C, H, W] → [C, H · rows, W · columns] of any dtype."""
    _, height, width = array.shape
    blocks = array.reshape(op.rows, op.columns, -1, height, width).transpose(2, 3, 0, 4, 1)
    result: npt.NDArray[T] = blocks.reshape(-1, height * op.rows, width * op.columns)
    return result


def space_to_depth(array: npt.NDArray[T], op: Reorg) -> npt.NDArray[T]:
    """[C, H, W] → [C · s², H / s, W / s] of any dtype, in the order that ``Reorg`` explains.

    The darknet order is that of its reorg_cpu (src/blas.c), which reads the input's memory as C/s² × H·s × W·s.
    """
    (channels, height, width), s = array.shape, op.stride
    if op.order == "block":
        blocks = array.reshape(channels, height // s, s, width // s, s).transpose(2, 4, 0, 1, 3)
    else:
        blocks = array.reshape(channels // s**2, height, s, width, s).transpose(2, 4, 0, 1, 3)
    result: npt.NDArray[T] = blocks.reshape(channels * s**2, height // s, width // s)
    return result
