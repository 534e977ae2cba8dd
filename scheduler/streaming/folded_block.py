"""A block with its fold, and a rule that such a block keeps."""

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
    """Block ``index`` of a graph with its fold; of a window's reader also the window's."""

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
        """The map at the first input."""
        return in_shape(self.graph, self.index)

    @property
    def channels(self) -> int:
        """Channels that the block works on, padding included: of what it reads, of what a source gives."""
        if isinstance(self.op, g.Source):
            return self.block.outputs[0].shape.channels
        return self.read.channels // self._gathered + self.fold.pad_in

    @property
    def _gathered(self) -> int:
        return taps(self.block) if isinstance(self.writer.op, g.Window) else 1

    @property
    def rows(self) -> int:
        """MH, padding included."""
        return self.block.outputs[0].shape.channels + self.fold.pad_out

    @property
    def columns(self) -> int:
        """MW, padding included."""
        return self.channels * taps(self.block)

    @property
    def taps(self) -> int:
        return taps(self.block)

    @property
    def widths(self) -> str:
        """Of the maps that come and go."""
        read = {self.graph.type_of(port).shape.width for port in self.block.inputs}
        return " and ".join(str(width) for width in sorted(read | {out.shape.width for out in self.block.outputs}))

    @property
    def has_whole_rows(self) -> bool:
        """Whether whole words of M pixels make a row, before and after."""
        read = all(self.graph.type_of(port).shape.width % self.fold.m == 0 for port in self.block.inputs)
        pixels = out_pixels(self.block, self.fold)
        return read and all(out.shape.width % pixels == 0 for out in self.block.outputs)

    @property
    def bits(self) -> int:
        """Of the widest word that comes, is gathered or scattered, leaves, or brings weights that are not embedded."""
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
        return self.op.stride if isinstance(self.op, (g.Window, MaxPool, g.Reorg)) else 1

    @property
    def writer(self) -> g.Block:
        return self.graph.blocks[self.block.inputs[0].block]

    @property
    def writer_fold(self) -> g.Fold:
        return self.folds[self.block.inputs[0].block]

    @property
    def parts(self) -> tuple[int, ...]:
        """Channels of each input of a concat, of each part of a split."""
        if isinstance(self.op, g.Split):
            return self.op.parts
        return tuple(self.graph.type_of(port).shape.channels for port in self.block.inputs)


@dataclass(frozen=True)
class Constraint:
    """What the fold of a block keeps.

    Attributes:
        name: The row's name.
        ops: Kinds of blocks that it is asked of.
        holds: Whether a block with its fold keeps the rule.
        error: The error for one that breaks it, without the block's name; called only then.
    """

    name: str
    ops: tuple[type, ...]
    holds: Callable[[FoldedBlock], bool]
    error: Callable[[FoldedBlock], SystolicError]
