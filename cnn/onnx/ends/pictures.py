"""Pictures that a file's input holds in another view: without a side of channels, or as a row of values.

    batch × height × width, then Unsqueeze or Reshape       a grey picture
    batch × height × width × 1, then Reshape                the same; a Transpose of one channel moves no value
    batch × values, then Reshape to a map                   the picture that a convolution reads then

What the input is shows where the first operator reads it as a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boards.errors import RangeError
from cnn.limits import MAX_CHANNELS, MAX_SIDE
from cnn.maps import Shape
from cnn.onnx.channels_last import OF_CHANNELS, SAME_SIDES, to_first
from cnn.onnx.graph import Operation
from cnn.onnx.layers import Layers, Map, map_shape
from cnn.ops import Activate, Convolution

VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class Picture:
    """The shape of the input. last: whether the file has its channels after rows and columns."""

    shape: Shape
    last: bool = False


def is_open(sides: Sequence[int]) -> bool:
    """Return whether an input of these sides may be a picture in another view."""
    return len(sides) < 4 or is_grey_last(sides)


def is_grey_last(sides: Sequence[int]) -> bool:
    """Return whether it is a grey picture as TensorFlow writes it, or a map of one column."""
    return len(sides) == 4 and sides[3] == 1 and min(sides[1:3]) > 1


def grey_last(sides: Sequence[int]) -> Picture:
    """Return the grey picture of these sides, with its channel last."""
    return Picture(Shape(1, *sides[1:3]), last=True)


def read_as(layers: Layers, operation: Operation, sides: Sequence[int]) -> Picture | None:
    """The picture that the operation reads the input as, of the file's ``sides``; None where it is what it was taken
    for, or the operation does not tell."""
    for name in operation.inputs:
        value = layers.value(name) if name else None
        if isinstance(value, Map) and value.node < len(layers.nodes) and _is_input(layers, value.node):
            picture = _of_view(layers, operation, value, sides)
            if picture is not None:
                return picture
    return None


def _of_view(layers: Layers, operation: Operation, value: Map, sides: Sequence[int]) -> Picture | None:
    view, node = value.shape, layers.nodes[value.node].shape
    if operation.kind == "Transpose":
        turned = len(view) == 4 and view[3] > 1 and operation.attributes.get("perm") == to_first(4)
        other = not value.last and turned and Shape(*view[1:]) != node
        return _checked(Picture(Shape(view[3], *view[1:3]), last=True), layers) if other else None
    if not tells(layers, operation):
        return None
    if len(view) == 2 and is_grey_last(sides) and node == Shape(*sides[1:]):
        return _checked(grey_last(sides), layers)
    if value.last or len(view) not in (3, 4) or map_shape(view) == node or view[2:] == (1, 1):
        return None
    grey = grey_last(sides) if is_grey_last(sides) else Picture(map_shape(view))
    return _checked(grey if grey.shape == map_shape(view) else Picture(map_shape(view)), layers)


def tells(layers: Layers, operation: Operation) -> bool:
    """Whether it matters to an operation where the values lie; it does not where they are looked at otherwise, or the
    same is done to each."""
    if operation.kind in VIEWS or operation.kind in SAME_SIDES or operation.kind in ("Shape", "Transpose"):
        return False
    constants = [value for name in operation.inputs if isinstance(value := layers.value(name), np.ndarray)]
    return operation.kind not in OF_CHANNELS or any(array.size > 1 for array in constants)


def _is_input(layers: Layers, index: int) -> bool:
    """Return whether a node is the input, or does the same to each of its values."""
    while index:
        node = layers.nodes[index]
        op = node.op
        each = isinstance(op, Convolution) and op.weights.size == op.groups == node.shape.channels
        if not (each or isinstance(op, Activate)) or layers.nodes[node.inputs[0]].shape != node.shape:
            return False
        index = node.inputs[0]
    return True


def _checked(picture: Picture, layers: Layers) -> Picture:
    shape = picture.shape
    for what, got, most in (
        ("channels", shape.channels, MAX_CHANNELS),
        ("height", shape.height, MAX_SIDE),
        ("width", shape.width, MAX_SIDE),
    ):
        if not 1 <= got <= most:
            raise RangeError(f"{what} of the input", got, 1, most, where=layers.label)
    return picture
