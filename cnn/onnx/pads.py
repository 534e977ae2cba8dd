"""Read Pad, which puts a number or values of the map around a map.

- Zeros are postponed (``Map.padding``) and become the padding of the next convolution, or else a layer.
- Repeated edges are postponed for a MaxPool, which can use its own padding instead: a window that sees a repeated
  value also sees the value that it repeats. Before other operations they become a layer.
- Mirrored values, and values of the opposite side (mode wrap), become a layer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError
from cnn.limits import MAX_KERNEL
from cnn.maps import Padding, Shape
from cnn.onnx.arithmetic import affine
from cnn.onnx.graph import OnnxOperation, require, whole_numbers
from cnn.onnx.layers import NO_PADDING, Layers, Map, first_of, last_of
from cnn.onnx.shapes import integers, position_of
from cnn.onnx.sliding import add_paddings
from cnn.ops import PAD_MODES, Convolution, Pad
from cnn.ops.moving import most_repeated

MODES = ("constant", *PAD_MODES)
"""The modes that a Pad may have."""

MAX_COPIES = 64
"""Limit for the copies of the map in one Pad layer. The scheduler makes one copy per combination of a repeated row and
a repeated column (scheduler/systolic)."""


def padded(layers: Layers, operation: OnnxOperation) -> Layers:
    """Read an ONNX Pad of rows and columns: zeros are postponed to the next layer, other values become layers.

    For a number other than 0, layers subtract it from the map, put zeros around the map and add the number again.
    """
    source = layers.padded(operation)
    layers.shape_of(replace(source, padding=NO_PADDING))
    mode = operation.text("mode", "constant")
    require(mode in MODES, ChoiceError("mode", mode, MODES))
    if mode != "constant":
        return _with_edges(layers, operation, source, mode)
    value = layers.optional(operation, 2)
    number = operation.number("value", 0.0) if value is None else layers.scalar(operation, 2)
    around = _sides_of(layers, operation, len(source.shape))
    if number == 0:
        return layers.with_values(operation, replace(source, padding=add_paddings(source.padding, around)))
    require(bool(np.isfinite(number)), InvalidValueError("the padding value", number, "finite"))
    if source.padding != NO_PADDING:
        layers = append_padding(layers, operation.inputs[0])
    bare, (name,) = replace(operation, inputs=operation.inputs[:1]), operation.outputs
    less = np.full(1, -number, np.float32)
    layers = affine(layers, bare, layers.map(bare), np.ones(1, np.float32), less)
    smaller = layers.value(name)
    assert isinstance(smaller, Map)
    return append_padding(layers.with_values(operation, replace(smaller, padding=around)), name, number)


def _with_edges(layers: Layers, operation: OnnxOperation, source: Map, mode: str) -> Layers:
    """Read a Pad with mode edge, reflect or wrap: edge is postponed to the next operation, others become a layer."""
    around = _sides_of(layers, operation, len(source.shape))
    if around == NO_PADDING:
        return layers.with_values(operation, source)
    least = min(around.sides)
    require(least >= 0, RangeError("padding", least, low=0))
    if source.padding != NO_PADDING:
        layers = append_padding(layers, operation.inputs[0])
        source = layers.padded(operation)
    (name,) = operation.outputs
    waiting = layers.with_values(operation, replace(source, padding=around, edge=True))
    return waiting if mode == "edge" else _repeated(waiting, name, mode)


def _repeated(layers: Layers, name: str, mode: str) -> Layers:
    """Append the layers that pad the tensor ``name`` with its own values, as its postponed Pad requires.

    It is one layer, or one for the rows followed by one for the columns.
    """
    value = layers.value(name)
    assert isinstance(value, Map)
    source = first_of(value) if value.last else value
    shape, around = layers.shape_of(replace(source, padding=NO_PADDING, edge=False)), source.padding
    for front, back, length in ((around.top, around.bottom, shape.height), (around.left, around.right, shape.width)):
        most = min(MAX_KERNEL, most_repeated(mode, length)) if mode == "edge" else most_repeated(mode, length)
        require(max(front, back) <= most, RangeError("padding", max(front, back), 0, most))
    operation, node = OnnxOperation("", "Pad", (name,), (name,), {}), source.node
    for sides in _padding_steps(around, mode):
        rows, columns = sides.top + sides.bottom, sides.left + sides.right
        shape = Shape(shape.channels, shape.height + rows, shape.width + columns)
        layers = layers.with_node(operation, "pad", Pad(sides, mode), shape, node)
        node = len(layers.nodes) - 1
    surrounded = layers.value(name)
    assert isinstance(surrounded, Map)
    return layers.with_values(operation, last_of(surrounded)) if value.last else layers


def _padding_steps(around: Padding, mode: str) -> tuple[Padding, ...]:
    """Return the padding of each layer of a Pad: all sides in one or, to limit copies, rows before columns."""
    rows, columns = around.top + around.bottom, around.left + around.right
    if mode == "wrap" or (1 + rows) * (1 + columns) <= MAX_COPIES:
        return (around,)
    return Padding(top=around.top, bottom=around.bottom), Padding(left=around.left, right=around.right)


def _sides_of(layers: Layers, operation: OnnxOperation, rank: int) -> Padding:
    """Return the rows and columns that a Pad adds on each side; RefusedError if it pads the batch or the channels."""
    pads = integers(layers, operation, "pads", 1) or ()
    named = range(rank) if layers.optional(operation, 3) is None else whole_numbers(layers.constant(operation, 3))
    axes = [position_of(axis, rank) for axis in named]
    require(len(set(axes)) == len(axes), InvalidValueError("axes", tuple(named), "different from each other"))
    require(len(pads) == 2 * len(axes), ShapeError("pads", f"{len(pads)} numbers", f"{2 * len(axes)} numbers"))
    sides = {axis: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)}
    require(not any(sides.get(0, ()) + sides.get(1, ())), "only rows and columns are padded, not batch or channels")
    top, bottom = sides.get(2, (0, 0)) if rank == 4 else (0, 0)
    west, east = sides.get(rank - 1, (0, 0)) if rank > 2 else (0, 0)
    return Padding(top, west, bottom, east)


def append_padding(layers: Layers, name: str, number: float = 0.0) -> Layers:
    """Append a layer that does the postponed padding of the tensor ``name``.

    For zeros it is a depthwise convolution whose kernel has a single weight of 1.

    Args:
        layers: The network read so far.
        name: The tensor.
        number: A number to add to all values, including the padding.
    """
    value = layers.value(name)
    assert isinstance(value, Map)
    if value.edge:
        return _repeated(layers, name, "edge")
    source = first_of(value) if value.last else value
    shape, around = layers.shape_of(replace(source, padding=NO_PADDING)), source.padding
    require(layers.type_of(source.node) is None, "a quantised map is padded only by a convolution")
    rows, columns = 1 + around.top + around.bottom, 1 + around.left + around.right
    least, most = min(around.top, around.left, around.bottom, around.right), max(rows, columns) - 1
    require(least >= 0, RangeError("padding", least, low=0))
    require(most < MAX_KERNEL, RangeError("padding before and after together", most, 0, MAX_KERNEL - 1))
    weights = np.zeros((shape.channels, 1, rows, columns), np.float32)
    weights[:, 0, around.bottom, around.right] = 1
    window = Padding(rows - 1, columns - 1, around.top + around.bottom, around.left + around.right)
    bias = np.full(shape.channels, number, np.float32)
    op = Convolution(weights, bias, None, 1, window, shape.channels, "linear")
    larger = Shape(shape.channels, shape.height + rows - 1, shape.width + columns - 1)
    operation = OnnxOperation("", "Pad", (name,), (name,), {})
    layers = layers.with_node(operation, "pad", op, larger, source.node)
    surrounded = layers.value(name)
    assert isinstance(surrounded, Map)
    return layers.with_values(operation, last_of(surrounded)) if value.last else layers
