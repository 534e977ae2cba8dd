"""What is told of channels, rows or columns, or several of them: their mean, their sum, the greatest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from boards.errors import InvalidValueError, RangeError
from cnn.limits import MAX_WINDOW
from cnn.maps import FloatArray, Shape
from cnn.onnx import shapes
from cnn.onnx.arithmetic import extreme_of
from cnn.onnx.graph import OnnxOperation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.pools import pooled
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.sliding import Slide
from cnn.ops import AveragePool, Convolution, Slice

Reduction: TypeAlias = Callable[[Layers, OnnxOperation, int], tuple[Layers, int]]
"""Of all channels of a node's map; the node that gives it."""


def mean(layers: Layers, operation: OnnxOperation) -> Layers:
    """ReduceMean and ReduceSum over channels, rows or columns, or several of them: a convolution, where it is not the
    whole map's mean."""
    return _reduced(layers, operation, _mean_of_places, _mean_of_channels)


def greatest(layers: Layers, operation: OnnxOperation) -> Layers:
    """ReduceMax of the same: a pool, and of channels the greater of halves, and of halves of these."""
    return _reduced(layers, operation, _greatest_place, _greatest_channel)


def _reduced(
    layers: Layers,
    operation: OnnxOperation,
    of_places: Callable[[Layers, OnnxOperation, int, tuple[int, int]], tuple[Layers, int]],
    of_channels: Reduction,
) -> Layers:
    source = layers.map(operation)
    if operation.integer("noop_with_empty_axes", 0) and not shapes.integers(layers, operation, "axes", 1):
        return layers.with_values(operation, source)
    axes = _axes(layers, operation, len(source.shape))
    sides = _sides(source.shape, axes, bool(operation.integer("keepdims", 1)))
    index, window = source.node, _window(layers, source, axes)
    bare = replace(operation, inputs=operation.inputs[:1])  # its axes are no weights
    if window != (1, 1):
        layers, index = of_places(layers, bare, index, window)
    if 1 in axes and layers.nodes[index].shape.channels > 1:
        layers, index = of_channels(layers, bare, index)
    return layers.with_values(operation, Map(index, sides))


def _axes(layers: Layers, operation: OnnxOperation, rank: int) -> set[int]:
    """All of them where none is named."""
    named = shapes.integers(layers, operation, "axes", 1) or ()
    axes = {shapes.position_of(axis, rank) for axis in named or range(rank)}
    require(0 not in axes, InvalidValueError("axes", tuple(sorted(axes)), "those of channels, height or width"))
    return axes


def _window(layers: Layers, source: Map, axes: set[int]) -> tuple[int, int]:
    """So many rows and columns; of a row of a map's places all of them."""
    shape = layers.nodes[source.node].shape
    if len(source.shape) == 3 and source.shape[1] == shape.channels:
        return (shape.height, shape.width) if 2 in axes else (1, 1)
    layers.shape_of(source)
    return shape.height if 2 in axes else 1, shape.width if 3 in axes else 1


def _sides(sides: Sequence[int], reduced: set[int], keep: bool) -> tuple[int, ...]:
    """Of a tensor that is told of ``reduced``, some of its axes, which stay as 1 where they are kept."""
    return tuple(1 if axis in reduced else side for axis, side in enumerate(sides) if keep or axis not in reduced)


def _mean_of_places(
    layers: Layers, operation: OnnxOperation, index: int, window: tuple[int, int]
) -> tuple[Layers, int]:
    """Of each channel of a node's map, over so many rows and columns."""
    shape = layers.nodes[index].shape
    if window == (shape.height, shape.width) and operation.kind == "ReduceMean":
        averaged = replace(shape, height=1, width=1)
        return layers.grown(operation, "average", AveragePool(), averaged, index), len(layers.nodes)
    layers = layers.worked_out(4 * shape.channels * prod(window))
    return _weighed(layers, operation, index, np.full((shape.channels, 1, *window), 1, np.float32))


def _mean_of_channels(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    channels = layers.nodes[index].shape.channels
    return _weighed(layers, operation, index, np.full((1, channels, 1, 1), 1, np.float32))


def _weighed(layers: Layers, operation: OnnxOperation, index: int, weights: FloatArray) -> tuple[Layers, int]:
    """A convolution of a node's map: over all channels, or along a side of each by itself. weights: all 1, of a sum."""
    shape, window = layers.nodes[index].shape, weights.shape[2:]
    require(max(window) <= MAX_WINDOW, RangeError("the side that it reduces", max(window), 1, MAX_WINDOW))
    smaller = Shape(len(weights), shape.height - window[0] + 1, shape.width - window[1] + 1)
    weights = weights / np.float32(weights[0].size if operation.kind == "ReduceMean" else 1)
    groups = shape.channels // weights.shape[1]
    op = Convolution(weights, np.zeros(len(weights), np.float32), None, 1, NO_PADDING, groups, "linear")
    layers = layers.grown(operation, "average", op, smaller, index)
    index = len(layers.nodes) - 1
    return layers.marked(index, Mark(scale=np.array([weights.max()]))), index


def _greatest_place(
    layers: Layers, operation: OnnxOperation, index: int, window: tuple[int, int]
) -> tuple[Layers, int]:
    """Of each channel of a node's map, over so many rows and columns."""
    shape = layers.nodes[index].shape
    smaller = Shape(shape.channels, shape.height - window[0] + 1, shape.width - window[1] + 1)
    source = Map(index, (1, shape.channels, shape.height, shape.width))
    larger = pooled(layers, operation, source, Slide(shape, window, smaller, NO_PADDING, (1, 1)))
    return larger, len(larger.nodes) - 1


def _greatest_channel(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    """The middle channel of an odd number is in both halves."""
    while (channels := layers.nodes[index].shape.channels) > 1:
        half, halves = (channels + 1) // 2, []
        for first in (0, channels - half):
            shape = replace(layers.nodes[index].shape, channels=half)
            layers = layers.grown(operation, "slice", Slice(first, half), shape, index)
            halves.append(len(layers.nodes) - 1)
        layers = extreme_of(layers, replace(operation, kind="Max"), halves)
        index = len(layers.nodes) - 1
    return layers, index
