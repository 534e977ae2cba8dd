"""Convolutions of floats and of integers: im2col and a matrix product, some output rows at a time.

The columns of a block stay in the second-level cache, for a picture of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import ConflictError, InvalidValueError, MismatchError, RangeError, ShapeError
from cnn.datatype import BIPOLAR, DataType, magnitude
from cnn.dilation import covered
from cnn.limits import MAX_WINDOW
from cnn.maps import FloatArray, IntArray, Integers, Padding, Shape, short_repr
from cnn.ops.operation import Accumulating, FloatOperation, Tensor
from cnn.ops.weights import EVERY_WEIGHT, BatchNorm, Stored, check_weights, multiply, normalised, parts_of, weight_sums
from cnn.ops.windows import columns_of, padded_map, row_blocks, tap_offsets, tap_weights, used_taps, window_shape
from cnn.requantise import Requantising, requantise_floats

COLUMN_VALUES = 1 << 19
"""Floats of im2col at a time."""
MIN_FLOAT_COLUMNS = 256
"""The fewest columns of a product of floats: with fewer, reading the weights would take most of the time."""
COLUMN_BYTES = 1 << 20
"""Bytes of im2col at a time, of integers."""
MIN_INTEGER_COLUMNS = 128
"""The same for a product of integers."""


@dataclass(frozen=True, eq=False)
class Convolution(FloatOperation):
    """A float convolution with bias, optional batch norm and activation.

    Attributes:
        weights: [filters, channels / groups, rows, columns].
        bias: [filters].
        around: The value of the padding.
        dilation: Rows and columns of the map from one tap of the kernel to the next; 1 along a side of one tap.
    """

    weights: FloatArray
    bias: FloatArray
    batch_norm: BatchNorm | None
    stride: int
    padding: Padding
    groups: int
    activation: str
    stored: Stored = EVERY_WEIGHT
    around: float = 0.0
    dilation: tuple[int, int] = (1, 1)

    calibrated = True
    __repr__ = short_repr

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of the map that the kernel covers, including the gaps of a dilated kernel."""
        return covered(self.weights.shape[2:], self.dilation)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return _output_shape(self, read[0])

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        filters, channels = self.weights.shape[:2]
        taps = used_taps(self.weights)
        weights = tap_weights(self.weights, taps).reshape(self.groups, filters // self.groups, -1)
        column = channels * self.groups * len(taps)
        offsets = tap_offsets(taps, self.dilation)
        padded = padded_map(inputs[0], self.padding, self.around, np.float32)
        result = np.empty((filters, shape.height, shape.width), np.float32)
        rows = max(COLUMN_VALUES // (column * shape.width), -(-MIN_FLOAT_COLUMNS // shape.width), 1)
        for first, last in row_blocks(shape.height, rows):
            block = Shape(filters, last - first, shape.width)
            columns = columns_of(padded[:, first * self.stride :], offsets, self.stride, block)
            products = weights @ columns.reshape(self.groups, channels * len(taps), -1)
            values = normalised(products.reshape(filters, -1), self.batch_norm, self.bias, self.activation)
            result[:, first:last] = values.reshape(filters, -1, shape.width)
        return result


@dataclass(frozen=True, eq=False)
class QConvolution(Accumulating):
    """An integer convolution whose accumulators are requantised to the output's datatype.

    Attributes:
        weights: int [filters, channels / groups, rows, columns], narrow (−127…127 at 8 bits).
        around: The integer of the padding, which is the zero point of the input.
        dilation: Rows and columns of the map from one tap of the kernel to the next; 1 along a side of one tap.
    """

    weights: IntArray
    weight_type: DataType
    requantiser: Requantising
    stride: int
    padding: Padding
    groups: int
    around: int = 0
    dilation: tuple[int, int] = (1, 1)

    __repr__ = short_repr

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of the map that the kernel covers, including the gaps of a dilated kernel."""
        return covered(self.weights.shape[2:], self.dilation)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return _output_shape(self, read[0])

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return convolve(inputs[0], read[0].type.datatype, self, output.shape, output.type.datatype)

    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        return weight_sums(self.weights, magnitude(read[0]))

    def check_operands(self, read: Sequence[Tensor]) -> None:
        check_weights(self.weights, self.weight_type)
        source = read[0].type
        if self.around != source.zero_point:
            what = "the value of the padding, the zero point of its input,"
            raise MismatchError(what, self.around, source.zero_point)
        if any(self.padding.sides) and source.datatype == BIPOLAR:
            raise ConflictError(("padding", "a BIPOLAR input"), "padding puts in zeros")


def convolve(array: Integers, datatype: DataType, op: QConvolution, shape: Shape, out: DataType) -> Integers:
    """Return the requantised outputs of an integer convolution, [filters, height, width], as integers of ``out``.

    array: [C, H, W] of ``datatype``.
    """
    filters, channels = op.weights.shape[:2]
    taps = used_taps(op.weights)
    weights = tap_weights(op.weights, taps).reshape(op.groups, filters // op.groups, channels, -1)
    parts, offsets = parts_of(op, weights, magnitude(datatype)), tap_offsets(taps, op.dilation)
    padded = padded_map(array, op.padding, op.around, parts[0][1].dtype)
    result = np.empty((filters, shape.height, shape.width), out.carrier)
    column_bytes = array.shape[0] * len(taps) * padded.itemsize
    rows = max(1, COLUMN_BYTES // (column_bytes * shape.width), -(-MIN_INTEGER_COLUMNS // shape.width))
    for first, last in row_blocks(shape.height, rows):
        block = Shape(filters, last - first, shape.width)
        columns = columns_of(padded[:, first * op.stride :], offsets, op.stride, block)
        total = multiply(parts, columns.reshape(op.groups, channels, len(taps), -1))
        result[:, first:last] = requantise_floats(total, op.requantiser, out).reshape(filters, -1, shape.width)
    return result


def _output_shape(op: Convolution | QConvolution, read: Shape) -> Shape:
    if op.weights.ndim != 4 or min(op.weights.shape) < 1:
        raise ShapeError("the weights", op.weights.shape, "4 dimensions, each at least 1")
    filters, channels = op.weights.shape[:2]
    if op.stride < 1:
        raise RangeError("the stride", op.stride, low=1)
    for step in op.dilation:
        if not 1 <= step <= MAX_WINDOW:
            raise RangeError("the dilation", step, 1, MAX_WINDOW)
    if op.groups < 1 or filters % op.groups:
        raise InvalidValueError("the groups", op.groups, f"a divisor of {filters} filters")
    if channels * op.groups != read.channels:
        what = f"the channels of {op.groups} groups, {channels} each,"
        raise MismatchError(what, channels * op.groups, read.channels)
    return window_shape(op.window, filters, op.stride, op.padding, read)
