"""Convolutions whose outputs lie in turn: in blocks of a few rows and columns each gives the values of one place, and
depth to space puts them beside each other.

So are convolutions whose strides down and across differ. Of the strides a and b and their least common multiple m, the
rows y, y + m / a … of the output lie m rows apart in the input, and m / b columns of it m columns: a block of
m / a × m / b outputs is m / a × m / b convolutions of one stride m, each of whose windows begins where its place does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm

import numpy as np

from boards.errors import RangeError
from cnn.limits import MAX_KERNEL, MAX_WINDOW
from cnn.maps import FloatArray, Padding, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import Layers
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.onnx.windows.slide import Slide
from cnn.ops import Concat, Convolution, DepthToSpace


@dataclass(frozen=True, eq=False)
class Blocks:
    """spread: rows and columns of a block. each: the map that one place of all blocks is, of any channels. rows,
    columns: of the output; what blocks have beyond is left out. mark: what the file says of the convolutions."""

    spread: DepthToSpace
    each: Shape
    rows: int
    columns: int
    mark: Mark = NO_MARK


def side_by_side(
    layers: Layers, operation: Operation, index: int, parts: Sequence[Convolution], blocks: Blocks
) -> Layers:
    """Convolutions of a node's map, one a place of the blocks and row by row, or one that has all their filters in this
    order."""
    bare, indices = replace(operation, inputs=operation.inputs[:1]), []
    for op in parts:
        shape = replace(blocks.each, channels=len(op.weights))
        indices.append(len(layers.nodes))
        layers = layers.grown(bare, "conv", op, shape, index).marked(indices[-1], _mark_of(op, blocks.mark))
    filters = sum(len(op.weights) for op in parts)
    if len(indices) > 1:
        layers = layers.grown(bare, "route", Concat(), replace(shape, channels=filters), *indices)
    spread, rows, columns = blocks.spread, shape.height * blocks.spread.rows, shape.width * blocks.spread.columns
    larger = Shape(filters // (spread.rows * spread.columns), rows, columns)
    if spread != DepthToSpace(1, 1):
        layers = layers.grown(bare, "depth_to_space", spread, larger, len(layers.nodes) - 1)
    if (rows, columns) == (blocks.rows, blocks.columns):
        return layers
    return _cut(layers, bare, blocks)


def _mark_of(op: Convolution, mark: Mark) -> Mark:
    """With a scale for each filter, where there is more than one."""
    if mark.scale is None or mark.scale.size == 1:
        return mark
    return replace(mark, scale=np.tile(mark.scale, len(op.weights) // mark.scale.size))


def _cut(layers: Layers, operation: Operation, blocks: Blocks) -> Layers:
    """The last node's map without the rows and columns beyond: a window of each channel by itself, of which the first
    place counts."""
    index = len(layers.nodes) - 1
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    sides = (shape.height - blocks.rows + 1, shape.width - blocks.columns + 1)
    require(max(sides) <= MAX_KERNEL, RangeError("rows or columns left out", max(sides) - 1, 0, MAX_KERNEL - 1))
    kernel = np.zeros((shape.channels, 1, *sides), np.float32)
    kernel[:, :, 0, 0] = 1
    op = Convolution(kernel, np.zeros(shape.channels, np.float32), None, 1, Padding(), shape.channels, "linear")
    smaller = Shape(shape.channels, blocks.rows, blocks.columns)
    layers = layers.worked_out(kernel.nbytes).grown(operation, "pick", op, smaller, index)
    return layers if type_ is None else layers.typed(index + 1, type_)


@dataclass(frozen=True, eq=False)
class Window:
    """A convolution, and where it slides: of ``op`` stride and padding are not read. mark: what the file says of it,
    where that is not the scale of the operation's second input. stem: of its layers' names."""

    op: Convolution
    slide: Slide
    mark: Mark = NO_MARK
    stem: str = "conv"


def convolved(layers: Layers, operation: Operation, index: int, window: Window) -> Layers:
    """The convolution of a node's map, whatever its strides."""
    op, slide = window.op, window.slide
    channels, shape = len(op.weights), slide.shape
    mark = window.mark
    if slide.stride:
        plain, node = replace(op, stride=slide.stride, padding=slide.padding), len(layers.nodes)
        layers = layers.grown(operation, window.stem, plain, replace(shape, channels=channels), index)
        return layers if mark is NO_MARK else layers.marked(node, mark)
    step, (down, across) = lcm(*slide.strides), slide.strides
    spread = DepthToSpace(step // down, step // across)
    each = Shape(channels, -(-shape.height // spread.rows), -(-shape.width // spread.columns))
    sides = (op.window[0] + step - down, op.window[1] + step - across)
    what = f"rows or columns of a window of strides {down} and {across}"
    require(max(sides) <= MAX_WINDOW, RangeError(what, max(sides), 1, MAX_WINDOW))
    layers = layers.worked_out(4 * channels * op.weights.shape[1] * sides[0] * sides[1] * spread.rows * spread.columns)
    padding = _around(slide, sides, step, each)
    parts = [
        replace(op, weights=_begun(op, sides, (i * down, j * across)), dilation=(1, 1), stride=step, padding=padding)
        for i, j in product(range(spread.rows), range(spread.columns))
    ]
    if op.groups == 1:
        kernels, biases = (np.concatenate([getattr(part, key) for part in parts]) for key in ("weights", "bias"))
        parts = [replace(parts[0], weights=kernels, bias=biases)]
    if mark is NO_MARK and len(operation.inputs) > 1:
        mark = Mark(scale=layers.scales.get(operation.inputs[1]))
    return side_by_side(layers, operation, index, parts, Blocks(spread, each, shape.height, shape.width, mark))


def _begun(op: Convolution, window: tuple[int, int], first: tuple[int, int]) -> FloatArray:
    """Return the weights in a larger window without dilation, from that row and column on."""
    weights = np.zeros((*op.weights.shape[:2], *window), np.float32)
    (rows, columns), (down, across) = op.window, op.dilation
    weights[:, :, first[0] : first[0] + rows : down, first[1] : first[1] + columns : across] = op.weights
    return weights


def _around(slide: Slide, window: tuple[int, int], step: int, each: Shape) -> Padding:
    """What the larger windows read around the map."""
    top, left = slide.padding.top, slide.padding.left
    bottom = step * (each.height - 1) + window[0] - top - slide.before.height
    right = step * (each.width - 1) + window[1] - left - slide.before.width
    return Padding(top, left, max(0, bottom), max(0, right))
