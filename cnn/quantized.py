"""The integer network, which the golden models, the scheduler and the generator share.

The value of a tensor's element is (integer − zero point) × scale; the zero point is 0 but where a file brings its own
quantisation. Every operation that computes carries its own
requantiser, so that the arithmetic contract stands in one place (docs/explanation/quantisation.md):

    Requantiser     y = saturate(((acc + bias) · m + 2^(s − 1)) >> s)
                    m = multiplier or, where acc + bias < 0, negative
    MultiplyShift   y = saturate((acc · multiplier + bias + 2^(s − 1)) >> s)
    Thresholds      y = low + step · Σ_i [±acc ≥ t_i]

The first two round a half up. Networks of files that round it to the even integer say so in ``halves``: the product p
is taken without its NEAR_HALF lowest bits, and where 2^s divides p + 2^(s − 1), y is the even one of the two nearest
integers, or the odd one, which was even before an odd zero point was added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType
from cnn.dilation import covered
from cnn.named_outputs import NamedOutput
from cnn.network import (
    Concat,
    Custom,
    DepthToSpace,
    Detection,
    MaxPool,
    Node,
    Op,
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

IntArray = npt.NDArray[np.signedinteger]

UP, EVEN, ODD = "up", "even", "odd"
HALVES = (UP, EVEN, ODD)
"""The integer that a half is rounded to."""


def beyond_zero(halves: str, zero: int) -> str:
    """Return how a half is rounded in integers that are greater, or less, by ``zero``."""
    return {EVEN: ODD, ODD: EVEN}.get(halves, halves) if zero % 2 else halves


NEAR_HALF = 12
"""Bits of a product that do not count where halves are rounded to even: a factor that is no power of two has 16 bits of
which the last is rounded, so that a half of the file comes out near a half."""

TABLE_BITS = 8
"""Bits of a value that choose a piece of a table; or an entry, unless more are needed."""

VALUES_BITS = 12
"""The most bits that choose an entry. A table of values is exact, and has up to 4,096 of them."""


@dataclass(frozen=True)
class TensorType:
    """value = (integer − zero_point) × scale."""

    datatype: DataType
    scale: float
    zero_point: int = 0


@dataclass(frozen=True, eq=False)
class Requantiser:
    """Per output channel: bias int64 (accumulator scale), multiplier and negative in 0…65535, shift ≥ 1.

    ``negative`` multiplies where acc + bias < 0: 0 for ReLU, slope · multiplier for leaky ReLU,
    ``multiplier`` itself for a linear layer. halves: one of HALVES.
    """

    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.int64]
    negative: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    halves: str = field(default=UP, kw_only=True)

    @property
    def channels(self) -> int:
        """How many output channels it is for."""
        return int(self.bias.size)


def identity(channels: int) -> Requantiser:
    """A Requantiser that leaves the sum as it is, where the output's datatype holds it: y = (2 · acc + 1) >> 1."""

    def full(value: int) -> npt.NDArray[np.int64]:
        return np.full(channels, value, np.int64)

    return Requantiser(full(0), full(2), full(2), full(1))


@dataclass(frozen=True, eq=False)
class MultiplyShift:
    """Batch norm as one multiplication, addition and shift (UltraNet's inc, bias and l_shift).

    Per output channel, all int64. multiplier: −65535…65535, below 0 where the batch norm's gamma is. bias: at the
    scale of the product, |bias| < 2^47. shift: 1…47. halves: one of HALVES.
    """

    multiplier: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    halves: str = field(default=UP, kw_only=True)

    @property
    def channels(self) -> int:
        """How many output channels it is for."""
        return int(self.bias.size)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """y counts the thresholds that the sum reaches, per output channel: any function that only rises or only falls.

    thresholds: int64 [channels, levels of the output datatype], ascending. flip: bool [channels], True where −acc is
    compared instead of acc: there the function falls. |t| ≤ 2^31; a threshold that no sum reaches is the greatest
    acc + 1.
    """

    thresholds: npt.NDArray[np.int64]
    flip: npt.NDArray[np.bool_]

    @property
    def channels(self) -> int:
        """How many output channels it is for."""
        return int(self.flip.size)


@dataclass(frozen=True, eq=False)
class Table:
    """Any function of one input value, the same in every channel: y = values[x − the least x].

    values: int64, of each integer of the input's datatype, of at most VALUES_BITS; or, of more than TABLE_BITS, what
    the first input of each of 256 pieces of lines becomes, and slopes: what these rise by (cnn.quantisation.tables).
    """

    values: npt.NDArray[np.int64]
    slopes: npt.NDArray[np.int64] | None = None


Requantising: TypeAlias = Requantiser | MultiplyShift | Thresholds
"""What turns an exact sum into an output value."""


def numbers_of(by: Requantising) -> dict[str, npt.NDArray[Any]]:
    """Its arrays, each with a row or a number of every channel, by their names."""
    return {each.name: getattr(by, each.name) for each in fields(by) if each.name != "halves"}


@dataclass(frozen=True)
class QInput:
    """Pixels as they come: uint8, scale 1/255."""


@dataclass(frozen=True, eq=False)
class QConvolution:
    """A convolution of integers.

    Attributes:
        weights: int [filters, channels / groups, rows, columns of places], narrow (−127…127 at 8 bits).
        around: the integer that padding has, the zero point of the input.
        dilation: rows and columns of the map from one place of the window to the next; 1 along a side of one place.
    """

    weights: IntArray
    weight_type: DataType
    requantiser: Requantising
    stride: int
    padding: Padding
    groups: int
    around: int = 0
    dilation: tuple[int, int] = (1, 1)

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of the map that the window covers, those between its places too."""
        return covered(self.weights.shape[2:], self.dilation)


@dataclass(frozen=True, eq=False)
class QDense:
    """weights int [outputs, inputs], inputs in channel-first order."""

    weights: IntArray
    weight_type: DataType
    requantiser: Requantising


@dataclass(frozen=True, eq=False)
class QAveragePool:
    """Sum over the map, then the requantiser (m / 2^s ≈ input scale / (height · width · output scale))."""

    requantiser: Requantising


@dataclass(frozen=True, eq=False)
class QAdd:
    """acc = Σ input · multiplier, one multiplier an input, 1…16384; then the requantiser.

    The multipliers bring inputs of different scales to one accumulator scale; all are 1 where the
    scales are equal already.
    """

    multipliers: tuple[int, ...]
    requantiser: Requantising


@dataclass(frozen=True, eq=False)
class QMultiply:
    """acc = the product of both inputs, whose zero points are 0; then the requantiser."""

    requantiser: Requantising


@dataclass(frozen=True, eq=False)
class QActivate:
    """A function of each value by itself."""

    table: Table


@dataclass(frozen=True, eq=False)
class QSoftmax:
    """Of each position the shares of its channels, p · 256 as UINT8, by a method of cnn.softmax.

    table: the powers of e that the method looks up; None where it needs none.
    """

    method: str
    table: Table | None


QOp = (
    QInput
    | QConvolution
    | QDense
    | MaxPool
    | QAveragePool
    | Concat
    | Slice
    | Reorg
    | DepthToSpace
    | Pad
    | Upsample
    | QAdd
    | QMultiply
    | QActivate
    | QSoftmax
    | Custom
    | Softmax
    | TopK
    | Output
    | Detection
)


@dataclass(frozen=True, eq=False)
class QNode:
    """One layer; ``shape`` and ``type`` are those of its output, ``source`` as in cnn.network.Node."""

    name: str
    op: QOp
    inputs: tuple[int, ...]
    shape: Shape
    type: TensorType
    source: str

    @property
    def place(self) -> str:
        """The name and the source, as errors give them."""
        return f"{self.name!r} ({self.source})"

    @property
    def requantiser(self) -> Requantising | None:
        """What turns its sums into values; None of a node that adds nothing up."""
        by: Requantising | None = getattr(self.op, "requantiser", None)
        return by


@dataclass(frozen=True, eq=False)
class QuantizedNetwork:
    """``nodes`` have the indices of the float network that it came from.

    From a Softmax, TopK, Output or Detection on, nodes run on the host: their ``type`` is that of their first input,
    and they hold no integers of their own. But what a TopK chooses among integers is integers, labels of
    ``label_type``: a pipeline does it too. ``named_outputs`` are the float network's.
    """

    name: str
    nodes: tuple[QNode, ...]
    labels: tuple[str, ...] = ()
    named_outputs: tuple[NamedOutput, ...] = ()

    def __repr__(self) -> str:
        shape = self.input_shape
        size = f"{shape.width} × {shape.height} pixels of {shape.channels} channels"
        return f"<quantised {self.name}: {len(self.nodes)} nodes, {size}>"

    @property
    def input_shape(self) -> Shape:
        """Of the picture."""
        return self.nodes[0].shape


def on_host(op: QOp | Op) -> bool:
    """True for the operations that the accelerator may leave to the host."""
    return isinstance(op, (Softmax, TopK, Output, Detection))


def has_integers(nodes: Sequence[QNode] | Sequence[Node], index: int) -> bool:
    """Whether a node gives integers: it does not run on the host, or chooses among such."""
    node = nodes[index]
    return not on_host(node.op) or (isinstance(node.op, TopK) and not on_host(nodes[node.inputs[0]].op))


def label_type(classes: int) -> TensorType:
    """Of the labels of so many classes."""
    return TensorType(DataType(max(1, (classes - 1).bit_length()), False), 1.0)
