"""Operators that compute nothing: they move values, rename tensors or view them with other sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError, listed
from cnn.limits import MAX_CHANNELS
from cnn.maps import Shape
from cnn.onnx.graph import Array, OnnxOperation, require, whole_numbers
from cnn.onnx.layers import NO_PADDING, Layers, Map, Tail, bare_convolution
from cnn.onnx.quantised.mark import NO_MARK
from cnn.ops import Activate, Concat, Convolution, Dense, DepthToSpace, Input, Op, Reorg, Slice

PASS_PADDING = frozenset({"Cast", "DequantizeLinear", "Dropout", "Identity", "Pad", "QuantizeLinear"})
"""Operators that pass postponed padding of their input on to the next operator."""


def renamed(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Identity or Dropout: its output is its input under another name."""
    trains = layers.optional(operation, 2) if operation.kind == "Dropout" else None
    inference = trains is None or not np.any(layers.constant(operation, 2))
    require(inference, "its training_mode is true; export the model for inference")
    return layers.with_values(operation, layers.padded(operation, edge=True))


def viewed(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Flatten, Reshape, Squeeze or Unsqueeze: its output is its input with other sides."""
    source = layers.map(operation)
    shape = VIEWS[operation.kind](layers, operation, source.shape)
    check_view(source.shape, shape)
    if source.moves is not None:
        moves = source.moves.split_at_view(shape)
        require(moves is not None, source.moves.reason)
        return layers.with_values(operation, replace(source, shape=shape, moves=moves))
    node = layers.nodes[source.node].shape
    last = len(shape) > 2 and shape[-1] == node.channels == node.values > 1
    # With one channel, the order of the values is the same with the channel last. tf2onnx writes a Reshape for it.
    last = last or (node.channels == 1 and shape == (1, node.height, node.width, 1) != (1, 1, node.height, node.width))
    return layers.with_values(operation, replace(source, shape=shape, last=last))


def check_view(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Raise ShapeError if a reshape changes the number of values, or the batch of 1 in front."""
    fits = bool(after) and after[0] == 1 and math.prod(after) == math.prod(before)
    require(fits, ShapeError("its output", after, f"a batch of 1 in front and the same number of values as {before}"))


def check_batch(layers: Layers, stays: bool) -> None:
    """Raise RefusedError if the file's batch is above 1 and an operation moves the batch from the front.

    stays: Whether the operation keeps the batch as the first side.
    """
    require(stays or layers.batch == 1, f"the batch of {layers.batch} does not stay the first side")


def _flattened(layers: Layers, operation: OnnxOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = position_of(operation.integer("axis", 1), len(shape), inclusive=True)
    check_batch(layers, axis > 0)
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def _reshaped(layers: Layers, operation: OnnxOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    asked_shape = whole_numbers(layers.constant(operation, 1))
    if layers.batch > 1 and asked_shape[:1] in ((1,), (layers.batch,)):
        check_batch(layers, asked_shape[0] == layers.batch)
        asked_shape = (1, *asked_shape[1:])
    keep = not operation.integer("allowzero", 0)
    sides = [shape[i] if side == 0 and keep and i < len(shape) else side for i, side in enumerate(asked_shape)]
    fits = sides.count(-1) <= 1 and min(sides, default=0) >= -1
    require(fits, InvalidValueError("its shape", asked_shape, "sides of 0 or more, and at most one -1"))
    fixed = math.prod(side for side in sides if side != -1)
    fits = fixed > 0 and math.prod(shape) % fixed == 0
    require(fits, ShapeError("its output", asked_shape, f"the same number of values as {shape}"))
    return tuple(math.prod(shape) // fixed if side == -1 else side for side in sides)


def _squeezed(layers: Layers, operation: OnnxOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    named = integers(layers, operation, "axes", 1)
    axes = range(1, len(shape)) if named is None else [position_of(axis, len(shape)) for axis in named]
    check_batch(layers, 0 not in axes)
    fits = named is None or all(shape[axis] == 1 for axis in axes)
    require(fits, InvalidValueError("axes", named, f"sides of 1 in {shape}"))
    return tuple(side for axis, side in enumerate(shape) if axis not in axes or side != 1)


def _unsqueezed(layers: Layers, operation: OnnxOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    named = integers(layers, operation, "axes", 1) or ()
    rank = len(shape) + len(named)
    axes = {position_of(axis, rank) for axis in named}
    check_batch(layers, 0 not in axes)
    sides = iter(shape)
    return tuple(1 if axis in axes else next(sides, 1) for axis in range(rank))


VIEWS: Mapping[str, Callable[[Layers, OnnxOperation, tuple[int, ...]], tuple[int, ...]]] = {
    "Flatten": _flattened,
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
}
"""The functions that compute the output's sides from the input's, by operator."""


def concat(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Concat of maps along the channels."""
    maps = [layers.picture(operation, position) for position in range(len(operation.inputs))]
    ranks = {len(source.shape) for source, _ in maps}
    along = len(ranks) == 1 and position_of(operation.integer("axis", 1), min(ranks)) == 1
    require(along, "maps are concatenated only along their channels, axis 1")
    if len(maps) == 1:
        return renamed(layers, operation)
    sizes = {(shape.height, shape.width) for _, shape in maps}
    told = listed(f"{height}×{width}" for height, width in sorted(sizes))
    require(len(sizes) == 1, ShapeError("its maps", told, "one height and width"))
    shape = Shape(sum(shape.channels for _, shape in maps), *sizes.pop())
    layers, joined = _untied(layers, replace(operation, inputs=operation.inputs[:1]), [each.node for each, _ in maps])
    return layers.with_node(operation, "route", Concat(), shape, *joined)


def _untied(layers: Layers, operation: OnnxOperation, joined: list[int]) -> tuple[Layers, list[int]]:
    """Return the nodes for a Concat, with layers appended so that the image or a relu6 can share a quantised type.

    All inputs of a concat must have one quantised type. The pixels of the input image and the outputs of a relu6 have
    fixed types, which other maps do not have. A layer that changes no value is therefore appended to them, and its
    output gets the common type.
    """
    kinds = [_kinds_of(layers, index) for index in joined]
    if len(frozenset().union(*kinds)) == 1 or layers.lowest is not None or any(m.type for m in layers.marks.values()):
        return layers, joined
    nodes = []
    for index, kind in zip(joined, kinds, strict=True):
        shape = layers.nodes[index].shape
        if "picture" in kind:
            layers = layers.with_node(operation, "conv", bare_convolution(None, shape.channels), shape, index)
        elif "relu6" in kind:
            layers = layers.with_node(operation, "clip", Activate("clip", (0.0, 6.0)), shape, index)
        nodes.append(index if kind == {"other"} else len(layers.nodes) - 1)
    return layers, nodes


def _kinds_of(layers: Layers, index: int) -> frozenset[str]:
    """Return where a node's values come from, through layers that only move values: "picture", "relu6" or "other"."""
    kinds, met, left = set[str](), {index}, [index]
    while left:
        node = layers.nodes[left.pop()]
        if node.op.passes_on:
            left += [i for i in dict.fromkeys(node.inputs) if i not in met]
            met.update(node.inputs)
        else:
            ends = "relu6" if getattr(node.op, "activation", "") == "relu6" else "other"
            kinds.add("picture" if isinstance(node.op, Input) else ends)
    return frozenset(kinds)


def part(layers: Layers, operation: OnnxOperation, source: Map, shape: Shape, first: int, last: int) -> Layers:
    """Append a slice of the channels ``first`` … ``last`` − 1 of a map, as the operation's output."""
    fault = InvalidValueError("its range of channels", (first, last), "(first, end) with at least one channel")
    require(last > first, fault)
    if (first, last) == (0, shape.channels):
        return layers.with_values(operation, source)
    op = Slice(first, last - first)
    return layers.with_node(operation, "slice", op, replace(shape, channels=op.channels), source.node)


def split(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Split along the channels: append a slice for each output that something reads."""
    source, shape = layers.picture(operation)
    along = position_of(operation.integer("axis", 0), len(source.shape)) == 1
    require(along, "maps are split only along their channels, axis 1")
    parts = integers(layers, operation, "split", 1)
    if parts is None:
        count = operation.integer("num_outputs", len(operation.outputs))
        require(1 <= count <= shape.channels, RangeError("num_outputs", count, 1, shape.channels))
        each = -(-shape.channels // count)
        parts = tuple(min(each, shape.channels - i * each) for i in range(count))
    fits = sum(parts) == shape.channels and len(parts) >= len(operation.outputs)
    required = f"numbers that add up to {shape.channels} channels, one for each of {len(operation.outputs)} outputs"
    require(fits, InvalidValueError("split", parts, required))
    first = 0
    for name, channels in zip(operation.outputs, parts, strict=False):
        if name and layers.readers[name]:
            layers = part(layers, replace(operation, outputs=(name,)), source, shape, first, first + channels)
        first += channels
    return layers


def space_to_depth(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX SpaceToDepth: append a space-to-depth layer with block order."""
    source, shape = layers.picture(operation)
    s = operation.integer("blocksize", 0)
    fits = s >= 1 and not (shape.height % s or shape.width % s)
    require(fits, InvalidValueError("blocksize", s, f"a divisor of height and width of {shape}"))
    op = Reorg(s, "block")
    return layers.with_node(
        operation, "reorg", op, Shape(shape.channels * s * s, shape.height // s, shape.width // s), source.node
    )


def depth_to_space(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX DepthToSpace: append a depth-to-space layer; for mode CRD, channels are reordered first."""
    source, shape = layers.picture(operation)
    s = operation.integer("blocksize", 0)
    fits = s >= 1 and shape.channels % (s * s) == 0
    require(fits, InvalidValueError("blocksize", s, f"a number whose square divides the channels of {shape}"))
    mode = operation.text("mode", "DCR")
    require(mode in ("DCR", "CRD"), ChoiceError("mode", mode, ("DCR", "CRD")))
    index, bare = source.node, replace(operation, inputs=operation.inputs[:1])
    if mode == "CRD" and s > 1:
        order = np.arange(shape.channels).reshape(-1, s * s).T.ravel()
        layers, index = picked_channels(layers, bare, index, order), len(layers.nodes)
    larger = Shape(shape.channels // (s * s), shape.height * s, shape.width * s)
    return layers.with_node(bare, "depth_to_space", DepthToSpace(s, s), larger, index)


def picked_channels(layers: Layers, operation: OnnxOperation, index: int, channels: Array) -> Layers:
    """Append a 1×1 convolution that copies the given channels of a node's output, in this order."""
    shape, type_ = layers.nodes[index].shape, layers.type_of(index)
    layers = layers.with_bytes_spent(4 * shape.channels * channels.size)
    weights = np.eye(shape.channels, dtype=np.float32)[channels].reshape(channels.size, -1, 1, 1)
    op = Convolution(weights, np.zeros(channels.size, np.float32), None, 1, NO_PADDING, 1, "linear")
    larger = layers.with_node(operation, "conv", op, replace(shape, channels=channels.size), index)
    return larger if type_ is None else larger.typed(len(layers.nodes), type_)


def reordered(layers: Layers, operation: OnnxOperation, index: int, channels: Array) -> tuple[Layers, int]:
    """Return the network with the channels of a node's output in another order, and the node that has this output.

    If the map has a single position and nothing else reads it, the filters of the node itself are reordered. Otherwise
    a convolution that moves the channels is appended.
    """
    if bool((np.diff(channels) == 1).all()):
        return layers, index
    node, bare = layers.nodes[index], replace(operation, inputs=operation.inputs[:1])
    views = [name for name, value in layers.values.items() if isinstance(value, Map) and value.node == index]
    alone = all(layers.readers[name] == 1 for name in views if name not in operation.outputs)
    alone = alone and not any(isinstance(value, Tail) and index in value.maps for value in layers.values.values())
    filters = _in_order(node.op, channels) if alone and node.shape.values == node.shape.channels else None
    if filters is None or layers.mark(index) != NO_MARK:
        return picked_channels(layers, bare, index, channels), len(layers.nodes)
    layers = layers.with_bytes_spent(filters.weights.nbytes)
    return layers.changed(bare, Map(index, (1, node.shape.channels)), filters), index


def _in_order(op: Op, channels: Array) -> Convolution | Dense | None:
    """Return the convolution or dense layer with its filters reordered; None for other operations or several groups."""
    if not (isinstance(op, Dense) or (isinstance(op, Convolution) and op.groups == 1)):
        return None
    norm = op.batch_norm
    if norm is not None:
        norm = replace(norm, scale=norm.scale[channels], mean=norm.mean[channels], variance=norm.variance[channels])
    return replace(op, weights=op.weights[channels], bias=op.bias[channels], batch_norm=norm)


def gather(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Gather of channels: append a slice for consecutive channels, a 1×1 convolution for others."""
    source, shape = layers.picture(operation)
    axis, array = position_of(operation.integer("axis", 0), len(source.shape)), layers.constant(operation, 1)
    fits = axis == 1 and array.ndim == 1 and 1 <= array.size <= MAX_CHANNELS and array.dtype.kind in "iu"
    require(fits, "channels are gathered only by a list of their indices, along axis 1")
    first = array.astype(np.int64)
    channels = np.where(first < 0, first + shape.channels, first)
    outside = first[(channels < 0) | (channels >= shape.channels)]
    if outside.size:
        raise RangeError("an index", int(outside[0]), -shape.channels, shape.channels - 1)
    bare = replace(operation, inputs=operation.inputs[:1])
    if bool((np.diff(channels) == 1).all()):
        return part(layers, bare, source, shape, int(channels[0]), int(channels[-1]) + 1)
    return picked_channels(layers, bare, source.node, channels)


def integers(layers: Layers, operation: OnnxOperation, key: str, position: int) -> tuple[int, ...] | None:
    """Return an operator's integers, from attribute ``key`` or, in newer opsets, input ``position``; None if
    left out."""
    if key in operation.attributes:
        return operation.integers(key, ())
    if layers.optional(operation, position) is None:
        return None
    return whole_numbers(layers.constant(operation, position))


def position_of(axis: int, rank: int, inclusive: bool = False) -> int:
    """Return an axis as a non-negative index of the shape; RangeError if there is no such axis."""
    position = axis + rank if axis < 0 else axis
    require(0 <= position < rank + inclusive, RangeError("an axis", axis, -rank, rank - 1 + inclusive))
    return position
