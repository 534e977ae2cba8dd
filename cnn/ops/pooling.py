"""Max pools, and averages over the whole map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, RangeError
from cnn.datatype import DataType, magnitude
from cnn.maps import FloatArray, Integers, Padding, Shape
from cnn.ops.operation import Accumulating, FloatOperation, IntegerOperation, Number, Tensor
from cnn.ops.windows import every_tap, padded_map, tap_values, window_shape
from cnn.requantise import Requantising, requantise


@dataclass(frozen=True)
class MaxPool(FloatOperation, IntegerOperation):
    """Max pooling with a window of ``size`` rows and ``across`` columns; if ``across`` is 0, the window is square."""

    size: int
    stride: int
    padding: Padding
    across: int = 0

    passes_on = True

    @property
    def window(self) -> tuple[int, int]:
        """The rows and columns of the pooling window."""
        return self.size, self.across or self.size

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        rows, columns = self.window
        if min(rows, columns, self.stride) < 1:
            raise RangeError("the size and the stride of the pool", min(rows, columns, self.stride), low=1)
        top, left, bottom, right = self.padding.sides
        if max(top, bottom) >= rows or max(left, right) >= columns:
            raise InvalidValueError("the padding of the pool", self.padding, f"less than its size, {rows}×{columns}")
        return window_shape(self.window, read[0].channels, self.stride, self.padding, read[0])

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return self._greatest(inputs[0], shape, -np.inf)

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        return self._greatest(inputs[0], output.shape, output.type.datatype.low)

    def _greatest(self, array: npt.NDArray[Number], shape: Shape, around: float) -> npt.NDArray[Number]:
        """Return the greatest value of each window of a map, padded with the value ``around``."""
        padded = padded_map(array, self.padding, around, array.dtype)
        seen = tap_values(padded, every_tap(self.window), self.stride, shape)
        result: npt.NDArray[Number] = next(seen).copy()
        for tap in seen:
            np.maximum(result, tap, out=result)
        return result


@dataclass(frozen=True)
class AveragePool(FloatOperation):
    """Global average pooling of a float map: one value per channel."""

    calibrated = True

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return Shape(read[0].channels, 1, 1)

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return np.asarray(inputs[0].mean(axis=(1, 2), keepdims=True, dtype=np.float64), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class QAveragePool(Accumulating):
    """Global average pooling of integers: each channel's sum is requantised, which includes the division."""

    requantiser: Requantising

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return Shape(read[0].channels, 1, 1)

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        sums = inputs[0].sum(axis=(1, 2), keepdims=True, dtype=np.int64)
        return requantise(sums, self.requantiser, output.type.datatype)

    def greatest_sums(self, read: Sequence[DataType], positions: int) -> npt.NDArray[np.int64]:
        return np.array([positions * magnitude(read[0])])
