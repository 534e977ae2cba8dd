"""What the array executes: one convolution with a fused pool, or what takes the place of one."""

from __future__ import annotations

from dataclasses import dataclass

from cnn.maps import IntArray, Padding, Shape
from cnn.requantise import MultiplyShift, Requantiser
from cnn.tables import Table
from contract.program import PASS_WORDS
from scheduler.systolic.network.additions import Addition
from scheduler.systolic.network.reorg import Part
from scheduler.systolic.network.views import Span


@dataclass(frozen=True, eq=False)
class Layer:
    """What the array executes: one convolution with a fused pool, as ``lower`` makes it of one or two nodes.

    weights: int [filters, channels, kernel height, kernel width]; with ``depthwise`` [filters, channels of a group,
    …], a power of two of them: every filter reads the group of its own number. ``input`` and ``output`` are node
    indices: the map that is read, and the node whose map leaves (the pool, where one is fused).
    ``out`` is the shape before the pool (already cut to what the pool reads), ``saved`` the one after.
    stride: 0 where the one value of a channel is read for every place.
    stacked: frames of a batch whose maps are one map with so many times the rows, in ``out`` and ``saved`` too.
    joined: rows of the input, all of a frame, that are read as one: as they lie in DDR, its blocks are those of row
    after row. The kernel is as high as they are in ``weights``, and one row high on what is read.
    row_step: of joined rows that do not follow each other but lie so many rows apart, and are read again for every row
    of the result; 0 of others. column_step: columns from one of the kernel to the next.
    repeats: frames that are executed one after the other.
    spans: the maps of which what is read consists, in the order in which they lie. beside: they share their rows, with
    each other or with maps that are not read.
    summed: maps that are added; their rows are read in turn, as one map of so many times the rows.
    upscale: how often each value is written in a row, and how many rows of it.
    table: what each value becomes behind the requantiser; looked_up: the node whose values these are.
    window: rows and columns of a max pool's window, whose places are compared; 1 × 1 where they are multiplied and
    added up.
    multiplied: whether the two maps whose rows are read in turn are multiplied, place by place.
    around: what padding holds.
    groups: of a layer that is not depthwise, parts of the channels of which each filter reads one, though it has
    weights for all.
    part: of what is read and written, where several layers together write a map.
    spread: columns of the result that a position becomes, each of so many equal parts of its channel blocks.
    added: what the Saver adds to the map before it leaves. pass_words: of each of its passes in the program.
    strip: the nodes whose maps share the rows that are written, its own too, in the order in which they lie.
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
    beside: bool = False
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

    @property
    def column_stride(self) -> int:
        """From a window to the next one in a row."""
        return self.part.column_stride if self.part else 1 if self.summed > 1 else self.stride

    @property
    def compared(self) -> bool:
        """Whether the places of its window are compared, and not multiplied and added up."""
        return self.window != (1, 1)

    @property
    def of_two_maps(self) -> bool:
        """Whether maps are added or multiplied, by the array or by the Saver."""
        return self.summed > 1 or self.added is not None

    @property
    def frames(self) -> int:
        """Of a batch."""
        return self.stacked * self.repeats

    @property
    def reads_pixels(self) -> bool:
        """Whether the layer reads the picture and not a map."""
        return self.input == 0

    @property
    def kernel(self) -> tuple[int, int]:
        """Height and width, on what is read."""
        if self.compared:
            return self.window
        if self.multiplied:
            return self.summed, 1
        return int(self.weights.shape[2]) // self.joined, int(self.weights.shape[3])

    @property
    def reach(self) -> int:
        """Columns from the first that the kernel reads to the last, both included."""
        return (self.kernel[1] - 1) * self.column_step + 1

    @property
    def places(self) -> int:
        """Of a window whose places the array hands through as positions, to be compared or multiplied."""
        return self.summed if self.multiplied else self.window[0] * self.window[1]

    def read_width(self, width: int) -> int:
        """Return how many columns are read of each row of a map that is ``width`` columns wide."""
        return self.part.columns or width if self.part else width

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the network asks for in all frames (the pool's identity counts as none)."""
        return int(self.weights.size) // self.groups * self.out.height * self.out.width * self.repeats
