"""The output shape of every operation, of integers and of floats, worked out from its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from boards.errors import NetworkError, QuantiseError
from cnn.extending.layers import shape_of
from cnn.network import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Custom,
    Dense,
    DepthToSpace,
    Detection,
    IntegerSoftmax,
    MaxPool,
    Multiply,
    Node,
    Output,
    Padding,
    Reorg,
    Shape,
    Slice,
    Softmax,
    TopK,
    Upsample,
)
from cnn.quantized import QActivate, QAdd, QAveragePool, QConvolution, QDense, QMultiply, QNode, QSoftmax


def require(condition: bool, node: Node | QNode, sentence: str) -> None:
    """QuantiseError with the node's name and source before the sentence where the condition does not hold."""
    if not condition:
        raise QuantiseError(f"{node.name!r} ({node.source}): {sentence}")


def expected_shape(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """The shape that ``node`` must have, from its operation and its inputs, of which there is at least one.

    QuantiseError where weights, stride, padding or a channel range do not fit the inputs. A Detection has its own.
    """
    op, first = node.op, inputs[0].shape
    if isinstance(op, (QConvolution, Convolution)):
        return _convolved(node, op, first)
    if isinstance(op, (QDense, Dense)):
        fits = op.weights.ndim == 2 and op.weights.shape[1] == first.values
        require(fits, node, f"weights [outputs, {first.values}] are needed, not {op.weights.shape}")
        return Shape(op.weights.shape[0], 1, 1)
    if isinstance(op, MaxPool):
        rows, columns = op.window
        require(min(rows, columns, op.stride) >= 1, node, "size and stride of a pool are at least 1")
        top, left, bottom, right = sides_of(op.padding)
        fits = max(top, bottom) < rows and max(left, right) < columns
        require(fits, node, "a pool's padding is smaller than its size")
        return _slid(node, Shape(first.channels, rows, columns), op.stride, op.padding, first)
    if isinstance(op, (QAveragePool, AveragePool)):
        return Shape(first.channels, 1, 1)
    if isinstance(op, (QActivate, Activate, QSoftmax, IntegerSoftmax)):
        return first
    if isinstance(op, (QAdd, QMultiply, Add, Multiply)):
        kind = "an add" if isinstance(op, (QAdd, Add)) else "a product"
        require(all(source.shape == first for source in inputs), node, f"{kind} needs inputs of one shape")
        return first
    return _moved(node, inputs)


def sides_of(padding: Padding) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    return padding.top, padding.left, padding.bottom, padding.right


def _moved(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """Operations that move values about."""
    op, first = node.op, inputs[0].shape
    if isinstance(op, Concat):
        fits = all((source.shape.height, source.shape.width) == (first.height, first.width) for source in inputs)
        require(fits, node, "a concat needs inputs of one height and width")
        return Shape(sum(source.shape.channels for source in inputs), first.height, first.width)
    if isinstance(op, Slice):
        fits = op.first >= 0 and op.channels >= 1 and op.first + op.channels <= first.channels
        require(fits, node, f"channels {op.first}…{op.first + op.channels - 1} are not all in {first}")
        return Shape(op.channels, first.height, first.width)
    if isinstance(op, Reorg):
        return _reorganised(node, op, first)
    if isinstance(op, DepthToSpace):
        return _spread(node, op, first)
    if isinstance(op, Upsample):
        whole = op.scale == 1.0 or isinstance(node, Node)
        require(
            min(op.stride, op.columns) >= 1 and whole, node, f"upsample keeps integers with scale 1, not {op.scale}"
        )
        return Shape(first.channels, first.height * op.stride, first.width * op.columns)
    return _elsewhere(node, inputs)


def _spread(node: Node | QNode, op: DepthToSpace, source: Shape) -> Shape:
    places = op.rows * op.columns
    fits = min(op.rows, op.columns) >= 1 and source.channels % places == 0
    require(fits, node, f"depth to space by {op.rows} × {op.columns} needs channels % {places} to be 0: {source}")
    return Shape(source.channels // places, source.height * op.rows, source.width * op.columns)


def _reorganised(node: Node | QNode, op: Reorg, source: Shape) -> Shape:
    s = op.stride
    require(op.order in ("darknet", "block"), node, f"a reorg is of order darknet or block, not {op.order!r}")
    divisor = s * s if op.order == "darknet" else 1
    fits = s >= 1 and not (source.channels % divisor or source.height % s or source.width % s)
    require(fits, node, f"reorg by {s} needs channels % {divisor}, height % {s} and width % {s} to be 0: {source}")
    return Shape(source.channels * s * s, source.height // s, source.width // s)


def _elsewhere(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """What a package's layer gives, and what the host computes."""
    if isinstance(node.op, Custom):
        try:
            return shape_of(node.op, [source.shape for source in inputs])
        except NetworkError as error:
            raise QuantiseError(f"{node.name!r} ({node.source}): {error}") from error
    source = inputs[0].shape
    if isinstance(node.op, Detection):
        return Shape(node.shape.channels, source.height, source.width)
    if isinstance(node.op, TopK):
        fits = 1 <= node.op.k <= source.channels
        require(fits, node, f"of {source.channels} channels 1…{source.channels} are chosen, not {node.op.k}")
        return Shape(node.op.k, source.height, source.width)
    require(isinstance(node.op, (Softmax, Output)), node, f"{type(node.op).__name__} is not an integer layer")
    return source


def _convolved(node: Node | QNode, op: Convolution | QConvolution, source: Shape) -> Shape:
    require(op.weights.ndim == 4, node, f"weights have 4 dimensions, not {op.weights.ndim}")
    filters, channels, height, width = op.weights.shape
    not_empty = min(op.weights.shape) >= 1 and op.stride >= 1
    require(not_empty, node, "weights are not empty and the stride is at least 1")
    fits = op.groups >= 1 and filters % op.groups == 0 and channels * op.groups == source.channels
    sentence = f"{channels} weights' channels × {op.groups} groups do not fit {source} and {filters} filters"
    require(fits, node, sentence)
    return _slid(node, Shape(filters, height, width), op.stride, op.padding, source)


def _slid(node: Node | QNode, window: Shape, stride: int, padding: Padding, source: Shape) -> Shape:
    """What a window leaves; window: its height and width, and the channels of the output."""
    sides = sides_of(padding)
    require(min(sides) >= 0 and max(sides) < 256, node, f"padding is 0…255, not {padding}")
    height = source.height + padding.top + padding.bottom - window.height
    width = source.width + padding.left + padding.right - window.width
    fits = min(height, width) >= 0
    require(fits, node, f"a window of {window.height}×{window.width} is larger than the padded {source}")
    return Shape(window.channels, height // stride + 1, width // stride + 1)
