"""Pools: the greatest value of a window, or the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from cnn.limits import MAX_KERNEL
from cnn.network import AveragePool, Convolution, MaxPool, Padding, Shape
from cnn.onnx import shapes
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.windows.borders import Factors, inside, weighed
from cnn.onnx.windows.dilated_pools import Side, dilated_max_pool
from cnn.onnx.windows.slide import dilated, pads_of, planar, slid

Slide: TypeAlias = tuple[tuple[int, ...], Shape, Padding, int]
"""A window, what it leaves, the padding that it reads, and its stride."""


def max_pool(layers: Layers, operation: Operation) -> Layers:
    """MaxPool of square windows, or of any along the one row or column that a map has."""
    source, before = layers.picture(operation)
    require(
        len(operation.outputs) < 2 or not layers.readers[operation.outputs[1]], "where the greatest was is not told"
    )
    operation = planar(operation, source)
    window = operation.integers("kernel_shape", ())
    steps = operation.integers("dilations", (1, 1))
    require(len(window) == 2 and min(window) >= 1, f"a pool's window is square, not {window}")
    require(len(steps) == 2 and min(steps) >= 1, f"dilations are two, 1 or more, not {steps}")
    steps = (steps[0] if window[0] > 1 else 1, steps[1] if window[1] > 1 else 1)
    span = [(places - 1) * step + 1 for places, step in zip(window, steps, strict=True)]
    _check_same(operation, before, window, span)
    shape, padding, stride = slid(layers, operation, source, span)
    if window[0] != window[1]:
        along = before.height == shape.height == window[0] == 1 or before.width == shape.width == window[1] == 1
        require(along, f"a pool's window is square, not {window}")
    if steps != (1, 1):
        return _dilated(layers, operation, source, (window, shape, padding, stride), steps)
    return _pooled(layers, operation, source, (window, shape, padding, stride))


def _check_same(operation: Operation, shape: Shape, window: Sequence[int], span: Sequence[int]) -> None:
    """RefusedError for what onnxruntime makes of auto_pad otherwise than its page says: of windows that are dilated, or
    end before the next begins and leave the map's end out."""
    if not operation.text("auto_pad", "NOTSET").startswith("SAME"):
        return
    stride = max(1, *operation.integers("strides", (1, 1)))
    ends = [(side - 1) % stride + 1 for side in (shape.height, shape.width)]
    plain = tuple(window) == tuple(span) and all(end <= places for end, places in zip(ends, window, strict=True))
    require(plain, "onnx and onnxruntime read auto_pad of such a pool differently: write its pads")


def _dilated(layers: Layers, operation: Operation, source: Map, slide: Slide, steps: tuple[int, int]) -> Layers:
    """Places of the window that lie so many rows and columns apart."""
    window, shape, padding, stride = slide
    require(max(window) <= MAX_KERNEL, f"a pool's window has at most {MAX_KERNEL} rows and columns, not {window}")
    require(min(window) == 1 or steps[0] == steps[1], f"a square pool has one dilation, not {steps}")
    shape_read = layers.nodes[source.node].shape
    rows = Side(shape_read.height, window[0], steps[0], stride, padding.top, shape.height)
    columns = Side(shape_read.width, window[1], steps[1], stride, padding.left, shape.width)
    return dilated_max_pool(layers, operation, source.node, (rows, columns))


def _pooled(layers: Layers, operation: Operation, source: Map, slide: Slide) -> Layers:
    """What a square window has more lies in padding, which is below every value."""
    window, shape, padding, stride = slide
    size = max(window)
    padding = replace(padding, bottom=padding.bottom + size - window[0], right=padding.right + size - window[1])
    widest = max(padding.top, padding.left, padding.bottom, padding.right)
    require(size <= MAX_KERNEL, f"a pool's window has at most {MAX_KERNEL} rows and columns, not {window}")
    require(widest < size, f"padding of {widest} would put a whole window outside the map")
    return layers.grown(operation, "pool", MaxPool(size, stride, padding), shape, source.node)


def global_max(layers: Layers, operation: Operation) -> Layers:
    """GlobalMaxPool."""
    source, shape = layers.picture(operation)
    slide = ((shape.height, shape.width), Shape(shape.channels, 1, 1), NO_PADDING, 1)
    return _pooled(layers, operation, source, slide)


def average_pool(layers: Layers, operation: Operation) -> Layers:
    """AveragePool: over the whole map; of windows of one value, which changes nothing; of other windows a convolution
    of every channel by itself, all of whose weights are 1 / places, and factors where fewer places are counted."""
    source, shape = layers.picture(operation)
    operation = planar(operation, source)
    window, padded = operation.integers("kernel_shape", ()), any(operation.integers("pads", (0,)))
    if window == (1, 1) == operation.integers("strides", (1, 1)) and not padded:
        return layers.with_values(operation, source)
    padded = padded or operation.text("auto_pad", "NOTSET").startswith("SAME")
    if window == (shape.height, shape.width) and not padded:
        return _averaged(layers, operation, source, True)
    require(len(window) == 2 and 1 <= min(window) <= max(window) <= MAX_KERNEL, f"a pool has a window, not {window}")
    weights = np.full((shape.channels, 1, *window), 1 / (window[0] * window[1]), np.float32)
    weights = dilated(weights, operation.integers("dilations", (1, 1)))
    _check_same(operation, shape, window, weights.shape[2:])
    averaged, padding, stride = slid(layers, operation, source, weights.shape[2:])
    bias = np.zeros(shape.channels, np.float32)
    op = Convolution(weights, bias, None, stride, padding, shape.channels, "linear")
    rows, columns = _shares(operation, shape, averaged, op)
    larger = layers.grown(operation, "average", op, averaged, source.node)
    larger = larger.marked(len(layers.nodes), Mark(scale=np.array([weights.max()])))
    return weighed(larger, operation, 1 / rows, 1 / columns)


def _shares(operation: Operation, shape: Shape, averaged: Shape, op: Convolution) -> tuple[Factors, Factors]:
    """Of each row and each column of an average, the share of its window's places that is counted."""
    window = op.weights.shape[2:]
    sides = ((shape.height, averaged.height, op.padding.top), (shape.width, averaged.width, op.padding.left))
    counted = bool(operation.integer("count_include_pad", 0))
    front, back = pads_of(operation, (shape.height, shape.width), window, op.stride)
    shares = []
    for axis, (length, outputs, before) in enumerate(sides):
        places = (op.weights[0, 0].any(axis=1 - axis)).astype(np.float32)  # a dilated window has others between
        around = (front[axis], back[axis]) if counted else (0, 0)
        shares.append(inside(outputs, op.stride, before - around[0], places, length + sum(around)))
    return shares[0], shares[1]


def global_average(layers: Layers, operation: Operation) -> Layers:
    """GlobalAveragePool."""
    return _averaged(layers, operation, layers.picture(operation)[0], True)


def mean(layers: Layers, operation: Operation) -> Layers:
    """ReduceMean over height and width."""
    source, _ = layers.picture(operation)
    axes, rank = shapes.integers(layers, operation, "axes", 1) or (), len(source.shape)
    over = sorted(axis % rank for axis in axes)
    require(bool(over) and over == [*range(2, rank)], f"a mean is taken over height and width, not over axes {axes}")
    return _averaged(layers, operation, source, bool(operation.integer("keepdims", 1)))


def _averaged(layers: Layers, operation: Operation, source: Map, keep: bool) -> Layers:
    channels = layers.nodes[source.node].shape.channels
    larger = layers.grown(operation, "average", AveragePool(), Shape(channels, 1, 1), source.node)
    return larger if keep else larger.with_values(operation, Map(len(layers.nodes), (1, channels)))
