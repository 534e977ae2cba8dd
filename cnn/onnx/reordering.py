"""Read operators that select channels, rows or columns of a map, or reorder them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boards.errors import InvalidValueError, MissingValueError, RangeError
from cnn.limits import MAX_CHANNELS
from cnn.maps import Shape
from cnn.onnx import shapes
from cnn.onnx.digits import Moves, identity_reordering
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map, last_of, map_shape
from cnn.onnx.pools import Subsampling, append_subsampling
from cnn.onnx.shapes import reordered
from cnn.ops import DepthToSpace, Reorg

# Slice and Gather: they select channels, or every n-th row or column from one on.
#
# One layer selects rows and columns with the same step. A Slice of rows with a step is therefore postponed
# (``Map.crop``) until the Slice of columns after it, as exporters write x[:, :, ::2, ::2] (Focus of YOLOv5 and YOLOX).

Side = tuple[int, int, int]
"""A selection of channels, rows or columns: the first one, the step to the next one, and their number."""


def slices(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Slice of channels, rows or columns: append layers that select them, or postpone the crop."""
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


def _channels(layers: Layers, operation: OnnxOperation, source: Map, shape: Shape, side: Side) -> Layers:
    """Append a layer that selects channels: a slice if they are consecutive, else a 1×1 convolution."""
    first, step, count = side
    if step == 1 or count == 1:
        return shapes.part(layers, operation, source, shape, first, first + count)
    bare = replace(operation, inputs=operation.inputs[:1])
    return shapes.picked_channels(layers, bare, source.node, first + step * np.arange(count))


def place(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Gather of channels, of one row or column, or of rows or columns at regular steps."""
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
    """Return the first index, the last index and the step of a Gather's indices along one side."""
    listed = array.dtype.kind in "iu" and array.ndim <= 1 and 1 <= array.size <= MAX_CHANNELS
    require(listed and axis > 0, "it must gather by an integer or a list of integers, along any axis but the batch")
    numbers = [int(number) for number in array.ravel()]
    for number in numbers:
        require(-side <= number < side, RangeError("an index", number, -side, side - 1))
    places = [number % side for number in numbers]
    steps = {*np.diff(places).tolist()} or {1}
    fits = len(steps) == 1 and min(steps) > 0
    require(fits, InvalidValueError("indices of rows or columns", tuple(numbers), "ascending in equal steps"))
    return places[0], places[-1], steps.pop()


def _cuts(layers: Layers, operation: OnnxOperation) -> list[tuple[int, int, int, int]]:
    """Return the start, end, axis and step of each side that a Slice cuts."""
    starts, ends = (_asked(layers, operation, key, i) for key, i in (("starts", 1), ("ends", 2)))
    axes = shapes.integers(layers, operation, "axes", 3) or tuple(range(len(starts)))
    steps = (shapes.integers(layers, operation, "steps", 4) or ()) or (1,) * len(starts)
    counts = tuple(map(len, (starts, ends, axes, steps)))
    require(len(set(counts)) == 1, InvalidValueError("the numbers of starts, ends, axes and steps", counts, "equal"))
    return list(zip(starts, ends, axes, steps, strict=True))


def _asked(layers: Layers, operation: OnnxOperation, key: str, position: int) -> tuple[int, ...]:
    """Return an operator's integers, from its attribute or input; MissingValueError if they are left out."""
    values = shapes.integers(layers, operation, key, position)
    if values is None:
        raise MissingValueError(f"the input {key}")
    return values


def _within(side: Side, places: range) -> Side:
    """Return the selection that results from taking ``places`` of what ``side`` selects: rows, columns or channels."""
    required = "(first, end) with at least one row, column or channel"
    require(len(places) >= 1, InvalidValueError("a range", (places.start, places.stop), required))
    return side[0] + side[1] * places.start, side[1] * places.step, len(places)


def _cropped(layers: Layers, operation: OnnxOperation, rank: int, crop: tuple[Side, Side]) -> Layers:
    """Select rows and columns of a map: append a layer if both have one step, else postpone the crop."""
    (name,), ((_, down, rows), (_, across, columns)) = operation.outputs, crop
    value = layers.value(name)
    assert isinstance(value, Map)
    channels = layers.nodes[value.node].shape.channels
    sides = (1, channels, rows, columns) if rank == 4 else (1, channels, columns)
    layers = layers.with_values(operation, replace(value, shape=sides, crop=crop))
    return append_crop(layers, name) if down == across or 1 in (rows, columns) else layers


def append_crop(layers: Layers, name: str) -> Layers:
    """Append the layer for the postponed crop (Slice of rows and columns) of a tensor, if it has one."""
    value = layers.value(name)
    if not isinstance(value, Map) or value.crop is None:
        return layers
    shape, operation = layers.nodes[value.node].shape, OnnxOperation("", "Slice", (name,), (name,), {})
    sides = zip((shape.height, shape.width), value.crop, strict=True)
    rows, columns = (Subsampling(length, first, step, count) for length, (first, step, count) in sides)
    layers = append_subsampling(layers, operation, value.node, rows, columns)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1, crop=None))


# A Transpose of a map that is viewed with more than four sides. It shuffles channels (ShuffleNet), or moves them into
# rows and columns and back, as exporters write PyTorch's pixel_shuffle and pixel_unshuffle.
#
# The view is (batch, parts of the channels, parts of the rows, parts of the columns). The layers for an order are:
#
#     parts of the channels in another order                           a 1×1 convolution that moves channels
#     a part of the channels after the rows, one after the columns     the same, then depth to space
#     the last part of the rows and of the columns before the rest     space to depth, then the same
#
# The layer is darknet's reorg if the map is viewed as a larger map with fewer channels, and the last parts of its rows
# and columns move to the front.

MAX_SIDES = 8
"""Limit for the sides of a view."""


@dataclass(frozen=True)
class _Parts:
    """The axes of a reshaped map, sorted by whether they are parts of its channels, rows or columns."""

    channels: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


def transposed(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Transpose: note channels last, append layers that reorder values, or postpone the reordering.

    - If it moves the channels to the end, the tensor is marked as having them last.
    - If it only moves sides of 1, the values keep their order.
    - If it reorders parts of the channels, rows and columns, layers do so, now or after further views and Transposes.
    """
    source = layers.map(operation)
    rank = len(source.shape)
    order = operation.integers("perm", tuple(reversed(range(rank))))
    fits = sorted(order) == list(range(rank))
    require(fits, InvalidValueError("perm", order, f"an order of the axes 0 to {rank - 1}"))
    shapes.check_batch(layers, order[:1] == (0,))
    if source.moves is not None:
        return _postpone_transpose(layers, operation, source, source.moves.transposed(source.shape, order), order)
    has_channels = rank > 2 and source.shape[1] == layers.nodes[source.node].shape.channels
    if has_channels and order == (0, *range(2, rank), 1):
        return layers.with_values(operation, last_of(source))
    axes = [axis for axis in order if source.shape[axis] != 1]
    if axes == sorted(axes):
        return layers.with_values(operation, replace(source, shape=tuple(source.shape[axis] for axis in order)))
    larger = _shuffled(layers, operation, source, order)
    if larger is not None:
        return larger
    reason = f"perm {order} of {source.shape} reorders values in a way that no layer does"
    require(order[0] == 0 and source.crop is None, reason)
    moves = identity_reordering(source.shape, reason, str(operation)).transposed(source.shape, order)
    return _postpone_transpose(layers, operation, source, moves, order)


def _postpone_transpose(
    layers: Layers, operation: OnnxOperation, source: Map, moves: Moves | None, order: Sequence[int]
) -> Layers:
    """Return the network with the Transpose's reordering postponed; one that changes no order is dropped.

    Args:
        layers: The network read so far.
        operation: The Transpose.
        source: Its input.
        moves: The reordering after the Transpose; None if it cannot be described.
        order: The perm of the Transpose.
    """
    if moves is None:
        raise RefusedError(source.moves.reason if source.moves else "its sides do not divide its input's sides")
    left = moves if len(moves.merged().parts) > 1 else None
    return layers.with_values(operation, replace(source, shape=tuple(source.shape[axis] for axis in order), moves=left))


def append_reordering(layers: Layers, name: str) -> Layers:
    """Append layers for the postponed reordering (Transposes) of a tensor; RefusedError if no layers can do it."""
    source = layers.value(name)
    if not isinstance(source, Map) or source.moves is None:
        return layers
    shape, moves, operation = (
        layers.nodes[source.node].shape,
        source.moves,
        OnnxOperation("", "Transpose", (name,), (name,), {}),
    )
    for form in _forms_of(moves, shape):
        view, places = (1, *form.parts), (0, *(1 + number for number in form.order))
        larger = _shuffled(layers, operation, replace(source, shape=view, moves=None), places)
        value = larger.value(name) if larger else None
        if larger is None or not isinstance(value, Map):
            continue
        if len(source.shape) < 3 or source.shape[1] == larger.nodes[value.node].shape.channels:
            return larger.with_values(operation, replace(value, shape=source.shape))
    raise RefusedError(moves.reason, moves.named)


def _forms_of(moves: Moves, shape: Shape) -> Iterator[Moves]:
    """Yield equivalent digit notations of a reordering, one of which may match a layer such as depth to space.

    They are split at the ends of the channels and rows, then the same with a digit of radix 1, for channels that move
    into rows or into columns alone. The joined form and the unchanged one follow.
    """
    joined = moves.merged()
    by_sides = joined.split_at_source((shape.channels, shape.height, shape.width))
    if by_sides is not None:
        yield by_sides
        channels = next(n for n in range(len(by_sides.parts) + 1) if math.prod(by_sides.parts[:n]) == shape.channels)
        for place in range(len(by_sides.order) + 1):
            yield by_sides.with_one(channels, place)
    yield joined
    yield moves


def _shuffled(layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int]) -> Layers | None:
    """Append layers that transpose a reshaped map, and return the network; None if no layers can.

    order: The perm of the view's sides; the batch is first.
    """
    shape, sides = layers.nodes[source.node].shape, source.shape
    if not (len(sides) <= MAX_SIDES and order[0] == 0 and sides[0] == 1):
        return None
    if _is_darknets(shape, sides, order):
        op, count = Reorg(sides[3]), sides[3]
        smaller = Shape(shape.channels * count * count, shape.height // count, shape.width // count)
        layers = layers.with_node(replace(operation, inputs=operation.inputs[:1]), "reorg", op, smaller, source.node)
        return layers.with_values(operation, Map(len(layers.nodes) - 1, tuple(sides[axis] for axis in order)))
    for parts in [*_parts_of(shape, sides), *_flat_parts_of(shape, sides)]:
        larger = (
            _among_channels(layers, operation, source, order, parts)
            or _into_space(layers, operation, source, order, parts)
            or _into_depth(layers, operation, source, order, parts)
        )
        if larger is not None:
            view = Map(larger[1], tuple(sides[axis] for axis in order))
            return larger[0].with_values(operation, view)
    return None


def _is_darknets(shape: Shape, sides: Sequence[int], order: Sequence[int]) -> bool:
    """Return whether a Transpose of a six-sided view is darknet's reorg, whose order differs from space to depth's."""
    if len(sides) != 6 or tuple(order) != (0, 3, 5, 1, 2, 4):
        return False
    _, channels, height, rows, width, columns = sides
    fits = (channels * rows * columns, height, width) == (shape.channels, shape.height, shape.width)
    return fits and rows == columns and not (height % rows or width % rows)


def _parts_of(shape: Shape, sides: Sequence[int]) -> Iterator[_Parts]:
    """Yield each way to divide the sides of a reshaped map into parts of its channels, rows and columns, in order."""
    axes = range(1, len(sides))
    for first in axes:
        for second in range(first, len(sides)):
            groups = (axes[:first], range(first + 1, second + 1), range(second + 1, len(sides)))
            products = [math.prod(sides[axis] for axis in group) for group in groups]
            if products == [shape.channels, shape.height, shape.width]:
                yield _Parts(*(tuple(group) for group in groups))


def _flat_parts_of(shape: Shape, sides: Sequence[int]) -> Iterator[_Parts]:
    """Yield each way to divide a reshaped map's sides into parts of its channels and of its flattened positions."""
    for first in range(1, len(sides) - 1):
        if math.prod(sides[1 : first + 1]) == shape.channels:
            yield _Parts(tuple(range(1, first + 1)), tuple(range(first + 1, len(sides))), ())


def _moved(
    layers: Layers, operation: OnnxOperation, source: Map, axes: Sequence[int], order: Sequence[int]
) -> tuple[Layers, int]:
    """Append a layer that reorders a node's channels as a Transpose of their parts; return network and new node.

    Args:
        layers: The network read so far.
        operation: The Transpose.
        source: The view of the node's map.
        axes: The axes of the view that are parts of the channels.
        order: The same axes in their new order.
    """
    places = np.arange(layers.nodes[source.node].shape.channels).reshape([source.shape[axis] for axis in axes])
    channels = places.transpose([axes.index(axis) for axis in order]).ravel()
    return shapes.reordered(layers, operation, source.node, channels)


def _among_channels(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    """Append the layer of a Transpose that only reorders parts of the channels (channel shuffle); None for others."""
    count = len(parts.channels)
    if tuple(order[1 + count :]) != (*parts.rows, *parts.columns):
        return None
    return _moved(layers, operation, source, parts.channels, order[1 : 1 + count])


def _into_space(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    """Append the layers of a Transpose that moves channels into rows and columns (depth to space); None for others."""
    count, rows, columns = len(parts.channels) - 1, len(parts.rows), len(parts.columns)
    if count < 1 or not columns:
        return None
    stay, moved = order[1:count], order[count:]
    row, column = moved[rows], moved[-1]
    wanted = (*parts.rows, row, *parts.columns, column)
    if tuple(moved) != wanted or not {row, column} <= {*parts.channels}:
        return None
    layers, index = _moved(layers, operation, source, parts.channels, (row, column, *stay))
    shape, spread = layers.nodes[index].shape, DepthToSpace(source.shape[row], source.shape[column])
    channels = shape.channels // (spread.rows * spread.columns)
    larger = Shape(channels, shape.height * spread.rows, shape.width * spread.columns)
    bare = replace(operation, inputs=operation.inputs[:1])
    return layers.with_node(bare, "depth_to_space", spread, larger, index), len(layers.nodes)


def _into_depth(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    """Append the layers of a Transpose that moves rows and columns into channels (space to depth); None for others."""
    if not len(parts.rows) == len(parts.columns) == 2:
        return None
    (outer_row, row), (outer_column, column), step = parts.rows, parts.columns, source.shape[parts.rows[1]]
    if tuple(order[-2:]) != (outer_row, outer_column) or source.shape[column] != step:
        return None
    bare, shape = replace(operation, inputs=operation.inputs[:1]), layers.nodes[source.node].shape
    smaller = Shape(shape.channels * step * step, shape.height // step, shape.width // step)
    layers = layers.with_node(bare, "reorg", Reorg(step, "block"), smaller, source.node)
    blocks = replace(source, node=len(layers.nodes) - 1)
    return _moved(layers, operation, blocks, (row, column, *parts.channels), order[1:-2])


# A row of values that is viewed as a map, as at the beginning of decoders and generators. Its channels are reordered,
# and depth to space makes the map.


def spread(layers: Layers, name: str) -> Layers:
    """Append layers that make a real map of a row of values that the graph reshapes to several positions."""
    value = layers.value(name)
    if not isinstance(value, Map) or value.last or not 3 <= len(value.shape) <= 4:
        return layers
    node, shape = layers.nodes[value.node].shape, map_shape(value.shape)
    if node.values != node.channels or shape.channels == node.channels:
        return layers
    operation = OnnxOperation("", "Reshape", (name,), (name,), {})
    order = np.arange(node.channels).reshape(shape.channels, -1).T.ravel()
    layers, index = reordered(layers, operation, value.node, order)
    places = DepthToSpace(shape.height, shape.width)
    layers = layers.with_node(operation, "depth_to_space", places, shape, index)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1))
