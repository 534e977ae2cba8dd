"""Operations that move values, or repeat them: concats, slices, blocks of pixels, borders and repeated pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError, listed
from cnn.limits import MAX_PADDING
from cnn.maps import FloatArray, Padding, Shape
from cnn.ops.operation import Move, Number, Tensor


@dataclass(frozen=True)
class Concat(Move):
    """The concatenation of maps along their channels (darknet ``route``)."""

    input_counts = (1, None)

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        if len({(shape.height, shape.width) for shape in read}) > 1:
            raise ShapeError("the inputs of a concat", listed(read), "one height and width")
        return Shape(sum(shape.channels for shape in read), read[0].height, read[0].width)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        return np.concatenate(arrays)


@dataclass(frozen=True)
class Slice(Move):
    """The selection of the channels ``first`` … ``first + channels − 1`` of a map (darknet ``route`` with
    ``groups``)."""

    first: int
    channels: int

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        source = read[0]
        if not 0 <= self.first < source.channels:
            raise RangeError("the first channel of the slice", self.first, 0, source.channels - 1)
        most = source.channels - self.first
        if not 1 <= self.channels <= most:
            raise RangeError("the number of channels of the slice", self.channels, 1, most)
        return Shape(self.channels, source.height, source.width)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        return arrays[0][self.first : self.first + self.channels]


@dataclass(frozen=True)
class Reorg(Move):
    """Space to depth: each block of ``stride`` × ``stride`` pixels becomes one pixel with stride² times the channels.

    Attributes:
        order: "darknet" is the order of its reorg_cpu. In the order "block", output channel
            (row · stride + column) · channels + c is channel c of that row and column of each block.
    """

    stride: int
    order: str = "darknet"

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        s, source = self.stride, read[0]
        if self.order not in ("darknet", "block"):
            raise ChoiceError("the order of the reorg", self.order, ("darknet", "block"))
        divisor = s * s if self.order == "darknet" else 1
        if s < 1 or source.channels % divisor or source.height % s or source.width % s:
            square = ", and its square of the channels," if self.order == "darknet" else ""
            required = f"a divisor of height and width{square} of {source}"
            raise InvalidValueError("the stride of the reorg", s, required)
        return Shape(source.channels * s * s, source.height // s, source.width // s)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        """Return the map as [C · s², H / s, W / s]; darknet's reorg_cpu (src/blas.c) reads its input as C/s² × H·s ×
        W·s."""
        (channels, height, width), s = arrays[0].shape, self.stride
        if self.order == "block":
            blocks = arrays[0].reshape(channels, height // s, s, width // s, s).transpose(2, 4, 0, 1, 3)
        else:
            blocks = arrays[0].reshape(channels // s**2, height, s, width, s).transpose(2, 4, 0, 1, 3)
        deep: npt.NDArray[Number] = blocks.reshape(channels * s**2, height // s, width // s)
        return deep


@dataclass(frozen=True)
class DepthToSpace(Move):
    """Depth to space: groups of channels become blocks of pixels, the inverse of a ``Reorg`` with order "block".

    Channel (row · columns + column) · channels + c becomes channel c at that row and column of a block of
    ``rows`` × ``columns`` pixels.
    """

    rows: int
    columns: int

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        places, source = self.rows * self.columns, read[0]
        if min(self.rows, self.columns) < 1 or source.channels % places:
            required = f"at least 1×1, and its area a divisor of {source.channels} channels"
            raise InvalidValueError("the block", f"{self.rows}×{self.columns}", required)
        return Shape(source.channels // places, source.height * self.rows, source.width * self.columns)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        _, height, width = arrays[0].shape
        blocks = arrays[0].reshape(self.rows, self.columns, -1, height, width).transpose(2, 3, 0, 4, 1)
        larger: npt.NDArray[Number] = blocks.reshape(-1, height * self.rows, width * self.columns)
        return larger


PAD_MODES = ("edge", "reflect", "wrap")


@dataclass(frozen=True)
class Pad(Move):
    """Padding of a map with rows and columns of its own values: repeated edge, reflection or wrap-around.

    Attributes:
        padding: The number of rows and columns on each side.
        mode: "edge" repeats the outermost values, "reflect" mirrors the map at them, "wrap" continues with the
            opposite side.
    """

    padding: Padding
    mode: str

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        if self.mode not in PAD_MODES:
            raise ChoiceError("the mode of the padding", self.mode, PAD_MODES)
        top, left, bottom, right = self.padding.sides
        source = read[0]
        for front, back, length in ((top, bottom, source.height), (left, right, source.width)):
            most = most_repeated(self.mode, length)
            for side in (front, back):
                if not 0 <= side <= most:
                    raise RangeError("the padding", side, 0, most)
        return Shape(source.channels, source.height + top + bottom, source.width + left + right)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        top, left, bottom, right = self.padding.sides
        sides = ((0, 0), (top, bottom), (left, right))
        larger: npt.NDArray[Number] = np.pad(arrays[0], sides, mode=self.mode)  # type: ignore[call-overload]
        return larger


def most_repeated(mode: str, length: int) -> int:
    """Return the most rows or columns that ``Pad`` may add on one side of a map with ``length`` of them."""
    return min({"edge": MAX_PADDING, "reflect": length - 1, "wrap": length}[mode], MAX_PADDING)


@dataclass(frozen=True)
class Upsample(Move):
    """Nearest-neighbour upsampling: each pixel is repeated ``stride`` × ``across`` times and multiplied by
    ``scale``."""

    stride: int
    scale: float = 1.0
    across: int = 0

    @property
    def columns(self) -> int:
        """The number of output columns per input column: ``across``, or ``stride`` if that is 0."""
        return self.across or self.stride

    def output_shape(self, read: Sequence[Shape]) -> Shape:
        if min(self.stride, self.columns) < 1:
            raise RangeError("the stride of the upsample", min(self.stride, self.columns), low=1)
        return Shape(read[0].channels, read[0].height * self.stride, read[0].width * self.columns)

    def move(self, arrays: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        return arrays[0].repeat(self.stride, axis=1).repeat(self.columns, axis=2)

    def run(self, inputs: Sequence[FloatArray], shape: Shape) -> FloatArray:
        larger: FloatArray = self.move(inputs) * np.float32(self.scale)
        return larger

    def check(self, read: Sequence[Tensor], output: Tensor) -> None:
        if self.scale != 1.0:
            raise InvalidValueError("the scale of the upsample", self.scale, "1, which keeps integers")
        super().check(read, output)
