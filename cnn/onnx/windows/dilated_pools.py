"""MaxPool with a dilation d: what lies between the places of a window is never read, so the map is d × d smaller ones
side by side, each of which a dense window pools; the outputs are put between each other again.

Along one side, output y reads s · y + d · k − p for each k of the window. Of stride 1, the outputs j, j + d … read the
smaller map of the places r, r + d … alone, with j − p = d · q + r, and −q places of padding before it. Where s is a
multiple of d, one such map is all that is read; any other s leaves out outputs of stride 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cnn.maps import Padding, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers
from cnn.onnx.windows.picked import Picks, picked
from cnn.onnx.windows.slide import pool_of
from cnn.ops import Concat, DepthToSpace, Reorg


@dataclass(frozen=True)
class Side:
    """Height or width. length: of the input. window: places that are read, ``step`` apart. front: padding
    before. outputs: of the operation. whole: whether those of stride 1 are computed, whatever the stride."""

    length: int
    window: int
    step: int
    stride: int
    front: int
    outputs: int
    whole: bool = False

    @property
    def alone(self) -> bool:
        """Whether all outputs read one of the smaller maps, and no others are computed."""
        return not self.whole and self.stride % self.step == 0

    @property
    def inner_stride(self) -> int:
        """Of the pools of the smaller maps."""
        return self.stride // self.step if self.alone else 1

    @property
    def _places(self) -> int:
        """Outputs of the pools together."""
        return self.outputs if self.alone else (self.outputs - 1) * self.stride + 1

    @property
    def phases(self) -> int:
        """Smaller maps that are read."""
        return 1 if self.alone else min(self.step, self._places)

    @property
    def each(self) -> int:
        """Outputs of the pool of each of them."""
        return -(-self._places // self.phases)

    @property
    def even(self) -> bool:
        """Whether the smaller maps are of one length and pooled alike, each in its turn."""
        divided = self.phases == self.step and self.length % self.step == 0 and self.front % self.step == 0
        return divided and self._reach - self.front // self.step >= self.length // self.step

    @property
    def _reach(self) -> int:
        """Places that a pool of one of the smaller maps reads, padding included."""
        return self.inner_stride * (self.each - 1) + self.window

    def read(self, phase: int) -> Picks:
        """The smaller map of every ``phases``-th output, as far as the outputs read it."""
        first, front = (phase - self.front) % self.step, -((phase - self.front) // self.step)
        places = len(range(first, self.length, self.step))
        return Picks(self.length, first, self.step, min(places, self._reach - front))

    def padding(self, phase: int) -> tuple[int, int]:
        """Of its pool, before and behind."""
        count, front = self.read(phase).count, -((phase - self.front) // self.step)
        behind = self._reach - count - front
        require(
            count >= 1 and max(front, behind) < self.window,
            f"a part of a pool of {self.window} places, {self.step} apart, would read only padding",
        )
        return front, behind

    @property
    def crop(self) -> Picks:
        """Of the outputs of all pools, one behind the other, those of the operation."""
        return Picks(self.phases * self.each, 0, 1 if self.alone else self.stride, self.outputs)


def dilated_max_pool(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side]) -> Layers:
    """The pool of a node's map. sides: height and width."""
    if len({side.inner_stride for side in sides if side.outputs > 1}) > 1:  # a pool has one
        sides = replace(sides[0], whole=True), replace(sides[1], whole=True)
    rows, columns = sides
    if rows.even and columns.even and rows.step == columns.step:
        layers = _of_blocks(layers, operation, index, sides)
    else:
        layers = _of_phases(layers, operation, index, sides)
    last = len(layers.nodes) - 1
    if rows.phases * columns.phases > 1:
        spread, shape = DepthToSpace(rows.phases, columns.phases), layers.nodes[last].shape
        larger = Shape(shape.channels // (spread.rows * spread.columns), rows.crop.length, columns.crop.length)
        layers, last = layers.grown(operation, "depth_to_space", spread, larger, last), last + 1
    ours = layers.nodes[last].shape
    if (ours.height, ours.width) == (rows.outputs, columns.outputs):
        return layers
    return picked(layers, operation, last, rows.crop, columns.crop)


def _of_blocks(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side]) -> Layers:
    """All smaller maps are the channels of one, pooled at once."""
    shape, step = layers.nodes[index].shape, sides[0].step
    blocks = Shape(shape.channels * step * step, shape.height // step, shape.width // step)
    layers = layers.grown(operation, "reorg", Reorg(step, "block"), blocks, index)
    return _pool(layers, operation, len(layers.nodes) - 1, sides, (0, 0))


def _of_phases(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side]) -> Layers:
    """Each smaller map by itself."""
    rows, columns = sides
    pools = []
    for phase in ((i, j) for i in range(rows.phases) for j in range(columns.phases)):
        for side, number in zip(sides, phase, strict=True):
            side.padding(number)  # refuses before a layer is there
        layers = picked(layers, operation, index, rows.read(phase[0]), columns.read(phase[1]))
        layers = _pool(layers, operation, len(layers.nodes) - 1, sides, phase)
        pools.append(len(layers.nodes) - 1)
    if len(pools) == 1:
        return layers
    shape = layers.nodes[pools[0]].shape
    return layers.grown(operation, "route", Concat(), replace(shape, channels=shape.channels * len(pools)), *pools)


def _pool(layers: Layers, operation: Operation, index: int, sides: tuple[Side, Side], phase: tuple[int, int]) -> Layers:
    rows, columns = sides
    (top, bottom), (west, east) = rows.padding(phase[0]), columns.padding(phase[1])
    shape = Shape(layers.nodes[index].shape.channels, rows.each, columns.each)
    stride = next((side.inner_stride for side in sides if side.outputs > 1), rows.inner_stride)  # of a single row any
    op = pool_of((rows.window, columns.window), stride, Padding(top, west, bottom, east))
    return layers.grown(operation, "pool", op, shape, index)
