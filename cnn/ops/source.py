"""The input picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import FloatOperation, IntegerOperation, Tensor


@dataclass(frozen=True)
class Input(FloatOperation):
    """The picture: RGB, 0…1 after division by 255."""

    input_counts = (0, 0)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        """Return a copy of the picture, which is the only input."""
        return np.array(inputs[0])


@dataclass(frozen=True)
class QInput(IntegerOperation):
    """The pixels as they come: uint8, scale 1/255."""

    input_counts = (0, 0)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        """Return a copy of the picture, which is the only input."""
        return np.array(inputs[0])
