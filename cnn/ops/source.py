"""The input image, as the first operation of a float network and of an integer network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import FloatOperation, IntegerOperation, Tensor


@dataclass(frozen=True)
class Input(FloatOperation):
    """The input image of a float network: RGB values 0…1, which are the pixels divided by 255."""

    input_counts = (0, 0)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        """Return a copy of the input image, float32 [channels, height, width]."""
        return np.array(inputs[0])


@dataclass(frozen=True)
class QInput(IntegerOperation):
    """The input image of a quantised network: unchanged uint8 pixels, whose scale is 1/255."""

    input_counts = (0, 0)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        """Return a copy of the input image, uint8 [channels, height, width]."""
        return np.array(inputs[0])
