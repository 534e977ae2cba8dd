"""Sums and products of maps, value by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError
from cnn.activations import activate
from cnn.checks import check_numbers
from cnn.datatype import DataType, magnitude
from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import Accumulating, FloatOperation, Tensor, check_one_shape
from cnn.requantise import Requantising, requantise

ADD_LIMIT = 1 << 14
"""The greatest multiplier of an addition."""


@dataclass(frozen=True)
class Add(FloatOperation):
    """The element-wise sum of two or more float maps of one shape (darknet ``shortcut``), then an activation."""

    activation: str

    input_counts = (1, None)
    calibrated = True

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return check_one_shape(read, "the inputs of an add")

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return activate(sum(inputs[2:], inputs[0] + inputs[1]), self.activation)


@dataclass(frozen=True, eq=False)
class QAdd(Accumulating):
    """The element-wise sum of integer maps, each times its own multiplier (1…16384), requantised to the output.

    The multipliers bring inputs of different scales to one accumulator scale. All are 1 if the scales are equal.
    """

    multipliers: tuple[int, ...]
    requantiser: Requantising

    input_counts = (1, None)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return check_one_shape(read, "the inputs of an add")

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        sums = sum(array.astype(np.int64) * m for array, m in zip(inputs, self.multipliers, strict=True))
        return requantise(np.asarray(sums), self.requantiser, output.type.datatype)

    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        return np.array([sum(m * magnitude(type) for m, type in zip(self.multipliers, read, strict=True))])

    def check_operands(self, read: Sequence[Tensor]) -> None:
        if len(self.multipliers) != len(read):
            raise MismatchError("the number of multipliers", len(self.multipliers), len(read))
        check_numbers("a multiplier", np.array(self.multipliers), 1, ADD_LIMIT)


@dataclass(frozen=True)
class Multiply(FloatOperation):
    """The element-wise product of two float maps of one shape (darknet ``sam``, ``scale_channels``), then an
    activation."""

    activation: str

    input_counts = (2, 2)
    calibrated = True

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return check_one_shape(read, "the inputs of a product")

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return activate(inputs[0] * inputs[1], self.activation)


@dataclass(frozen=True, eq=False)
class QMultiply(Accumulating):
    """The element-wise product of two integer maps with zero points of 0, requantised to the output."""

    requantiser: Requantising

    input_counts = (2, 2)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return check_one_shape(read, "the inputs of a product")

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return requantise(inputs[0].astype(np.int64) * inputs[1], self.requantiser, output.type.datatype)

    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        return np.array([magnitude(read[0]) * magnitude(read[1])])

    def check_operands(self, read: Sequence[Tensor]) -> None:
        zeros = [source.type.zero_point for source in read]
        if any(zeros):
            raise MismatchError("the zero points of maps that are multiplied", zeros, [0, 0])
