"""Slice and Gather: channels, and of rows and columns every so manieth from one on.

A window takes rows and columns in the same steps. So a Slice of rows alone waits for the Slice of columns behind it, as
exporters write x[:, :, ::2, ::2] (the Focus of YOLOv5 and YOLOX).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import InvalidValueError, MissingValueError, RangeError
from cnn.limits import MAX_CHANNELS
from cnn.maps import Shape
from cnn.onnx import shapes
from cnn.onnx.graph import Array, Operation, require
from cnn.onnx.layers import Layers, Map
from cnn.onnx.windows.picked import Picks, picked

Side = tuple[int, int, int]
"""Of the rows or columns of a node's map: the first that is taken, the step to the next, how many."""


def slices(layers: Layers, operation: Operation) -> Layers:
    """Slice."""
    source = layers.map(operation)
    shape = layers.nodes[source.node].shape
    if source.crop is None:
        layers.shape_of(source)
    sides = [(0, 1, shape.channels), *(source.crop or ((0, 1, shape.height), (0, 1, shape.width)))]
    rank = len(source.shape)
    for start, end, axis, step in _cuts(layers, operation):
        position = shapes.position_of(axis, rank)
        require(step != 0, InvalidValueError("a step", step, "other than 0"))
        places = range(source.shape[position])[start:end:step]
        if places == range(source.shape[position]):
            continue
        require(position > 0, "it slices the batch")
        require(step >= 1 or position == 1, RangeError("a step of rows or columns", step, low=1))
        place = 0 if position == 1 else position + 3 - rank
        sides[place] = _within(sides[place], places)
    channels, *crop = sides
    layers = _channels(layers, operation, replace(source, crop=None), shape, channels)
    whole_map = [(0, 1, shape.height), (0, 1, shape.width)]
    return layers if crop == whole_map else _cropped(layers, operation, rank, (crop[0], crop[1]))


def _channels(layers: Layers, operation: Operation, source: Map, shape: Shape, side: Side) -> Layers:
    """One after the other a part, others a 1×1 convolution."""
    first, step, count = side
    if step == 1 or count == 1:
        return shapes.part(layers, operation, source, shape, first, first + count)
    bare = replace(operation, inputs=operation.inputs[:1])
    return shapes.picked_channels(layers, bare, source.node, first + step * np.arange(count))


def place(layers: Layers, operation: Operation) -> Layers:
    """Gather of channels; of one row or column, or of some that are as far apart, as a Slice takes them."""
    source, array = layers.map(operation), layers.constant(operation, 1)
    axis = shapes.position_of(operation.integer("axis", 0), len(source.shape))
    if axis == 1 and array.ndim == 1:
        return shapes.gather(layers, operation)
    first, last, step = _steps(array, axis, source.shape[axis])
    ends = {"starts": (first,), "ends": (last + 1,), "axes": (axis,), "steps": (step,)}
    result = slices(layers, replace(operation, inputs=operation.inputs[:1], attributes=ends))
    value = result.value(operation.outputs[0])
    if array.ndim or not isinstance(value, Map):
        return result
    return result.with_values(operation, replace(value, shape=(*value.shape[:axis], *value.shape[axis + 1 :])))


def _steps(array: Array, axis: int, side: int) -> tuple[int, int, int]:
    """Return the first, the last and the step of the indices that are gathered along a side."""
    listed = array.dtype.kind in "iu" and array.ndim <= 1 and 1 <= array.size <= MAX_CHANNELS
    require(listed and axis > 0, "it gathers by an index or a list of indices, along any axis but the batch's")
    numbers = [int(number) for number in array.ravel()]
    for number in numbers:
        require(-side <= number < side, RangeError("an index", number, -side, side - 1))
    places = [number % side for number in numbers]
    steps = {*np.diff(places).tolist()} or {1}
    fits = len(steps) == 1 and min(steps) > 0
    require(fits, InvalidValueError("indices of rows or columns", tuple(numbers), "ascending in equal steps"))
    return places[0], places[-1], steps.pop()


def _cuts(layers: Layers, operation: Operation) -> list[tuple[int, int, int, int]]:
    """Start, end, axis and step of each side."""
    starts, ends = (_asked(layers, operation, key, i) for key, i in (("starts", 1), ("ends", 2)))
    axes = shapes.integers(layers, operation, "axes", 3) or tuple(range(len(starts)))
    steps = (shapes.integers(layers, operation, "steps", 4) or ()) or (1,) * len(starts)
    counts = tuple(map(len, (starts, ends, axes, steps)))
    require(len(set(counts)) == 1, InvalidValueError("the numbers of starts, ends, axes and steps", counts, "equal"))
    return list(zip(starts, ends, axes, steps, strict=True))


def _asked(layers: Layers, operation: Operation, key: str, position: int) -> tuple[int, ...]:
    values = shapes.integers(layers, operation, key, position)
    if values is None:
        raise MissingValueError(f"the input {key}")
    return values


def _within(side: Side, places: range) -> Side:
    """Return these of the rows, columns or channels that are taken already."""
    required = "at least one row, column or channel, first and end"
    require(len(places) >= 1, InvalidValueError("a range", (places.start, places.stop), required))
    return side[0] + side[1] * places.start, side[1] * places.step, len(places)


def _cropped(layers: Layers, operation: Operation, rank: int, crop: tuple[Side, Side]) -> Layers:
    """Taken now, where rows and columns have one step, else left to the next operation."""
    (name,), ((_, down, rows), (_, across, columns)) = operation.outputs, crop
    value = layers.value(name)
    assert isinstance(value, Map)
    channels = layers.nodes[value.node].shape.channels
    sides = (1, channels, rows, columns) if rank == 4 else (1, channels, columns)
    layers = layers.with_values(operation, replace(value, shape=sides, crop=crop))
    return settled(layers, name) if down == across or 1 in (rows, columns) else layers


def settled(layers: Layers, name: str) -> Layers:
    """The tensor with its rows and columns taken."""
    value = layers.value(name)
    if not isinstance(value, Map) or value.crop is None:
        return layers
    shape, operation = layers.nodes[value.node].shape, Operation("", "Slice", (name,), (name,), {})
    sides = zip((shape.height, shape.width), value.crop, strict=True)
    rows, columns = (Picks(length, first, step, count) for length, (first, step, count) in sides)
    layers = picked(layers, operation, value.node, rows, columns)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1, crop=None))
