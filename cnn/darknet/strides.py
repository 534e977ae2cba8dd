"""Windows whose strides down and across differ (``stride_y``, ``stride_x``), by layers that have one stride each.

Of the strides a and b and their least common multiple m, the rows y, y + m / a … of the output lie m rows apart in the
input, and m / b columns of it m columns. So a block of m / a × m / b outputs is as many windows of stride m, each of
which begins where its place does: one convolution that has the filters for all of them, and depth to space. Groups and
pools take their greatest common divisor as a stride, and then every n-th row and column.
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
    """Return the strides down and across: ``stride``, unless ``stride_y`` and ``stride_x`` say otherwise."""
    stride = section.integer("stride", default, 1, most)
    return section.integer("stride_y", stride, 1, most), section.integer("stride_x", stride, 1, most)


def convolved(layers: DarknetLayers, section: Section, op: Convolution, strides: Pair, outputs: Shape) -> DarknetLayers:
    """Add the convolution as one darknet layer. Of ``op`` neither the stride is read, nor the padding below and to the
    right of the map."""
    down, across = strides
    if down == across:
        return layers.grown(section, "conv", replace(op, stride=down), outputs)
    if op.groups > 1:
        step = gcd(down, across)
        rows, columns, padding = _dense(layers.shape, op.window, step, op.padding)
        plain = replace(op, stride=step, padding=padding)
        larger = layers.grown(section, "conv", plain, Shape(outputs.channels, rows, columns))
        picked = _picked(larger, section, (down // step, across // step), outputs)
        return replace(picked, layers=(*layers.layers, picked.last))
    blocks = _Blocks(section, strides, op.window, outputs)
    filters, each, places = outputs.channels, op.weights.shape[1], len(blocks.places)
    zeros = np.broadcast_to(np.float32(0), (filters * places,))
    norm = op.batch_norm and replace(op.batch_norm, scale=zeros, mean=zeros, variance=zeros)
    larger_op = replace(
        op,
        weights=np.broadcast_to(np.float32(0), (filters * places, each, *blocks.window)),
        bias=zeros,
        batch_norm=norm,
        stride=blocks.step,
        padding=blocks.padding(layers.shape, op.padding),
        stored=replace(op.stored, places=blocks.places, window=op.weights.shape[2:], step=max(op.dilation)),
        dilation=(1, 1),
    )
    larger = layers.grown(section, "conv", larger_op, replace(blocks.each, channels=filters * places))
    spread = _spread(larger, section, blocks, outputs)
    return replace(spread, layers=(*layers.layers, spread.last))


def pooled(layers: DarknetLayers, section: Section, op: MaxPool, strides: Pair, outputs: Shape) -> DarknetLayers:
    """Add the pool as one darknet layer. op: as in ``convolved``."""
    step = gcd(*strides)
    if strides == (step, step):
        return layers.grown(section, "pool", replace(op, stride=step), outputs)
    rows, columns, padding = _dense(layers.shape, op.window, step, op.padding)
    plain = replace(op, stride=step, padding=padding)
    larger = layers.grown(section, "pool", plain, Shape(outputs.channels, rows, columns))
    picked = _picked(larger, section, (strides[0] // step, strides[1] // step), outputs)
    return replace(picked, layers=(*layers.layers, picked.last))


class _Blocks:
    """How windows of two strides lie in blocks. places: where the window of each place of a block begins in the larger
    ``window`` that has all of them. each: the map of one place."""

    def __init__(self, section: Section, strides: Pair, window: Pair, outputs: Shape) -> None:
        (down, across), self.step = strides, lcm(*strides)
        self.rows, self.columns = self.step // down, self.step // across
        self.window = (window[0] + self.step - down, window[1] + self.step - across)
        if max(self.window) > MAX_KERNEL:
            what = f"a side of the window that strides of {down} down and {across} across make"
            raise RangeError(what, max(self.window), high=MAX_KERNEL, where=section.source)
        self.places = tuple((i * down, j * across) for i, j in product(range(self.rows), range(self.columns)))
        self.each = replace(outputs, height=-(-outputs.height // self.rows), width=-(-outputs.width // self.columns))

    def padding(self, before: Shape, around: Padding) -> Padding:
        """Return the padding that the larger windows read; above and to the left it is known."""
        bottom = self.step * (self.each.height - 1) + self.window[0] - around.top - before.height
        right = self.step * (self.each.width - 1) + self.window[1] - around.left - before.width
        return Padding(around.top, around.left, max(0, bottom), max(0, right))


def _dense(before: Shape, window: Pair, step: int, around: Padding) -> tuple[int, int, Padding]:
    """Return how many windows of one stride the padded map has down and across, and the padding that they read."""
    rows = (before.height + around.top + around.bottom - window[0]) // step + 1
    columns = (before.width + around.left + around.right - window[1]) // step + 1
    bottom = (rows - 1) * step + window[0] - around.top - before.height
    right = (columns - 1) * step + window[1] - around.left - before.width
    return rows, columns, Padding(around.top, around.left, max(0, bottom), max(0, right))


def _picked(layers: DarknetLayers, section: Section, steps: Pair, outputs: Shape) -> DarknetLayers:
    """Keep every n-th row and column of the last node's map, by a depthwise convolution."""
    blocks, source, before = _Blocks(section, steps, (1, 1), outputs), layers.last, layers.shape
    zeros, nodes = np.zeros(outputs.channels, np.float32), []
    for row, column in blocks.places:
        weights = np.zeros((outputs.channels, 1, *blocks.window), np.float32)
        weights[:, :, row, column] = 1
        padding = blocks.padding(before, NO_PADDING)
        op = Convolution(weights, zeros, None, blocks.step, padding, outputs.channels, "linear", ITSELF)
        layers = layers.grown(section, "pick", op, blocks.each, source)
        nodes.append(layers.last)
    if len(nodes) > 1:
        joined = replace(blocks.each, channels=outputs.channels * len(nodes))
        layers = layers.grown(section, "route", Concat(), joined, *nodes)
    return _spread(layers, section, blocks, outputs)


def _spread(layers: DarknetLayers, section: Section, blocks: _Blocks, outputs: Shape) -> DarknetLayers:
    """Put the values of a block's places next to each other, and cut off the rows and columns that are too many."""
    if blocks.rows * blocks.columns > 1:
        spread = DepthToSpace(blocks.rows, blocks.columns)
        rows, columns = blocks.each.height * blocks.rows, blocks.each.width * blocks.columns
        layers = layers.grown(section, "depth_to_space", spread, Shape(outputs.channels, rows, columns))
    window = (layers.shape.height - outputs.height + 1, layers.shape.width - outputs.width + 1)
    if window == (1, 1):
        return layers
    weights, zeros = np.zeros((outputs.channels, 1, *window), np.float32), np.zeros(outputs.channels, np.float32)
    weights[:, :, 0, 0] = 1
    op = Convolution(weights, zeros, None, 1, NO_PADDING, outputs.channels, "linear", ITSELF)
    return layers.grown(section, "pick", op, outputs)
