"""The streaming graph: blocks, each of which is one hardware unit, connected by streams.

A stream carries a feature map pixel by pixel in row-major order. The channels of a pixel are in ascending order, with
a fixed number of values (lanes) per word. A sliding window's output pixel has kernel rows · kernel columns · channels
values. A window of style "default" orders them (tap, channel), or (channel, tap) for a depthwise unit. A window of
style "parallel" orders them (group of SIMD channels, tap, channel).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cnn.datatype import DataType
from cnn.maps import IntArray, Padding, Shape, short_repr
from cnn.ops import MaxPool
from cnn.requantise import Requantising
from cnn.tables import Table
from scheduler.streaming.blocks.kind import Kind

MAX_LABELS = 32
"""The maximum number of labels that a label select can choose per pixel."""


@dataclass(frozen=True)
class StreamType:
    """The type of a stream between two blocks: the shape and datatype of the feature map that it carries per frame.

    Attributes:
        shape: The shape of the map, ``(channels, rows, columns)``. The shape excludes channel padding.
        datatype: The type of one value.
    """

    shape: Shape
    datatype: DataType


@dataclass(frozen=True)
class Source:
    """The input block of the pipeline: a DMA reads the input image from DDR as uint8 values."""


@dataclass(frozen=True)
class Sink:
    """An output block of the pipeline: a DMA writes a feature map to DDR for the host."""


@dataclass(frozen=True)
class Window:
    """A sliding-window unit (SWU, im2col): it outputs the pixels under the kernel per position, and adds the padding at
    the borders.

    Attributes:
        kernel: The kernel's rows and columns.
        stride: The stride of rows and columns.
        padding: The rows and columns of padding at each border.
        depthwise: Whether the reader is a depthwise unit, which needs the order (channel, tap).
        dilation: The distance between two taps of the kernel, in input pixels.
        around: The value of padding pixels.
    """

    kernel: tuple[int, int]
    stride: int
    padding: Padding
    depthwise: bool = False
    dilation: int = 1
    around: int = 0


@dataclass(frozen=True, eq=False)
class MatrixVector:
    """A matrix-vector unit (MVU), which computes a convolution or a fully connected layer.

    Attributes:
        weights: Integers of shape ``(filters, channels, kernel rows, kernel columns)``. As a matrix, the weights have
            MH = filters rows and MW = channels · kernel rows · kernel columns columns.
        weight_type: The type of one weight.
        activation: Converts the exact sums to output values. With None, the sums are the output.
    """

    weights: IntArray
    weight_type: DataType
    activation: Requantising | None

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class VectorVector:
    """A vector-vector unit (VVU), which computes a depthwise convolution.

    Attributes:
        weights: Integers of shape ``(channels, 1, kernel rows, kernel columns)``.
        weight_type: The type of one weight.
        activation: Converts the exact sums to output values. With None, the sums are the output.
    """

    weights: IntArray
    weight_type: DataType
    activation: Requantising | None

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Activate:
    """An activation as a separate block: thresholds, a requantiser or a table."""

    activation: Requantising | Table


@dataclass(frozen=True, eq=False)
class GlobalPool:
    """A global average pool block: the sum of each channel over the map, then the activation, which also divides."""

    activation: Requantising


@dataclass(frozen=True, eq=False)
class Add:
    """An addition block: the sum of its input maps, each times its own multiplier, then the activation."""

    multipliers: tuple[int, ...]
    activation: Requantising


@dataclass(frozen=True, eq=False)
class Multiply:
    """A multiplication block: the element-wise product of its two input maps, then the activation."""

    activation: Requantising


@dataclass(frozen=True)
class Duplicate:
    """A block that copies its input stream to each of ``copies`` output streams."""

    copies: int


@dataclass(frozen=True)
class Concat:
    """A block that concatenates its input maps along the channels."""


@dataclass(frozen=True)
class Split:
    """A block that splits a map's channels into consecutive parts: output i has ``parts[i]`` channels."""

    parts: tuple[int, ...]


@dataclass(frozen=True)
class Reorg:
    """A space-to-depth block: each square of ``stride`` × ``stride`` pixels becomes one pixel.

    Attributes:
        stride: The rows and columns of each square, in pixels.
        order: The order of the output channels: "darknet" as in darknet's reorg_cpu, or "block" for (row, column,
            channel) within each square.
    """

    stride: int
    order: str = "darknet"


@dataclass(frozen=True)
class DepthToSpace:
    """A depth-to-space block: each pixel becomes a rectangle of ``rows`` × ``columns`` pixels.

    The pixel's channels are in the order (row, column, channel) of the block.
    """

    rows: int
    columns: int


@dataclass(frozen=True)
class Upsample:
    """A nearest-neighbour upsampling block: each pixel is repeated in ``rows`` rows and ``columns`` columns."""

    rows: int
    columns: int


@dataclass(frozen=True)
class DownSample:
    """A downsampling block: its output is every ``stride``-th pixel of every ``stride``-th row."""

    stride: int


@dataclass(frozen=True)
class LabelSelect:
    """A top-k block: it selects the k channels with the greatest values of each pixel.

    Attributes:
        k: The number of channels to choose per pixel.
        values: Whether a second output has the chosen channels' values. The first output has the channels' indices.
    """

    k: int
    values: bool = False


@dataclass(frozen=True, eq=False)
class Softmax:
    """A block that computes the softmax over the channels of each pixel in integers.

    Attributes:
        method: The method of cnn.softmax.
        powers: The table of powers that the method looks up, or None if the method needs no table.
    """

    method: str
    powers: Table | None


@dataclass(frozen=True)
class Discard:
    """A block that reads and drops a stream that no layer needs, such as an unused output of a split."""


class PackageBlock(Protocol):
    """The interface of a package's hardware block (``AddedBlock``) that the graph needs: its ``kind`` alone.

    The block is an AddedBlock (blocks/added.py). That module imports this one, so this one cannot import its class.
    """

    @property
    def kind(self) -> Kind:
        """The block's ``Kind``: its parallelism, pipeline depth and padding."""


@dataclass(frozen=True)
class Custom:
    """The operation of a block that computes a layer added by a package.

    Attributes:
        layer: The layer's name in the package.
        parameters: The layer's parameters.
        block: The hardware block that the package registers for the layer.
    """

    layer: str
    parameters: tuple[int, ...]
    block: PackageBlock


OwnOp: TypeAlias = (
    Source
    | Sink
    | Discard
    | Window
    | MatrixVector
    | VectorVector
    | Activate
    | MaxPool
    | GlobalPool
    | Add
    | Multiply
    | Duplicate
    | Concat
    | Split
    | Reorg
    | DepthToSpace
    | Upsample
    | DownSample
    | LabelSelect
    | Softmax
)
"""Blocks that hls_templates/streaming implements."""

BlockOp: TypeAlias = OwnOp | Custom

Unit: TypeAlias = MatrixVector | VectorVector
"""Blocks with weights."""

Summing: TypeAlias = Add | Multiply | GlobalPool | Activate
"""Blocks without weights that have an activation."""

Computing: TypeAlias = Unit | Summing
"""Blocks that can apply an activation to their result."""


def kind_name(op: BlockOp) -> str:
    """Return the name of a block's kind of hardware for reports."""
    return op.layer if isinstance(op, Custom) else type(op).__name__


@dataclass(frozen=True)
class Port:
    """The address of a stream's start: output number ``output`` of the block with index ``block``."""

    block: int
    output: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """A node of the streaming graph: one hardware unit with its operation and its input and output streams.

    Attributes:
        name: The block's name, unique in the graph.
        op: The operation.
        inputs: The output ports of other blocks that the block reads.
        outputs: The type of each output.
        node: The network's layer whose map output 0 carries, or whose map a sink reads. With None, output 0 carries an
            intermediate map within a layer.
        source: The place of the layer in the network's file, for errors.
        second: The layer whose map output 1 carries, if that is a layer of its own.
    """

    name: str
    op: BlockOp
    inputs: tuple[Port, ...]
    outputs: tuple[StreamType, ...]
    node: int | None
    source: str
    second: int | None = None


@dataclass(frozen=True, eq=False)
class StreamGraph:
    """A network as a pipeline of blocks.

    Attributes:
        name: The name of the network.
        blocks: The blocks in topological order. Block 0 is the source. Every output has exactly one reader.
    """

    name: str
    blocks: tuple[Block, ...]

    def type_of(self, port: Port) -> StreamType:
        return self.blocks[port.block].outputs[port.output]

    def inputs_of(self, block: Block) -> tuple[StreamType, ...]:
        return tuple(self.type_of(port) for port in block.inputs)


@dataclass(frozen=True)
class Fold:
    """The parallelism of one block (the values that it processes per cycle), and its choice of memories and
    multipliers.

    Attributes:
        pe: The output channels computed in parallel.
        simd: The input channels read in parallel. A window of style "parallel" reads them for every tap.
        pixels: The output pixels computed per pass over the weights. If this exceeds ``m``, pixels are gathered first.
        style: The output of a window per cycle: "default" for ``simd`` channels of one tap, "parallel" for all taps.
        memory: The location of the weights: "embedded", "decoupled" or "external" (DDR).
        ram: The kind of RAM for the block's weights or map rows: "auto", "lutram", "bram" or "uram". With external
            weights, this RAM stores the input vectors that wait for the weights.
        multiplier: The implementation of multipliers: "dsp" or "lut".
        m: The pixels of a row per input word (M).
        pad_in: The channels of zeros added to the network's input channels. A width converter inserts them.
        pad_out: The channels added to the network's output channels. A width converter removes them.
    """

    pe: int = 1
    simd: int = 1
    pixels: int = 1
    style: str = "default"
    memory: str = "embedded"
    ram: str = "auto"
    multiplier: str = "dsp"
    m: int = 1
    pad_in: int = 0
    pad_out: int = 0


@dataclass(frozen=True, eq=False)
class StreamingFolding:
    """A streaming design: a graph, the fold (parallelism and memories) of each block, and the FIFO depths.

    Attributes:
        graph: The graph.
        folds: One fold per block of ``graph``.
        depths: Entries of (block, input, FIFO depth in words). Other inputs have a FIFO of the minimum depth.
    """

    graph: StreamGraph
    folds: tuple[Fold, ...]
    depths: tuple[tuple[int, int, int], ...] = ()
