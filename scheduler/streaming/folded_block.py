"""A block together with its fold, and the constraints on such a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from boards.errors import SystolicError
from cnn.maps import Shape
from cnn.ops import MaxPool
from scheduler.streaming import graph as g
from scheduler.streaming.lanes import in_lanes, in_shape, out_lanes, out_pixels, taps


@dataclass(frozen=True)
class FoldedBlock:
    """A block of a streaming graph with its fold (parallelism and memories), and access to the block that writes its
    first input.

    Attributes:
        graph: The graph of the block.
        folds: The folds of the graph's blocks by index. A mapping needs only this block and the writer of its input.
        index: The index of the block in ``graph``.
    """

    graph: g.StreamGraph
    folds: Sequence[g.Fold] | Mapping[int, g.Fold]
    index: int

    @property
    def block(self) -> g.Block:
        return self.graph.blocks[self.index]

    @property
    def op(self) -> g.BlockOp:
        return self.block.op

    @property
    def fold(self) -> g.Fold:
        return self.folds[self.index]

    @property
    def read(self) -> Shape:
        """The shape of the feature map at the block's first input, without channel padding."""
        return in_shape(self.graph, self.index)

    @property
    def channels(self) -> int:
        """The channels of the block's first input, or of the output of a source, channel padding included.

        The channels of a window's output are divided by the taps of the kernel.
        """
        if isinstance(self.op, g.Source):
            return self.block.outputs[0].shape.channels
        return self.read.channels // self._gathered + self.fold.pad_in

    @property
    def _gathered(self) -> int:
        """The values per channel in one pixel of the block's first input: the kernel's taps after a window, else 1."""
        return taps(self.block) if isinstance(self.writer.op, g.Window) else 1

    @property
    def rows(self) -> int:
        """MH: the rows of a unit's weight matrix, which are its output channels with channel padding."""
        return self.block.outputs[0].shape.channels + self.fold.pad_out

    @property
    def columns(self) -> int:
        """MW: the columns of a unit's weight matrix, which are input channels times kernel taps, with channel
        padding."""
        return self.channels * taps(self.block)

    @property
    def taps(self) -> int:
        return taps(self.block)

    @property
    def widths(self) -> str:
        """The different widths of the input and output maps in pixels, as text for errors."""
        read = {self.graph.type_of(port).shape.width for port in self.block.inputs}
        return " and ".join(str(width) for width in sorted(read | {out.shape.width for out in self.block.outputs}))

    @property
    def has_whole_rows(self) -> bool:
        """Return whether every row of the block's input and output maps fills a whole number of stream words."""
        read = all(self.graph.type_of(port).shape.width % self.fold.m == 0 for port in self.block.inputs)
        pixels = out_pixels(self.block, self.fold)
        return read and all(out.shape.width % pixels == 0 for out in self.block.outputs)

    @property
    def bits(self) -> int:
        """The bits of the block's widest word, which is an input, output or weight word.

        This covers the input and output words, and the weight words if weights are not embedded. A unit that gathers
        several pixels per pass over its weights has words of that many pixels.
        """
        block, fold = self.block, self.fold
        read = [
            in_lanes(block, fold, i) * self.graph.type_of(port).datatype.bits for i, port in enumerate(block.inputs)
        ]
        written = [out_lanes(block, fold, i) * out.datatype.bits for i, out in enumerate(block.outputs)]
        if not isinstance(self.op, g.MatrixVector):
            return max(read + written)
        weights = 0 if fold.memory == "embedded" else fold.pe * fold.simd * self.op.weight_type.bits
        return max(weights, max(1, fold.pixels // max(1, fold.m)) * max(read + written))

    @property
    def stride(self) -> int:
        """The stride of a window, max pool or reorg, and 1 for all other blocks."""
        return self.op.stride if isinstance(self.op, (g.Window, MaxPool, g.Reorg)) else 1

    @property
    def writer(self) -> g.Block:
        """The block that writes this block's first input stream."""
        return self.graph.blocks[self.block.inputs[0].block]

    @property
    def writer_fold(self) -> g.Fold:
        return self.folds[self.block.inputs[0].block]

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of channels of each output of a split, or of each input of any other block."""
        if isinstance(self.op, g.Split):
            return self.op.parts
        return tuple(self.graph.type_of(port).shape.channels for port in self.block.inputs)


@dataclass(frozen=True)
class Constraint:
    """A rule that the fold (parallelism and memories) of a streaming block must satisfy, for example that PE divides
    the channels.

    Attributes:
        name: The name of the constraint.
        ops: The kinds of blocks that it applies to.
        holds: Returns whether a block with its fold satisfies the constraint.
        error: Returns the error for a block that violates the constraint. The error does not name the block yet.
    """

    name: str
    ops: tuple[type, ...]
    holds: Callable[[FoldedBlock], bool]
    error: Callable[[FoldedBlock], SystolicError]
