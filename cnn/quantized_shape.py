"""The output shape of every operation, of integers and of floats, worked out from its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import (
    ChoiceError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
    listed,
)
from cnn.extending.layers import shape_of
from cnn.limits import MAX_PADDED, MAX_PADDING, MAX_WINDOW
from cnn.network import (
    PAD_MODES,
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
    Pad,
    Padding,
    Reorg,
    Shape,
    Slice,
    Softmax,
    TopK,
    Upsample,
)
from cnn.quantized import QActivate, QAdd, QAveragePool, QConvolution, QDense, QMultiply, QNode, QSoftmax


def expected_shape(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """The shape that ``node`` must have, from its operation and its inputs, of which there is at least one.

    Raises an error, its place the node, if weights, stride, padding or a channel range do not fit the inputs:
    ShapeError, RangeError, ChoiceError or InvalidValueError. A Detection has its own shape.
    """
    op, first = node.op, inputs[0].shape
    if isinstance(op, (QConvolution, Convolution)):
        return _convolved(node, op, first)
    if isinstance(op, (QDense, Dense)):
        if op.weights.ndim != 2 or op.weights.shape[1] != first.values:
            raise ShapeError("the weights", op.weights.shape, f"shape (outputs, {first.values})", where=node.place)
        return Shape(op.weights.shape[0], 1, 1)
    if isinstance(op, MaxPool):
        return _pooled(node, op, first)
    if isinstance(op, (QAveragePool, AveragePool)):
        return Shape(first.channels, 1, 1)
    if isinstance(op, (QActivate, Activate, QSoftmax, IntegerSoftmax)):
        return first
    if isinstance(op, (QAdd, QMultiply, Add, Multiply)):
        kind = "an add" if isinstance(op, (QAdd, Add)) else "a product"
        _check_one_shape(node, inputs, f"the inputs of {kind}", "one shape")
        return first
    return _moved(node, inputs)


def sides_of(padding: Padding) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    return padding.top, padding.left, padding.bottom, padding.right


def _check_one_shape(node: Node | QNode, inputs: Sequence[Node | QNode], what: str, required: str) -> None:
    """Refuse inputs of several shapes; of a concat channels may differ."""
    joins = isinstance(node.op, Concat)
    if len({(0 if joins else source.shape.channels, source.shape.height, source.shape.width) for source in inputs}) > 1:
        raise ShapeError(what, listed(source.shape for source in inputs), required, where=node.place)


def _pooled(node: Node | QNode, op: MaxPool, source: Shape) -> Shape:
    rows, columns = op.window
    if min(rows, columns, op.stride) < 1:
        what = "the size and the stride of the pool"
        raise RangeError(what, min(rows, columns, op.stride), low=1, where=node.place)
    top, left, bottom, right = sides_of(op.padding)
    if max(top, bottom) >= rows or max(left, right) >= columns:
        required = f"less than its size, {rows}×{columns}"
        raise InvalidValueError("the padding of the pool", op.padding, required, where=node.place)
    return _slid(node, Shape(source.channels, rows, columns), op.stride, op.padding, source)


def _moved(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """Operations that move values about."""
    op, first = node.op, inputs[0].shape
    if isinstance(op, Concat):
        _check_one_shape(node, inputs, "the inputs of a concat", "one height and width")
        return Shape(sum(source.shape.channels for source in inputs), first.height, first.width)
    if isinstance(op, Slice):
        if not 0 <= op.first < first.channels:
            raise RangeError("the first channel of the slice", op.first, 0, first.channels - 1, where=node.place)
        if not 1 <= op.channels <= first.channels - op.first:
            most = first.channels - op.first
            raise RangeError("the number of channels of the slice", op.channels, 1, most, where=node.place)
        return Shape(op.channels, first.height, first.width)
    if isinstance(op, Reorg):
        return _reorganised(node, op, first)
    if isinstance(op, DepthToSpace):
        return _spread(node, op, first)
    if isinstance(op, Pad):
        return _padded(node, op, first)
    if isinstance(op, Upsample):
        if min(op.stride, op.columns) < 1:
            raise RangeError("the stride of the upsample", min(op.stride, op.columns), low=1, where=node.place)
        if op.scale != 1.0 and not isinstance(node, Node):
            raise InvalidValueError("the scale of the upsample", op.scale, "1, which keeps integers", where=node.place)
        return Shape(first.channels, first.height * op.stride, first.width * op.columns)
    return _elsewhere(node, inputs)


def most_repeated(mode: str, length: int) -> int:
    """Return how many rows or columns a ``Pad`` may put on one side of a map of ``length`` rows or columns."""
    return min({"edge": MAX_PADDING, "reflect": length - 1, "wrap": length}[mode], MAX_PADDING)


def _padded(node: Node | QNode, op: Pad, source: Shape) -> Shape:
    if op.mode not in PAD_MODES:
        raise ChoiceError("the mode of the padding", op.mode, PAD_MODES, where=node.place)
    top, left, bottom, right = sides_of(op.padding)
    for front, back, length in ((top, bottom, source.height), (left, right, source.width)):
        most = most_repeated(op.mode, length)
        for side in (front, back):
            if not 0 <= side <= most:
                raise RangeError("the padding", side, 0, most, where=node.place)
    return Shape(source.channels, source.height + top + bottom, source.width + left + right)


def _spread(node: Node | QNode, op: DepthToSpace, source: Shape) -> Shape:
    places = op.rows * op.columns
    if min(op.rows, op.columns) < 1 or source.channels % places:
        required = f"at least 1×1, and its area a divisor of {source.channels} channels"
        raise InvalidValueError("the block", f"{op.rows}×{op.columns}", required, where=node.place)
    return Shape(source.channels // places, source.height * op.rows, source.width * op.columns)


def _reorganised(node: Node | QNode, op: Reorg, source: Shape) -> Shape:
    s = op.stride
    if op.order not in ("darknet", "block"):
        raise ChoiceError("the order of the reorg", op.order, ("darknet", "block"), where=node.place)
    divisor = s * s if op.order == "darknet" else 1
    if s < 1 or source.channels % divisor or source.height % s or source.width % s:
        square = ", and its square of the channels," if op.order == "darknet" else ""
        required = f"a divisor of height and width{square} of {source}"
        raise InvalidValueError("the stride of the reorg", s, required, where=node.place)
    return Shape(source.channels * s * s, source.height // s, source.width // s)


def _elsewhere(node: Node | QNode, inputs: Sequence[Node | QNode]) -> Shape:
    """What a package's layer gives, and what the host computes."""
    if isinstance(node.op, Custom):
        try:
            return shape_of(node.op, [source.shape for source in inputs])
        except SystolicError as error:  # of whatever kind: the package's layer does not know its node
            raise error.at(node.place) from error
    source = inputs[0].shape
    if isinstance(node.op, Detection):
        return Shape(node.shape.channels, source.height, source.width)
    if isinstance(node.op, TopK):
        if not 1 <= node.op.k <= source.channels:
            raise RangeError("the number of channels that are chosen", node.op.k, 1, source.channels, where=node.place)
        return Shape(node.op.k, source.height, source.width)
    if not isinstance(node.op, (Softmax, Output)):
        raise UnsupportedError(type(node.op).__name__, "it is not an integer layer", where=node.place)
    return source


def _convolved(node: Node | QNode, op: Convolution | QConvolution, source: Shape) -> Shape:
    if op.weights.ndim != 4 or min(op.weights.shape) < 1:
        raise ShapeError("the weights", op.weights.shape, "4 dimensions, each at least 1", where=node.place)
    filters, channels = op.weights.shape[:2]
    if op.stride < 1:
        raise RangeError("the stride", op.stride, low=1, where=node.place)
    for step in op.dilation:
        if not 1 <= step <= MAX_WINDOW:
            raise RangeError("the dilation", step, 1, MAX_WINDOW, where=node.place)
    if op.groups < 1 or filters % op.groups:
        raise InvalidValueError("the groups", op.groups, f"a divisor of {filters} filters", where=node.place)
    if channels * op.groups != source.channels:
        what = f"the channels of {op.groups} groups, {channels} each,"
        raise MismatchError(what, channels * op.groups, source.channels, where=node.place)
    return _slid(node, Shape(filters, *op.window), op.stride, op.padding, source)


def _slid(node: Node | QNode, window: Shape, stride: int, padding: Padding, source: Shape) -> Shape:
    """What a window leaves; window: its height and width, and the channels of the output."""
    for side in sides_of(padding):
        if not 0 <= side <= MAX_PADDING:
            raise RangeError("the padding", side, 0, MAX_PADDING, where=node.place)
    padded = replace(
        source,
        height=source.height + padding.top + padding.bottom,
        width=source.width + padding.left + padding.right,
    )
    if padded.values > MAX_PADDED:
        raise RangeError("values of the padded input", padded.values, high=MAX_PADDED, where=node.place)
    height, width = padded.height - window.height, padded.width - window.width
    if min(height, width) < 0:
        required = f"at most the padded input, {padded.height}×{padded.width}"
        raise InvalidValueError("the window", f"{window.height}×{window.width}", required, where=node.place)
    return Shape(window.channels, height // stride + 1, width // stride + 1)
