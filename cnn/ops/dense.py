"""Fully connected layers of floats and of integers; the input is flattened channel first, as darknet does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import ShapeError
from cnn.datatype import DataType, magnitude
from cnn.maps import FloatArray, IntArray, Integers, Shape, short_repr
from cnn.ops.operation import Accumulating, FloatOperation, Tensor
from cnn.ops.weights import EVERY_WEIGHT, BatchNorm, Stored, check_weights, multiply, normalised, parts_of, weight_sums
from cnn.requantise import Requantising, requantise_floats


@dataclass(frozen=True, eq=False)
class Dense(FloatOperation):
    """A float fully connected layer, weights [outputs, inputs], with bias, optional batch norm and activation."""

    weights: FloatArray
    bias: FloatArray
    batch_norm: BatchNorm | None
    activation: str
    stored: Stored = EVERY_WEIGHT

    calibrated = True
    __repr__ = short_repr

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return _output_shape(self.weights, read[0])

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        products: FloatArray = self.weights @ inputs[0].reshape(-1, 1)
        return normalised(products, self.batch_norm, self.bias, self.activation).reshape(-1, 1, 1)


@dataclass(frozen=True, eq=False)
class QDense(Accumulating):
    """An integer fully connected layer, weights [outputs, inputs], whose accumulators are requantised."""

    weights: IntArray
    weight_type: DataType
    requantiser: Requantising

    __repr__ = short_repr

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return _output_shape(self.weights, read[0])

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        weights = self.weights.reshape(1, *self.weights.shape, 1)
        columns = inputs[0].reshape(1, -1, 1, 1).astype(np.float64)
        total = multiply(parts_of(self, weights, magnitude(read[0].type.datatype)), columns)
        return requantise_floats(total.reshape(-1, 1), self.requantiser, output.type.datatype)[:, :, None]

    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        return weight_sums(self.weights, magnitude(read[0]))

    def check_operands(self, read: Sequence[Tensor]) -> None:
        check_weights(self.weights, self.weight_type)


def _output_shape(weights: FloatArray | IntArray, read: Shape) -> Shape:
    if weights.ndim != 2 or weights.shape[1] != read.values:
        raise ShapeError("the weights", weights.shape, f"shape (outputs, {read.values})")
    return Shape(weights.shape[0], 1, 1)
