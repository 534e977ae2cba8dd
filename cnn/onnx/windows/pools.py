"""Pools: the greatest value of a window, or the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

import numpy as np

from boards.errors import InvalidValueError
from cnn.maps import FloatArray, Shape
from cnn.onnx.graph import Operation, require
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.onnx.quantised.mark import Mark
from cnn.onnx.windows.blocks import Window, convolved
from cnn.onnx.windows.borders import Factors, inside, weighed
from cnn.onnx.windows.dilated_pools import Side, dilated_max_pool
from cnn.onnx.windows.picked import Picks, picked
from cnn.onnx.windows.slide import Slide, check_pair, check_size, dilated, pads_of, planar, pool_of, slid
from cnn.ops import AveragePool, Convolution


def max_pool(layers: Layers, operation: Operation) -> Layers:
    """MaxPool."""
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
    slide = slid(layers, operation, source, span)
    if source.edge:
        _check_edges(operation, source, steps)
    if steps == (1, 1):
        return pooled(layers, operation, source, slide)
    padding, strides = slide.padding, slide.strides
    rows = Side(before.height, window[0], steps[0], strides[0], padding.top, slide.shape.height)
    columns = Side(before.width, window[1], steps[1], strides[1], padding.left, slide.shape.width)
    return dilated_max_pool(layers, operation, source.node, (rows, columns))


def _check_edges(operation: Operation, source: Map, steps: Sequence[int]) -> None:
    """Raise RefusedError if a window may see repeated edges and not what they repeat."""
    attributes = operation.integer("ceil_mode", 0), operation.text("auto_pad", "NOTSET")
    plain = attributes in ((0, "NOTSET"), (0, "VALID")) and tuple(steps) == (1, 1)
    require(plain, "edges are repeated before a MaxPool without dilations, ceil_mode and auto_pad")


def _check_same(operation: Operation, shape: Shape, window: Sequence[int], span: Sequence[int]) -> None:
    """Raise RefusedError if onnxruntime reads auto_pad otherwise than the operator's page.

    It does so for windows that are dilated, or that end before the next begins and leave the map's end out.
    """
    if not operation.text("auto_pad", "NOTSET").startswith("SAME"):
        return
    strides = [max(1, stride) for stride in operation.integers("strides", (1, 1))]
    ends = [(side - 1) % stride + 1 for side, stride in zip((shape.height, shape.width), strides, strict=False)]
    plain = tuple(window) == tuple(span) and all(end <= places for end, places in zip(ends, window, strict=False))
    require(plain, "onnx and onnxruntime read auto_pad of such a pool differently; write its pads")


def pooled(layers: Layers, operation: Operation, source: Map, slide: Slide) -> Layers:
    """Of strides that differ, a pool of what both are multiples of, and every so manieth of its rows and columns."""
    (rows, columns), padding, shape = slide.window, slide.padding, slide.shape
    check_size(slide.window)
    inside = max(padding.top, padding.bottom) < rows and max(padding.left, padding.right) < columns
    sides = (padding.top, padding.left, padding.bottom, padding.right)
    require(inside, InvalidValueError("padding", sides, f"less than the window of {rows}×{columns}"))
    stride = slide.stride or gcd(*slide.strides)
    op = pool_of((rows, columns), stride, padding)
    if slide.stride:
        return layers.grown(operation, "pool", op, shape, source.node)
    height, width = slide.outputs(stride)
    layers = layers.grown(operation, "pool", op, Shape(shape.channels, height, width), source.node)
    down, across = (each // stride for each in slide.strides)
    picks = Picks(height, 0, down, shape.height), Picks(width, 0, across, shape.width)
    return picked(layers, operation, len(layers.nodes) - 1, *picks)


def global_max(layers: Layers, operation: Operation) -> Layers:
    """GlobalMaxPool."""
    source, shape = layers.picture(operation)
    slide = Slide(shape, (shape.height, shape.width), Shape(shape.channels, 1, 1), NO_PADDING, (1, 1))
    return pooled(layers, operation, source, slide)


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
    steps = operation.integers("dilations", (1, 1))
    check_pair("kernel_shape", window)
    check_pair("dilations", steps)
    reach = [(side - 1) * step + 1 for side, step in zip(window, steps, strict=True)]
    check_size(reach)
    layers = layers.worked_out(4 * shape.channels * prod(reach))
    weights = np.full((shape.channels, 1, *window), 1 / (window[0] * window[1]), np.float32)
    weights = dilated(weights, steps)
    _check_same(operation, shape, window, weights.shape[2:])
    slide, node = slid(layers, operation, source, weights.shape[2:]), source.node
    op = Convolution(weights, np.zeros(shape.channels, np.float32), None, 1, NO_PADDING, shape.channels, "linear")
    rows, columns = _shares(operation, slide, weights[0, 0])
    averaged = Window(op, slide, Mark(scale=np.array([weights.max()])), "average")
    larger = convolved(layers, replace(operation, inputs=operation.inputs[:1]), node, averaged)
    return weighed(larger, operation, node, 1 / rows, 1 / columns)


def _shares(operation: Operation, slide: Slide, weights: FloatArray) -> tuple[Factors, Factors]:
    """Of each row and each column of an average, the share of its window's places that is counted."""
    shape, averaged, padding = slide.before, slide.shape, slide.padding
    sides = ((shape.height, averaged.height, padding.top), (shape.width, averaged.width, padding.left))
    counted = bool(operation.integer("count_include_pad", 0))
    front, back = pads_of(operation, (shape.height, shape.width), slide.window, slide.strides)
    shares = []
    for axis, (length, outputs, before) in enumerate(sides):
        # A dilated window has others between.
        places = np.asarray(weights.any(axis=1 - axis), dtype=np.float32)
        around = (front[axis], back[axis]) if counted else (0, 0)
        shares.append(inside(outputs, slide.strides[axis], before - around[0], places, length + sum(around)))
    return shares[0], shares[1]


def global_average(layers: Layers, operation: Operation) -> Layers:
    """GlobalAveragePool."""
    return _averaged(layers, operation, layers.picture(operation)[0], True)


def _averaged(layers: Layers, operation: Operation, source: Map, keep: bool) -> Layers:
    channels = layers.nodes[source.node].shape.channels
    larger = layers.grown(operation, "average", AveragePool(), Shape(channels, 1, 1), source.node)
    return larger if keep else larger.with_values(operation, Map(len(layers.nodes), (1, channels)))
