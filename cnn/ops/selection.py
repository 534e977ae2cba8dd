"""Top-k over the channels of each position, and a marker for network outputs that layers read too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import MismatchError, RangeError
from cnn.datatype import DataType, TensorType
from cnn.maps import FloatArray, Integers, Shape
from cnn.ops.operation import HostOperation, Tensor
from cnn.requantise import carried


@dataclass(frozen=True)
class TopK(HostOperation):
    """The ``k`` greatest channels at each position, in descending order; of equal values the lower channel comes first.

    Attributes:
        labels: The output has the numbers of these channels, which are the labels of classes; otherwise their values.
    """

    k: int
    labels: bool = True

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        if not 1 <= self.k <= read[0].channels:
            raise RangeError("the number of channels that are chosen", self.k, 1, read[0].channels)
        return Shape(self.k, read[0].height, read[0].width)

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return np.asarray(top_k(inputs[0], self), dtype=np.float32)

    def run_integer(self, inputs: Sequence[Integers], read: Sequence[Tensor], output: Tensor) -> Integers:
        """Return the channel numbers or values of the k greatest integers, which a streaming pipeline may
        compute too."""
        return carried(top_k(inputs[0], self), output.type.datatype)

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        if not self.labels:
            super().check(read, output)
            return
        expected = label_type(read[0].shape.channels)
        if output.type != expected:
            raise MismatchError("the type of the labels", output.type, expected)


def top_k(array: npt.NDArray[np.generic], op: TopK) -> Integers:
    """Return the k greatest channels [k, H, W] of a map [C, H, W]: their numbers as int64, or their values."""
    order = np.argsort(-array.astype(np.float64), axis=0, kind="stable")[: op.k]
    return order if op.labels else np.take_along_axis(array, order, axis=0)


def label_type(classes: int) -> TensorType:
    """Return the narrowest unsigned tensor type that holds the labels 0 … ``classes`` − 1."""
    return TensorType(DataType(max(1, (classes - 1).bit_length()), False), 1.0)


@dataclass(frozen=True)
class Output(HostOperation):
    """A marker for a network output that other layers read too: the host reads the map, and nothing is computed."""

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        return read[0]

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        return inputs[0]
