"""Operators that take channels, rows or columns of a map, or put them in another order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boards.errors import InvalidValueError, MissingValueError, RangeError
from cnn.limits import MAX_CHANNELS
from cnn.maps import Shape
from cnn.onnx import shapes
from cnn.onnx.digits import Moves, of_map
from cnn.onnx.graph import Array, OnnxOperation, RefusedError, require
from cnn.onnx.layers import Layers, Map, last_of, map_shape
from cnn.onnx.pools import Picks, picked
from cnn.onnx.shapes import reordered
from cnn.ops import DepthToSpace, Reorg

# Slice and Gather: channels, and of rows and columns every so manieth from one on.
#
# A window takes rows and columns in the same steps. So a Slice of rows alone waits for the Slice of columns behind it,
# as exporters write x[:, :, ::2, ::2] (the Focus of YOLOv5 and YOLOX).

Side = tuple[int, int, int]
"""Of the rows or columns of a node's map: the first that is taken, the step to the next, how many."""


def slices(layers: Layers, operation: OnnxOperation) -> Layers:
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


def _channels(layers: Layers, operation: OnnxOperation, source: Map, shape: Shape, side: Side) -> Layers:
    """One after the other a part, others a 1×1 convolution."""
    first, step, count = side
    if step == 1 or count == 1:
        return shapes.part(layers, operation, source, shape, first, first + count)
    bare = replace(operation, inputs=operation.inputs[:1])
    return shapes.picked_channels(layers, bare, source.node, first + step * np.arange(count))


def place(layers: Layers, operation: OnnxOperation) -> Layers:
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


def _cuts(layers: Layers, operation: OnnxOperation) -> list[tuple[int, int, int, int]]:
    """Start, end, axis and step of each side."""
    starts, ends = (_asked(layers, operation, key, i) for key, i in (("starts", 1), ("ends", 2)))
    axes = shapes.integers(layers, operation, "axes", 3) or tuple(range(len(starts)))
    steps = (shapes.integers(layers, operation, "steps", 4) or ()) or (1,) * len(starts)
    counts = tuple(map(len, (starts, ends, axes, steps)))
    require(len(set(counts)) == 1, InvalidValueError("the numbers of starts, ends, axes and steps", counts, "equal"))
    return list(zip(starts, ends, axes, steps, strict=True))


def _asked(layers: Layers, operation: OnnxOperation, key: str, position: int) -> tuple[int, ...]:
    values = shapes.integers(layers, operation, key, position)
    if values is None:
        raise MissingValueError(f"the input {key}")
    return values


def _within(side: Side, places: range) -> Side:
    """Return these of the rows, columns or channels that are taken already."""
    required = "at least one row, column or channel, first and end"
    require(len(places) >= 1, InvalidValueError("a range", (places.start, places.stop), required))
    return side[0] + side[1] * places.start, side[1] * places.step, len(places)


def _cropped(layers: Layers, operation: OnnxOperation, rank: int, crop: tuple[Side, Side]) -> Layers:
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
    shape, operation = layers.nodes[value.node].shape, OnnxOperation("", "Slice", (name,), (name,), {})
    sides = zip((shape.height, shape.width), value.crop, strict=True)
    rows, columns = (Picks(length, first, step, count) for length, (first, step, count) in sides)
    layers = picked(layers, operation, value.node, rows, columns)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1, crop=None))


# A Transpose of a map that was looked at in parts: channels change places (ShuffleNet), or go into rows and columns
# and back, as exporters write PyTorch's pixel_shuffle and pixel_unshuffle.
#
# Of a map that is looked at as batch × parts of the channels × parts of the rows × parts of the columns, the layers
# are
#
#     parts of the channels in another order                   a 1×1 convolution that moves them
#     one of them behind the rows, one behind the columns      that, and depth to space
#     the last parts of rows and columns before the others     space to depth, and that
#
# and of one that is looked at as a larger map of fewer channels, the last parts of whose rows and columns go before
# all, darknet's reorg.

MOST_SIDES = 8
"""Of a view."""


@dataclass(frozen=True)
class _Parts:
    """Axes of a view that are of the channels, of the rows and of the columns, each in their order."""

    channels: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


def transposed(layers: Layers, operation: OnnxOperation) -> Layers:
    """Transpose: channels go last, to be read so until they come back; or it moves sides of 1 alone, so that the values
    keep their order; or parts of the channels, rows and columns change places."""
    source = layers.map(operation)
    rank = len(source.shape)
    order = operation.integers("perm", tuple(reversed(range(rank))))
    fits = sorted(order) == list(range(rank))
    require(fits, InvalidValueError("perm", order, f"an order of the axes 0 to {rank - 1}"))
    shapes.check_batch(layers, order[:1] == (0,))
    if source.moves is not None:
        return _moved_on(layers, operation, source, source.moves.transposed(source.shape, order), order)
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
    moves = of_map(source.shape, reason, str(operation)).transposed(source.shape, order)
    return _moved_on(layers, operation, source, moves, order)


def _moved_on(
    layers: Layers, operation: OnnxOperation, source: Map, moves: Moves | None, order: Sequence[int]
) -> Layers:
    """The map with its digits in another order, which is still to come; nothing is where they are in theirs again."""
    if moves is None:
        raise RefusedError(source.moves.reason if source.moves else "its sides are none of its input")
    left = moves if len(moves.joined().parts) > 1 else None
    return layers.with_values(operation, replace(source, shape=tuple(source.shape[axis] for axis in order), moves=left))


def in_order(layers: Layers, name: str) -> Layers:
    """The tensor with its values where they are to be; RefusedError if they are in an order that no layer gives."""
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
    """The digits as layers may have them: apart where channels, rows and columns end; also with one that counts to 1,
    where the channels go into rows or columns alone; joined; and as they are."""
    joined = moves.joined()
    by_sides = joined.of_source((shape.channels, shape.height, shape.width))
    if by_sides is not None:
        yield by_sides
        channels = next(n for n in range(len(by_sides.parts) + 1) if math.prod(by_sides.parts[:n]) == shape.channels)
        for place in range(len(by_sides.order) + 1):
            yield by_sides.with_one(channels, place)
    yield joined
    yield moves


def _shuffled(layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int]) -> Layers | None:
    """The view with its sides in that order, batch first; None where no layers give it."""
    shape, sides = layers.nodes[source.node].shape, source.shape
    if not (len(sides) <= MOST_SIDES and order[0] == 0 and sides[0] == 1):
        return None
    if _is_darknets(shape, sides, order):
        op, count = Reorg(sides[3]), sides[3]
        smaller = Shape(shape.channels * count * count, shape.height // count, shape.width // count)
        layers = layers.grown(replace(operation, inputs=operation.inputs[:1]), "reorg", op, smaller, source.node)
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
    """Whether it is the order that darknet has the values of a reorg in."""
    if len(sides) != 6 or tuple(order) != (0, 3, 5, 1, 2, 4):
        return False
    _, channels, height, rows, width, columns = sides
    fits = (channels * rows * columns, height, width) == (shape.channels, shape.height, shape.width)
    return fits and rows == columns and not (height % rows or width % rows)


def _parts_of(shape: Shape, sides: Sequence[int]) -> Iterator[_Parts]:
    """Every way to see the sides as those of the map's three, in their order."""
    axes = range(1, len(sides))
    for first in axes:
        for second in range(first, len(sides)):
            groups = (axes[:first], range(first + 1, second + 1), range(second + 1, len(sides)))
            products = [math.prod(sides[axis] for axis in group) for group in groups]
            if products == [shape.channels, shape.height, shape.width]:
                yield _Parts(*(tuple(group) for group in groups))


def _flat_parts_of(shape: Shape, sides: Sequence[int]) -> Iterator[_Parts]:
    """Rows and columns in one: all of them are called rows."""
    for first in range(1, len(sides) - 1):
        if math.prod(sides[1 : first + 1]) == shape.channels:
            yield _Parts(tuple(range(1, first + 1)), tuple(range(first + 1, len(sides))), ())


def _moved(
    layers: Layers, operation: OnnxOperation, source: Map, axes: Sequence[int], order: Sequence[int]
) -> tuple[Layers, int]:
    """The node's channels, which are those of these axes, in the order of others; and the node."""
    places = np.arange(layers.nodes[source.node].shape.channels).reshape([source.shape[axis] for axis in axes])
    channels = places.transpose([axes.index(axis) for axis in order]).ravel()
    return shapes.reordered(layers, operation, source.node, channels)


def _among_channels(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    count = len(parts.channels)
    if tuple(order[1 + count :]) != (*parts.rows, *parts.columns):
        return None
    return _moved(layers, operation, source, parts.channels, order[1 : 1 + count])


def _into_space(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    count, rows, columns = len(parts.channels) - 1, len(parts.rows), len(parts.columns)
    if count < 1 or not columns:
        return None
    stay, behind = order[1:count], order[count:]
    row, column = behind[rows], behind[-1]
    wanted = (*parts.rows, row, *parts.columns, column)
    if tuple(behind) != wanted or not {row, column} <= {*parts.channels}:
        return None
    layers, index = _moved(layers, operation, source, parts.channels, (row, column, *stay))
    shape, spread = layers.nodes[index].shape, DepthToSpace(source.shape[row], source.shape[column])
    channels = shape.channels // (spread.rows * spread.columns)
    larger = Shape(channels, shape.height * spread.rows, shape.width * spread.columns)
    bare = replace(operation, inputs=operation.inputs[:1])
    return layers.grown(bare, "depth_to_space", spread, larger, index), len(layers.nodes)


def _into_depth(
    layers: Layers, operation: OnnxOperation, source: Map, order: Sequence[int], parts: _Parts
) -> tuple[Layers, int] | None:
    if not len(parts.rows) == len(parts.columns) == 2:
        return None
    (above, row), (beside, column), step = parts.rows, parts.columns, source.shape[parts.rows[1]]
    if tuple(order[-2:]) != (above, beside) or source.shape[column] != step:
        return None
    bare, shape = replace(operation, inputs=operation.inputs[:1]), layers.nodes[source.node].shape
    smaller = Shape(shape.channels * step * step, shape.height // step, shape.width // step)
    layers = layers.grown(bare, "reorg", Reorg(step, "block"), smaller, source.node)
    blocks = replace(source, node=len(layers.nodes) - 1)
    return _moved(layers, operation, blocks, (row, column, *parts.channels), order[1:-2])


# A row of values that is looked at as a map, as decoders and generators begin: depth to space, its channels brought
# into that order before.


def spread(layers: Layers, name: str) -> Layers:
    """The tensor with its values at their places; as it is where its node has more than one position, or its view has
    no more."""
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
    layers = layers.grown(operation, "depth_to_space", places, shape, index)
    return layers.with_values(operation, replace(value, node=len(layers.nodes) - 1))
