"""Read ReduceMean, ReduceSum and ReduceMax over channels, rows, columns or several of these axes."""

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
"""A function that reduces all channels of a node's map; it returns the network and the node with the result."""


def mean(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX ReduceMean or ReduceSum: append a global average pool, or convolutions with equal weights."""
    return _reduced(layers, operation, _mean_of_places, _mean_of_channels)


def greatest(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX ReduceMax: append a max pool for rows and columns, and pairwise maxima of channels."""
    return _reduced(layers, operation, _greatest_place, _greatest_channel)


def _reduced(
    layers: Layers,
    operation: OnnxOperation,
    of_places: Callable[[Layers, OnnxOperation, int, tuple[int, int]], tuple[Layers, int]],
    of_channels: Reduction,
) -> Layers:
    """Append the layers of a reduction over rows and columns, channels or both, which the two given functions append.

    Args:
        layers: The network read so far.
        operation: The operation.
        of_places: Appends the reduction of a window of rows and columns.
        of_channels: Appends the reduction of all channels.
    """
    source = layers.map(operation)
    if operation.integer("noop_with_empty_axes", 0) and not shapes.integers(layers, operation, "axes", 1):
        return layers.with_values(operation, source)
    axes = _axes(layers, operation, len(source.shape))
    sides = _sides(source.shape, axes, bool(operation.integer("keepdims", 1)))
    index, window = source.node, _window(layers, source, axes)
    bare = replace(operation, inputs=operation.inputs[:1])  # its second input, the axes, holds no weights
    if window != (1, 1):
        layers, index = of_places(layers, bare, index, window)
    if 1 in axes and layers.nodes[index].shape.channels > 1:
        layers, index = of_channels(layers, bare, index)
    return layers.with_values(operation, Map(index, sides))


def _axes(layers: Layers, operation: OnnxOperation, rank: int) -> set[int]:
    """Return the axes that a Reduce operator reduces: all if it names none; InvalidValueError if the batch is one."""
    named = shapes.integers(layers, operation, "axes", 1) or ()
    axes = {shapes.position_of(axis, rank) for axis in named or range(rank)}
    require(0 not in axes, InvalidValueError("axes", tuple(sorted(axes)), "channels, height or width, not the batch"))
    return axes


def _window(layers: Layers, source: Map, axes: set[int]) -> tuple[int, int]:
    """Return the rows and columns that become one value, as a window; (1, 1) if only channels are reduced.

    If the tensor views height and width as a single side, both are reduced.
    """
    shape = layers.nodes[source.node].shape
    if len(source.shape) == 3 and source.shape[1] == shape.channels:
        return (shape.height, shape.width) if 2 in axes else (1, 1)
    layers.shape_of(source)
    return shape.height if 2 in axes else 1, shape.width if 3 in axes else 1


def _sides(sides: Sequence[int], reduced: set[int], keep: bool) -> tuple[int, ...]:
    """Return the shape of a reduction's output: reduced sides become 1 if ``keep``, and are removed otherwise."""
    return tuple(1 if axis in reduced else side for axis, side in enumerate(sides) if keep or axis not in reduced)


def _mean_of_places(
    layers: Layers, operation: OnnxOperation, index: int, window: tuple[int, int]
) -> tuple[Layers, int]:
    """Append a mean or sum over each window of rows and columns, per channel of a node's output."""
    shape = layers.nodes[index].shape
    if window == (shape.height, shape.width) and operation.kind == "ReduceMean":
        averaged = replace(shape, height=1, width=1)
        return layers.with_node(operation, "average", AveragePool(), averaged, index), len(layers.nodes)
    layers = layers.with_bytes_spent(4 * shape.channels * prod(window))
    return _weighed(layers, operation, index, np.full((shape.channels, 1, *window), 1, np.float32))


def _mean_of_channels(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    channels = layers.nodes[index].shape.channels
    return _weighed(layers, operation, index, np.full((1, channels, 1, 1), 1, np.float32))


def _weighed(layers: Layers, operation: OnnxOperation, index: int, weights: FloatArray) -> tuple[Layers, int]:
    """Append a convolution with equal weights that sums or averages channels, or windows, of a node's output.

    weights: Weights of 1, (1, channels, 1, 1) over the channels or (channels, 1, rows, columns) over a window.
    """
    shape, window = layers.nodes[index].shape, weights.shape[2:]
    require(max(window) <= MAX_WINDOW, RangeError("the side that it reduces", max(window), 1, MAX_WINDOW))
    smaller = Shape(len(weights), shape.height - window[0] + 1, shape.width - window[1] + 1)
    weights = weights / np.float32(weights[0].size if operation.kind == "ReduceMean" else 1)
    groups = shape.channels // weights.shape[1]
    op = Convolution(weights, np.zeros(len(weights), np.float32), None, 1, NO_PADDING, groups, "linear")
    layers = layers.with_node(operation, "average", op, smaller, index)
    index = len(layers.nodes) - 1
    return layers.marked(index, Mark(scale=np.array([weights.max()]))), index


def _greatest_place(
    layers: Layers, operation: OnnxOperation, index: int, window: tuple[int, int]
) -> tuple[Layers, int]:
    """Append a max pool over a window of rows and columns of a node's output."""
    shape = layers.nodes[index].shape
    smaller = Shape(shape.channels, shape.height - window[0] + 1, shape.width - window[1] + 1)
    source = Map(index, (1, shape.channels, shape.height, shape.width))
    larger = pooled(layers, operation, source, Slide(shape, window, smaller, NO_PADDING, (1, 1)))
    return larger, len(larger.nodes) - 1


def _greatest_channel(layers: Layers, operation: OnnxOperation, index: int) -> tuple[Layers, int]:
    """Append layers for the maximum over the channels of a node's output: halves are compared until one is left.

    If their number is odd, the middle channel is in both halves, which does not change the maximum.
    """
    while (channels := layers.nodes[index].shape.channels) > 1:
        half, halves = (channels + 1) // 2, []
        for first in (0, channels - half):
            shape = replace(layers.nodes[index].shape, channels=half)
            layers = layers.with_node(operation, "slice", Slice(first, half), shape, index)
            halves.append(len(layers.nodes) - 1)
        layers = extreme_of(layers, replace(operation, kind="Max"), halves)
        index = len(layers.nodes) - 1
    return layers, index
