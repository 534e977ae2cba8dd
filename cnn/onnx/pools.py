"""Read pools, and select pixels of a map at regular steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm, prod

import numpy as np

from boards.errors import InvalidValueError, RangeError
from cnn.limits import MAX_KERNEL
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Array, OnnxOperation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.onnx.sliding import (
    Factors,
    Slide,
    Window,
    check_pair,
    check_size,
    convolved,
    dilated,
    pads_of,
    planar,
    pool_of,
    scale_borders,
    share_inside_map,
    slide_of,
)
from cnn.ops import AveragePool, Concat, Convolution, DepthToSpace, Input, MaxPool, Reorg

# Selecting pixels at regular steps is a max pool of size 1 with a stride, or a depthwise convolution whose kernel has a
# single weight of 1.


@dataclass(frozen=True)
class Subsampling:
    """A subsampling along one side of a map: pixels at regular steps, or weighted means of neighbours.

    Attributes:
        length: Pixels of the side.
        first: The first selected pixel.
        step: Pixels from one selected pixel to the next.
        count: Number of selected pixels.
        shares: Weights of the selected pixel and of the pixels after it. Each result is their weighted mean.
    """

    length: int
    first: int
    step: int
    count: int
    shares: tuple[Fraction, ...] = (Fraction(1),)

    @classmethod
    def from_pixels(cls, pixels: Array, length: int) -> Subsampling | None:
        """Return the subsampling that takes these pixels; None if they are not at regular, increasing steps."""
        step = int(pixels[1] - pixels[0]) if len(pixels) > 1 else 1
        regular = step >= 1 and bool((np.diff(pixels) == step).all())
        return cls(length, int(pixels[0]), step, len(pixels)) if regular else None

    @property
    def window(self) -> int:
        """The length of the kernel that does the subsampling with stride ``step`` and gives ``count`` results."""
        return max(self.first + len(self.shares), self.length - self.step * self.count + 1)

    @property
    def weights(self) -> FloatArray:
        """The kernel's weights along this side, float32 [window]."""
        weights = np.zeros(self.window, np.float32)
        weights[self.first : self.first + len(self.shares)] = [float(share) for share in self.shares]
        return weights

    @property
    def unit(self) -> Fraction:
        """The greatest fraction of which all weights (``shares``) are whole multiples."""
        return Fraction(1, lcm(*(share.denominator for share in self.shares)))


def append_subsampling(
    layers: Layers, operation: OnnxOperation, index: int, rows: Subsampling, columns: Subsampling
) -> Layers:
    """Append a layer that subsamples rows and columns of a node's output; it computes the operation's output."""
    if rows.count == 1 or columns.count == 1:  # any step fits a side with a single result
        step = columns.step if rows.count == 1 else rows.step
        rows, columns = replace(rows, step=step), replace(columns, step=step)
    window = (rows.window, columns.window)
    require(max(window) <= MAX_KERNEL, RangeError("rows or columns left out", max(window) - 1, 0, MAX_KERNEL - 1))
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    smaller = Shape(shape.channels, rows.count, columns.count)
    bare, source = replace(operation, inputs=operation.inputs[:1]), index
    computes = isinstance(layers.nodes[source].op, Input)  # a layer that reads the input must be a convolution
    if window == (1, 1) and rows.step == columns.step and not computes:
        return layers.with_node(bare, "pool", MaxPool(1, rows.step, NO_PADDING), smaller, source)
    layers = layers.with_bytes_spent(4 * shape.channels * window[0] * window[1])
    weights = np.outer(rows.weights, columns.weights)
    kernel = np.array(np.broadcast_to(weights, (shape.channels, 1, *window)), np.float32)
    op = Convolution(kernel, np.zeros(shape.channels, np.float32), None, 1, NO_PADDING, shape.channels, "linear")
    unit = rows.unit * columns.unit
    mark = NO_MARK if type_ is None else Mark(type=type_)
    if unit != 1:
        mark = Mark(scale=np.array([unit], np.float32))
    slide = Slide(shape, window, smaller, NO_PADDING, (rows.step, columns.step))
    return convolved(layers, bare, source, Window(op, slide, mark, "pick"))


# MaxPool with a dilation d reads only every d-th pixel in a window. The map is therefore split into d × d smaller maps
# (phases), each is pooled with a dense window, and their outputs are interleaved again.
#
# Along one side, with stride s and padding p, output y reads the pixels s · y + d · k − p for each k of the window.
# With stride 1, the outputs j, j + d … read only the smaller map of the pixels r, r + d …, where j − p = d · q + r.
# This map then has −q pixels of padding before it. If s is a multiple of d, a single smaller map is read. For any other
# s, the outputs of stride 1 are computed, and the operation's outputs are selected from them.


@dataclass(frozen=True)
class PooledSide:
    """One side, height or width, of a dilated MaxPool that is split into smaller maps (phases) and dense pools.

    Attributes:
        length: Pixels of the input.
        window: Pixels that one output reads.
        step: The dilation: pixels from one pixel of the window to the next.
        stride: The stride of the operation.
        front: Pixels of padding before the input.
        outputs: Outputs of the operation.
        all_outputs: Whether the outputs of stride 1 are computed even if ``stride`` is a multiple of ``step``.
    """

    length: int
    window: int
    step: int
    stride: int
    front: int
    outputs: int
    all_outputs: bool = False

    @property
    def is_single_phase(self) -> bool:
        """Return whether all outputs read the same phase (every d-th pixel of the input for dilation d)."""
        return not self.all_outputs and self.stride % self.step == 0

    @property
    def inner_stride(self) -> int:
        """The stride of the dense pools of the phases."""
        return self.stride // self.step if self.is_single_phase else 1

    @property
    def _pooled_outputs(self) -> int:
        """The number of outputs that the pools of all phases compute together, some of which may be dropped."""
        return self.outputs if self.is_single_phase else (self.outputs - 1) * self.stride + 1

    @property
    def phases(self) -> int:
        """The number of phases (maps of every d-th pixel for dilation d) that are pooled."""
        return 1 if self.is_single_phase else min(self.step, self._pooled_outputs)

    @property
    def outputs_per_phase(self) -> int:
        """The number of outputs of the pool of each phase."""
        return -(-self._pooled_outputs // self.phases)

    @property
    def has_equal_phases(self) -> bool:
        """Return whether all phases have the same length and padding, so that one pool can read them as channels."""
        divided = self.phases == self.step and self.length % self.step == 0 and self.front % self.step == 0
        return divided and self._read_pixels - self.front // self.step >= self.length // self.step

    @property
    def _read_pixels(self) -> int:
        """The number of pixels, padding included, that the pool of a phase reads."""
        return self.inner_stride * (self.outputs_per_phase - 1) + self.window

    def read(self, phase: int) -> Subsampling:
        """Return the pixels of the input that the pool of the phase reads, every d-th for dilation d."""
        first, front = (phase - self.front) % self.step, -((phase - self.front) // self.step)
        places = len(range(first, self.length, self.step))
        return Subsampling(self.length, first, self.step, min(places, self._read_pixels - front))

    def padding(self, phase: int) -> tuple[int, int]:
        """Return the padding before and after a phase that its pool needs."""
        count, front = self.read(phase).count, -((phase - self.front) // self.step)
        back = self._read_pixels - count - front
        require(
            count >= 1 and max(front, back) < self.window,
            f"a part of a pool with a window of {self.window} and a dilation of {self.step} would read only padding",
        )
        return front, back

    @property
    def crop(self) -> Subsampling:
        """The MaxPool's outputs as a subsampling of the interleaved outputs of all phases."""
        return Subsampling(
            self.phases * self.outputs_per_phase, 0, 1 if self.is_single_phase else self.stride, self.outputs
        )


def dilated_max_pool(
    layers: Layers, operation: OnnxOperation, index: int, sides: tuple[PooledSide, PooledSide]
) -> Layers:
    """Append the layers of an ONNX MaxPool with dilations: a split into phases, dense pools, and interleaving.

    sides: The height and the width.
    """
    if len({side.inner_stride for side in sides if side.outputs > 1}) > 1:  # a MaxPool layer has a single stride
        sides = replace(sides[0], all_outputs=True), replace(sides[1], all_outputs=True)
    rows, columns = sides
    if rows.has_equal_phases and columns.has_equal_phases and rows.step == columns.step:
        layers = _of_blocks(layers, operation, index, sides)
    else:
        layers = _of_phases(layers, operation, index, sides)
    last = len(layers.nodes) - 1
    if rows.phases * columns.phases > 1:
        spread, shape = DepthToSpace(rows.phases, columns.phases), layers.nodes[last].shape
        larger = Shape(shape.channels // (spread.rows * spread.columns), rows.crop.length, columns.crop.length)
        layers, last = layers.with_node(operation, "depth_to_space", spread, larger, last), last + 1
    ours = layers.nodes[last].shape
    if (ours.height, ours.width) == (rows.outputs, columns.outputs):
        return layers
    return append_subsampling(layers, operation, last, rows.crop, columns.crop)


def _of_blocks(layers: Layers, operation: OnnxOperation, index: int, sides: tuple[PooledSide, PooledSide]) -> Layers:
    """Append a space-to-depth layer that makes a dilated MaxPool's phases channels, and one pool of its output."""
    shape, step = layers.nodes[index].shape, sides[0].step
    blocks = Shape(shape.channels * step * step, shape.height // step, shape.width // step)
    layers = layers.with_node(operation, "reorg", Reorg(step, "block"), blocks, index)
    return _pool(layers, operation, len(layers.nodes) - 1, sides, (0, 0))


def _of_phases(layers: Layers, operation: OnnxOperation, index: int, sides: tuple[PooledSide, PooledSide]) -> Layers:
    """Append layers that extract and pool each phase of a dilated MaxPool separately, and concatenate the results."""
    rows, columns = sides
    pools = []
    for phase in ((i, j) for i in range(rows.phases) for j in range(columns.phases)):
        for side, number in zip(sides, phase, strict=True):
            side.padding(number)  # raises before layers are appended
        layers = append_subsampling(layers, operation, index, rows.read(phase[0]), columns.read(phase[1]))
        layers = _pool(layers, operation, len(layers.nodes) - 1, sides, phase)
        pools.append(len(layers.nodes) - 1)
    if len(pools) == 1:
        return layers
    shape = layers.nodes[pools[0]].shape
    return layers.with_node(operation, "route", Concat(), replace(shape, channels=shape.channels * len(pools)), *pools)


def _pool(
    layers: Layers, operation: OnnxOperation, index: int, sides: tuple[PooledSide, PooledSide], phase: tuple[int, int]
) -> Layers:
    rows, columns = sides
    (top, bottom), (west, east) = rows.padding(phase[0]), columns.padding(phase[1])
    shape = Shape(layers.nodes[index].shape.channels, rows.outputs_per_phase, columns.outputs_per_phase)
    stride = next((side.inner_stride for side in sides if side.outputs > 1), rows.inner_stride)  # one output fits any
    op = pool_of((rows.window, columns.window), stride, Padding(top, west, bottom, east))
    return layers.with_node(operation, "pool", op, shape, index)


# Pools: the greatest value of a window, or the mean.


def max_pool(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX MaxPool: append a max pool, or several layers if it has dilations."""
    source = layers.padded(operation, edge=True)
    before = layers.shape_of(replace(source, padding=NO_PADDING))
    places_read = len(operation.outputs) > 1 and layers.readers[operation.outputs[1]]
    require(not places_read, "its second output, the indices of the greatest values, is not computed")
    operation = planar(operation, source)
    window = operation.integers("kernel_shape", ())
    steps = operation.integers("dilations", (1, 1))
    check_pair("kernel_shape", window)
    check_pair("dilations", steps)
    check_size(window)
    steps = (steps[0] if window[0] > 1 else 1, steps[1] if window[1] > 1 else 1)
    span = [(places - 1) * step + 1 for places, step in zip(window, steps, strict=True)]
    _check_same(operation, before, window, span)
    slide = slide_of(layers, operation, source, span)
    if source.edge:
        _check_edges(operation, source, steps)
    if steps == (1, 1):
        return pooled(layers, operation, source, slide)
    padding, strides = slide.padding, slide.strides
    rows = PooledSide(before.height, window[0], steps[0], strides[0], padding.top, slide.shape.height)
    columns = PooledSide(before.width, window[1], steps[1], strides[1], padding.left, slide.shape.width)
    return dilated_max_pool(layers, operation, source.node, (rows, columns))


def _check_edges(operation: OnnxOperation, source: Map, steps: Sequence[int]) -> None:
    """Raise RefusedError if a MaxPool with dilations, ceil_mode or auto_pad follows a Pad of mode edge."""
    attributes = operation.integer("ceil_mode", 0), operation.text("auto_pad", "NOTSET")
    plain = attributes in ((0, "NOTSET"), (0, "VALID")) and tuple(steps) == (1, 1)
    require(plain, "after a Pad of mode edge it must have no dilations, ceil_mode or auto_pad")


def _check_same(operation: OnnxOperation, shape: Shape, window: Sequence[int], span: Sequence[int]) -> None:
    """Raise RefusedError for an auto_pad of a pool that onnxruntime and the ONNX specification read differently.

    It does so for dilated windows, and for windows that are smaller than the stride and do not reach the map's end.
    """
    if not operation.text("auto_pad", "NOTSET").startswith("SAME"):
        return
    strides = [max(1, stride) for stride in operation.integers("strides", (1, 1))]
    ends = [(side - 1) % stride + 1 for side, stride in zip((shape.height, shape.width), strides, strict=False)]
    plain = tuple(window) == tuple(span) and all(end <= places for end, places in zip(ends, window, strict=False))
    require(plain, "onnx and onnxruntime read auto_pad of such a pool differently; give it explicit pads")


def pooled(layers: Layers, operation: OnnxOperation, source: Map, slide: Slide) -> Layers:
    """Append a max pool layer; if its row and column strides differ, a subsampling layer follows.

    If the strides of rows and columns differ, the pool has their greatest common divisor as its stride. A second layer
    then selects the operation's rows and columns.
    """
    (rows, columns), padding, shape = slide.window, slide.padding, slide.shape
    check_size(slide.window)
    inside = max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns
    sides = (padding.top, padding.left, padding.bottom, padding.right)
    require(inside, InvalidValueError("padding", sides, f"less than the window of {rows}×{columns}"))
    stride = slide.stride or gcd(*slide.strides)
    op = pool_of((rows, columns), stride, padding)
    if slide.stride:
        return layers.with_node(operation, "pool", op, shape, source.node)
    height, width = slide.outputs(stride)
    layers = layers.with_node(operation, "pool", op, Shape(shape.channels, height, width), source.node)
    down, across = (each // stride for each in slide.strides)
    picks = Subsampling(height, 0, down, shape.height), Subsampling(width, 0, across, shape.width)
    return append_subsampling(layers, operation, len(layers.nodes) - 1, *picks)


def global_max(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX GlobalMaxPool: append a max pool over the whole map."""
    source, shape = layers.picture(operation)
    slide = Slide(shape, (shape.height, shape.width), Shape(shape.channels, 1, 1), NO_PADDING, (1, 1))
    return pooled(layers, operation, source, slide)


def average_pool(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX AveragePool: append a global average pool or a depthwise convolution with equal weights.

    Over the whole map it is an AveragePool layer, and with a window of one value it changes nothing. Otherwise it is a
    depthwise convolution with weights 1 / (window's pixels). Windows over the padding count fewer pixels, so factors
    per row and column follow.
    """
    source, shape = layers.picture(operation)
    operation = planar(operation, source)
    window, padded = operation.integers("kernel_shape", ()), any(operation.integers("pads", (0,)))
    if window == (1, 1) == operation.integers("strides", (1, 1)) and not padded:
        return layers.with_values(operation, source)
    padded = padded or operation.text("auto_pad", "NOTSET").startswith("SAME")
    if window == (shape.height, shape.width) and not padded:
        return _averaged(layers, operation, source, True)
    steps = operation.integers("dilations", (1, 1))
    check_pair("kernel_shape", window)
    check_pair("dilations", steps)
    reach = [(side - 1) * step + 1 for side, step in zip(window, steps, strict=True)]
    check_size(reach)
    layers = layers.with_bytes_spent(4 * shape.channels * prod(reach))
    weights = np.full((shape.channels, 1, *window), 1 / (window[0] * window[1]), np.float32)
    weights = dilated(weights, steps)
    _check_same(operation, shape, window, weights.shape[2:])
    slide, node = slide_of(layers, operation, source, weights.shape[2:]), source.node
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, NO_PADDING, shape.channels, "linear")
    rows, columns = _shares(operation, slide, weights[0, 0])
    averaged = Window(op, slide, Mark(scale=np.array([weights.max()])), "average")
    larger = convolved(layers, replace(operation, inputs=operation.inputs[:1]), node, averaged)
    return scale_borders(larger, operation, node, 1 / rows, 1 / columns)


def _shares(operation: OnnxOperation, slide: Slide, weights: FloatArray) -> tuple[Factors, Factors]:
    """Return, per output row and output column, the share of an average pool's window that counts, not padding."""
    shape, averaged, padding = slide.before, slide.shape, slide.padding
    sides = ((shape.height, averaged.height, padding.top), (shape.width, averaged.width, padding.left))
    counted = bool(operation.integer("count_include_pad", 0))
    front, back = pads_of(operation, (shape.height, shape.width), slide.window, slide.strides)
    shares = []
    for axis, (length, outputs, before) in enumerate(sides):
        # In a dilated kernel only the rows and columns with weights count.
        places = np.asarray(weights.any(axis=1 - axis), dtype=np.float32)
        around = (front[axis], back[axis]) if counted else (0, 0)
        shares.append(share_inside_map(outputs, slide.strides[axis], before - around[0], places, length + sum(around)))
    return shares[0], shares[1]


def global_average(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX GlobalAveragePool: append an average pool over the whole map."""
    return _averaged(layers, operation, layers.picture(operation)[0], True)


def _averaged(layers: Layers, operation: OnnxOperation, source: Map, keep: bool) -> Layers:
    channels = layers.nodes[source.node].shape.channels
    larger = layers.with_node(operation, "average", AveragePool(), Shape(channels, 1, 1), source.node)
    return larger if keep else larger.with_values(operation, Map(len(layers.nodes), (1, channels)))
