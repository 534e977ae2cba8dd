"""Append layers for windows with different strides for rows and columns (``stride_y``, ``stride_x``).

A layer has one stride. Let a be the stride over rows, b the stride over columns and m their least common multiple. The
output rows y, y + m / a … read windows that are m rows apart, and the output columns x, x + m / b … read windows that
are m columns apart. The output is divided into blocks of m / a × m / b. Each place of a block is a convolution with
stride m and a shifted window. One convolution has the filters of all places, and depth to space interleaves its
outputs.

Convolutions with groups, and pools, use the greatest common divisor of a and b as their stride instead. A second layer
then selects every n-th row and column.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import gcd, lcm

import numpy as np

from boards.errors import RangeError
from cnn.darknet.cfg import Section
from cnn.darknet.fixed import ITSELF
from cnn.darknet.graph import DarknetLayers
from cnn.limits import MAX_KERNEL
from cnn.maps import Padding, Shape
from cnn.ops import Concat, Convolution, DepthToSpace, MaxPool

Pair = tuple[int, int]
"""A number of rows and a number of columns."""

NO_PADDING = Padding()


def strides_of(section: Section, default: int, most: int) -> Pair:
    """Return the row and column strides of a cfg section: ``stride_y`` and ``stride_x``, by default ``stride``."""
    stride = section.integer("stride", default, 1, most)
    return section.integer("stride_y", stride, 1, most), section.integer("stride_x", stride, 1, most)


def convolved(layers: DarknetLayers, section: Section, op: Convolution, strides: Pair, outputs: Shape) -> DarknetLayers:
    """Append the layers of a convolution whose row and column strides may differ, as one darknet layer.

    Args:
        layers: The layers read so far.
        section: The section.
        op: The convolution. Its stride, and its padding below and to the right of the map, are not used.
        strides: The strides over rows and columns.
        outputs: The shape of the output.
    """
    down, across = strides
    if down == across:
        return layers.with_node(section, "conv", replace(op, stride=down), outputs)
    if op.groups > 1:
        step = gcd(down, across)
        rows, columns, padding = _dense(layers.shape, op.window, step, op.padding)
        plain = replace(op, stride=step, padding=padding)
        larger = layers.with_node(section, "conv", plain, Shape(outputs.channels, rows, columns))
        picked = _append_subsampling(larger, section, (down // step, across // step), outputs)
        return replace(picked, layers=(*layers.layers, picked.last))
    blocks = _Blocks(section, strides, op.window, outputs)
    filters, each, places = outputs.channels, op.weights.shape[1], len(blocks.window_starts)
    zeros = np.broadcast_to(np.float32(0), (filters * places,))
    norm = op.batch_norm and replace(op.batch_norm, scale=zeros, mean=zeros, variance=zeros)
    larger_op = replace(
        op,
        weights=np.broadcast_to(np.float32(0), (filters * places, each, *blocks.window)),
        bias=zeros,
        batch_norm=norm,
        stride=blocks.step,
        padding=blocks.padding(layers.shape, op.padding),
        stored=replace(op.stored, copies=blocks.window_starts, window=op.weights.shape[2:], step=max(op.dilation)),
        dilation=(1, 1),
    )
    larger = layers.with_node(section, "conv", larger_op, replace(blocks.plane, channels=filters * places))
    spread = _append_interleaving(larger, section, blocks, outputs)
    return replace(spread, layers=(*layers.layers, spread.last))


def pooled(layers: DarknetLayers, section: Section, op: MaxPool, strides: Pair, outputs: Shape) -> DarknetLayers:
    """Append the layers of a max pool whose row and column strides may differ, as one darknet layer."""
    step = gcd(*strides)
    if strides == (step, step):
        return layers.with_node(section, "pool", replace(op, stride=step), outputs)
    rows, columns, padding = _dense(layers.shape, op.window, step, op.padding)
    plain = replace(op, stride=step, padding=padding)
    larger = layers.with_node(section, "pool", plain, Shape(outputs.channels, rows, columns))
    picked = _append_subsampling(larger, section, (strides[0] // step, strides[1] // step), outputs)
    return replace(picked, layers=(*layers.layers, picked.last))


class _Blocks:
    """The split of an output into blocks of rows × columns, for a layer with different row and column strides.

    Attributes:
        step: The stride m of the convolutions.
        rows: Rows of a block.
        columns: Columns of a block.
        window: Rows and columns of a window that covers the shifted windows of all positions of a block.
        window_starts: The row and column at which the window of each position of a block starts in ``window``.
        plane: The shape of the map with one position of every block.
    """

    def __init__(self, section: Section, strides: Pair, window: Pair, outputs: Shape) -> None:
        (down, across), self.step = strides, lcm(*strides)
        self.rows, self.columns = self.step // down, self.step // across
        self.window = (window[0] + self.step - down, window[1] + self.step - across)
        if max(self.window) > MAX_KERNEL:
            what = f"a side of the window for strides of {down} rows and {across} columns"
            raise RangeError(what, max(self.window), high=MAX_KERNEL, where=section.source)
        self.window_starts = tuple((i * down, j * across) for i, j in product(range(self.rows), range(self.columns)))
        self.plane = replace(outputs, height=-(-outputs.height // self.rows), width=-(-outputs.width // self.columns))

    def padding(self, before: Shape, around: Padding) -> Padding:
        """Return the padding that the enlarged windows of the blocks need.

        before: The shape of the input.
        around: The padding of the operation, whose top and left sides are kept.
        """
        bottom = self.step * (self.plane.height - 1) + self.window[0] - around.top - before.height
        right = self.step * (self.plane.width - 1) + self.window[1] - around.left - before.width
        return Padding(around.top, around.left, max(0, bottom), max(0, right))


def _dense(before: Shape, window: Pair, step: int, around: Padding) -> tuple[int, int, Padding]:
    """Return the output rows and columns of a window with one stride for both sides, and the padding that it reads."""
    rows = (before.height + around.top + around.bottom - window[0]) // step + 1
    columns = (before.width + around.left + around.right - window[1]) // step + 1
    bottom = (rows - 1) * step + window[0] - around.top - before.height
    right = (columns - 1) * step + window[1] - around.left - before.width
    return rows, columns, Padding(around.top, around.left, max(0, bottom), max(0, right))


def _append_subsampling(layers: DarknetLayers, section: Section, steps: Pair, outputs: Shape) -> DarknetLayers:
    """Append layers that keep every n-th row and column of the last node's map (subsampling)."""
    blocks, source, before = _Blocks(section, steps, (1, 1), outputs), layers.last, layers.shape
    zeros, nodes = np.zeros(outputs.channels, np.float32), []
    for row, column in blocks.window_starts:
        weights = np.zeros((outputs.channels, 1, *blocks.window), np.float32)
        weights[:, :, row, column] = 1
        padding = blocks.padding(before, NO_PADDING)
        op = Convolution(weights, zeros, None, blocks.step, padding, outputs.channels, "linear", ITSELF)
        layers = layers.with_node(section, "pick", op, blocks.plane, source)
        nodes.append(layers.last)
    if len(nodes) > 1:
        joined = replace(blocks.plane, channels=outputs.channels * len(nodes))
        layers = layers.with_node(section, "route", Concat(), joined, *nodes)
    return _append_interleaving(layers, section, blocks, outputs)


def _append_interleaving(layers: DarknetLayers, section: Section, blocks: _Blocks, outputs: Shape) -> DarknetLayers:
    """Append layers that interleave the outputs computed per position of a block, and cut surplus rows and columns."""
    if blocks.rows * blocks.columns > 1:
        spread = DepthToSpace(blocks.rows, blocks.columns)
        rows, columns = blocks.plane.height * blocks.rows, blocks.plane.width * blocks.columns
        layers = layers.with_node(section, "depth_to_space", spread, Shape(outputs.channels, rows, columns))
    window = (layers.shape.height - outputs.height + 1, layers.shape.width - outputs.width + 1)
    if window == (1, 1):
        return layers
    weights, zeros = np.zeros((outputs.channels, 1, *window), np.float32), np.zeros(outputs.channels, np.float32)
    weights[:, :, 0, 0] = 1
    op = Convolution(weights, zeros, None, 1, NO_PADDING, outputs.channels, "linear", ITSELF)
    return layers.with_node(section, "pick", op, outputs)
