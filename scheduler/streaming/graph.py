"""The streaming graph: one frozen block a piece of hardware, streams between them.

A stream carries a map pixel by pixel, row by row; of a pixel its channels in ascending order, ``lanes`` of them a
word. What a window emits is a pixel of kernel · kernel · channels values (``Window.order`` says in which order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cnn.datatype import DataType
from cnn.maps import IntArray, Padding, Shape
from cnn.ops import MaxPool
from cnn.requantise import Requantising
from cnn.tables import Table
from scheduler.streaming.blocks.kind import Kind

MOST_LABELS = 32
"""That a label select chooses."""


@dataclass(frozen=True)
class StreamType:
    """``shape.height`` × ``shape.width`` pixels of ``shape.channels`` values."""

    shape: Shape
    datatype: DataType


@dataclass(frozen=True)
class Source:
    """The picture, uint8, from the DMA."""


@dataclass(frozen=True)
class Sink:
    """A map that leaves through the DMA."""


@dataclass(frozen=True)
class Window:
    """Sliding-window unit (SWU, im2col), with the padding put in at the borders: pixels of ``around``."""

    kernel: tuple[int, int]
    stride: int
    padding: Padding
    depthwise: bool = False
    dilation: int = 1
    around: int = 0


@dataclass(frozen=True, eq=False)
class MatrixVector:
    """MVU: weights int [MH = filters, channels, kernel height, kernel width]; MW = all but the first.

    activation: what turns exact sums into output values; None where the sums themselves leave.
    """

    weights: IntArray
    weight_type: DataType
    activation: Requantising | None


@dataclass(frozen=True, eq=False)
class VectorVector:
    """VVU, depthwise: weights int [channels, 1, kernel height, kernel width]."""

    weights: IntArray
    weight_type: DataType
    activation: Requantising | None


@dataclass(frozen=True, eq=False)
class Activate:
    """Thresholding, requantisation or a table as a block of its own."""

    activation: Requantising | Table


@dataclass(frozen=True, eq=False)
class GlobalPool:
    """Σ over the map (global accumulate), then the activation."""

    activation: Requantising


@dataclass(frozen=True, eq=False)
class Add:
    """Σ input · multiplier, then the activation."""

    multipliers: tuple[int, ...]
    activation: Requantising


@dataclass(frozen=True, eq=False)
class Multiply:
    """The product of both inputs, then the activation."""

    activation: Requantising


@dataclass(frozen=True)
class Duplicate:
    """One stream to ``copies`` readers."""

    copies: int


@dataclass(frozen=True)
class Concat:
    """Streams one after the other along the channels."""


@dataclass(frozen=True)
class Split:
    """The channels cut into consecutive parts, an output each."""

    parts: tuple[int, ...]


@dataclass(frozen=True)
class Reorg:
    """Space to depth. order: "darknet" (its reorg_cpu) or "block" ([row][column][channel] of each block)."""

    stride: int
    order: str = "darknet"


@dataclass(frozen=True)
class DepthToSpace:
    """The channels of each pixel become a block of so many rows and columns: [row][column][channel]."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Upsample:
    """Each pixel repeated in so many rows and columns."""

    rows: int
    columns: int


@dataclass(frozen=True)
class DownSample:
    """Every ``stride``-th pixel of every ``stride``-th row."""

    stride: int


@dataclass(frozen=True)
class LabelSelect:
    """Of each pixel the numbers of the ``k`` channels with the greatest values; values: a second output has these."""

    k: int
    values: bool = False


@dataclass(frozen=True, eq=False)
class Softmax:
    """Of each pixel the shares of its channels, by a method of cnn.softmax. powers: what that looks up, if anything."""

    method: str
    powers: Table | None


@dataclass(frozen=True)
class Discard:
    """A part of a split that nobody reads: its words are taken and dropped."""


class PackageBlock(Protocol):
    """What a graph knows of a package's block, an AddedBlock (blocks/added.py), whose functions take graphs."""

    @property
    def kind(self) -> Kind:
        """Its words and its pipeline."""


@dataclass(frozen=True)
class Custom:
    """A layer of a package, by its name, with its parameters and the block that the package has for it."""

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
"""Blocks of hls_templates/streaming."""

BlockOp: TypeAlias = OwnOp | Custom

Unit: TypeAlias = MatrixVector | VectorVector
"""Blocks with weights."""

Summing: TypeAlias = Add | Multiply | GlobalPool | Activate
"""Blocks that compute without weights."""

Computing: TypeAlias = Unit | Summing
"""Blocks that have an activation after what they compute."""


def kind_name(op: BlockOp) -> str:
    """What a block is, in reports."""
    return op.layer if isinstance(op, Custom) else type(op).__name__


@dataclass(frozen=True)
class Port:
    """Output ``output`` of block ``block``."""

    block: int
    output: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """``node``: the layer of the network whose integers leave at output 0 (of a sink: that it takes), None inside of
    a layer. ``second``: that of output 1, where it is another layer's."""

    name: str
    op: BlockOp
    inputs: tuple[Port, ...]
    outputs: tuple[StreamType, ...]
    node: int | None
    source: str
    second: int | None = None


@dataclass(frozen=True, eq=False)
class StreamGraph:
    """Blocks in topological order, block 0 the source; every output has exactly one reader."""

    name: str
    blocks: tuple[Block, ...]

    def type_of(self, port: Port) -> StreamType:
        return self.blocks[port.block].outputs[port.output]

    def inputs_of(self, block: Block) -> tuple[StreamType, ...]:
        return tuple(self.type_of(port) for port in block.inputs)


@dataclass(frozen=True)
class Fold:
    """How a block is folded in time.

    pe: output channels computed together; simd: input channels taken together (of a parallel window: channels of
    every tap). m: pixels of a row in one word of what comes (M); pixels: output pixels that one pass over the weights
    serves, gathered where they are more than m. style: of a window, "default" (a word of ``simd`` channels of one tap a
    cycle) or "parallel" (all taps a cycle). memory: "embedded", "decoupled" or "external"; ram: "auto", "lutram",
    "bram" or "uram", of external weights that of the vectors which wait for them; multiplier: "dsp" or "lut".
    pad_in, pad_out: channels beyond the network's that the block takes and gives, zeros that width converters put in
    and crop.
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
    """One fold a block of ``graph``, and the FIFO depth before each (block, input) where it is not the least."""

    graph: StreamGraph
    folds: tuple[Fold, ...]
    depths: tuple[tuple[int, int, int], ...] = ()
