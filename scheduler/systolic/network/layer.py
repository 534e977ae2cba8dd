"""A layer of the array: a convolution with fused operations, or another node in the form of a convolution."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.maps import IntArray, Padding, Shape, short_repr
from cnn.requantise import MultiplyShift, Requantiser
from cnn.tables import Table
from contract.program import PASS_WORDS
from scheduler.systolic.network.additions import Addition
from scheduler.systolic.network.reorg import Part
from scheduler.systolic.network.views import Span


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer that the systolic array executes: a convolution with fused operations, made of one or more network nodes.

    Nodes are given by their index in the network.

    Attributes:
        name: The name of the node, with a number if the node becomes several layers.
        input: The node whose map the layer reads. If maps are read in turn, the first of them as they are stored.
        output: The node whose map the layer writes. This is the last node that is fused into the layer.
        weights: Integers (filters, channels, kernel height, kernel width). With ``depthwise``, the channels are those
            of one group, a power of two.
        requantiser: The scaling of the sums to output values, per filter.
        stride: Rows from a window to the next one. 0 if every window reads the only value of each channel.
        padding: Rows and columns of padding around the map that is read.
        depthwise: Whether each filter reads only the channels of its own group.
        pool_size: Rows and columns of the fused max pool's window. 1 without a pool.
        pool_stride: Stride of the fused max pool. 1 without a pool.
        out: Shape before the pool, without rows and columns that the pool does not read.
        saved: Shape after the pool or the upsample.
        node: The first of the nodes that the layer computes.
        stacked: Frames of a batch whose maps are computed as one map. ``out`` and ``saved`` have this many times the
            rows of one frame.
        repeats: Frames that are executed one after the other.
        joined: Input rows that are read as one row, with the blocks of all of them. The kernel of ``weights`` has this
            many rows, and the kernel on the joined row has one.
        row_step: Rows from one joined row to the next, if they are not neighbours. They are then read again for every
            output row. 0 if the joined rows are neighbours, or if ``joined`` is 1.
        column_step: Input columns from one kernel column to the next. 0 if all of them read the same column.
        spans: The channels of maps that the layer reads, in the order in which they are stored.
        shares_rows: Whether the rows that are read hold several maps, of which the layer may read only some.
        summed: Maps whose rows are read in turn, as one map with this many times the rows.
        upscale: Times that each value is written in a row, and times that each row is written.
        window: Rows and columns of a max pool that is not fused. The layer compares the places of this window. (1, 1)
            if the layer multiplies and adds.
        groups: Groups of channels of a layer that is not depthwise. A filter reads one of them, and its weights for
            the channels of the other groups are 0.
        table: The activation table in which the requantised values are looked up, or None.
        looked_up: The node whose values are looked up in the table, or None.
        around: The value of the padding.
        part: The rows and columns that the layer reads and writes, if several layers write one map. Else None.
        multiplied: Whether the two maps that are read in turn are multiplied value by value.
        spread: Neighbouring output columns that are computed from one position. Each of them takes an equal part of the
            position's channel blocks.
        added: The residual add that the Saver computes, or None.
        pass_words: Words of 32 bits of each of the layer's passes in the program.
        strip: The nodes whose maps share the rows that the layer writes, in the order in which they are stored. The
            layer's own node is one of them.
    """

    name: str
    input: int
    output: int
    weights: IntArray
    requantiser: Requantiser | MultiplyShift
    stride: int
    padding: Padding
    depthwise: bool
    pool_size: int
    pool_stride: int
    out: Shape
    saved: Shape
    node: int
    stacked: int = 1
    repeats: int = 1
    joined: int = 1
    row_step: int = 0
    column_step: int = 1
    spans: tuple[Span, ...] = ()
    shares_rows: bool = False
    summed: int = 1
    upscale: int = 1
    window: tuple[int, int] = (1, 1)
    groups: int = 1
    table: Table | None = None
    looked_up: int | None = None
    around: int = 0
    part: Part | None = None
    multiplied: bool = False
    spread: int = 1
    added: Addition | None = None
    pass_words: int = PASS_WORDS
    strip: tuple[int, ...] = ()

    __repr__ = short_repr

    @property
    def column_stride(self) -> int:
        """Columns from one window of the kernel to the next one in the same row."""
        return self.part.column_stride if self.part else 1 if self.summed > 1 else self.stride

    @property
    def compared(self) -> bool:
        """Return whether the layer is a max pool of its own, which compares the pixels of a window."""
        return self.window != (1, 1)

    @property
    def combines_maps(self) -> bool:
        """Return whether the layer adds or multiplies several maps, on the array or in the output stage."""
        return self.summed > 1 or self.added is not None

    @property
    def frames(self) -> int:
        """The number of frames in a batch."""
        return self.stacked * self.repeats

    @property
    def reads_pixels(self) -> bool:
        """Return whether the layer reads the input image and not a feature map."""
        return self.input == 0

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns of the kernel on the rows as the engine reads them, which may join several map rows."""
        if self.compared:
            return self.window
        if self.multiplied:
            return self.summed, 1
        return int(self.weights.shape[2]) // self.joined, int(self.weights.shape[3])

    @property
    def reach(self) -> int:
        """The width of the kernel in input columns, with dilation."""
        return (self.kernel[1] - 1) * self.column_step + 1

    @property
    def separate_taps(self) -> int:
        """Pixels of a window that the array passes on one by one, to be compared or multiplied. 1 for other layers."""
        return self.summed if self.multiplied else self.window[0] * self.window[1]

    def read_width(self, width: int) -> int:
        """Return how many columns the layer reads of a map with ``width`` columns."""
        return self.part.columns or width if self.part else width

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer in all frames of a batch, without the zero weights between groups.

        An identity layer, for example a pool that is not fused, counts one per value that the array computes.
        """
        return int(self.weights.size) // self.groups * self.out.height * self.out.width * self.repeats
