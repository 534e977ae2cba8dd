"""The input of a network: pictures in another view, and the preprocessing that the file expects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import ChoiceError, ConflictError, RangeError, ShapeError, UnsupportedError, shown
from cnn.limits import MAX_CHANNELS, MAX_SIDE
from cnn.maps import Shape
from cnn.onnx.channels_last import OF_CHANNELS, SAME_SIDES, to_first
from cnn.onnx.file import graph_of
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.layers import Layers, Map, map_shape
from cnn.ops import Activate, Convolution

# Pictures that a file's input holds in another view: without a side of channels, or as a row of values.
#
#     batch × height × width, then Unsqueeze or Reshape       a grey picture
#     batch × height × width × 1, then Reshape                the same; a Transpose of one channel moves no value
#     batch × values, then Reshape to a map                   the picture that a convolution reads then
#
# What the input is shows where the first operator reads it as a map.

VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class InputView:
    """The shape of the input. last: whether the file has its channels after rows and columns."""

    shape: Shape
    last: bool = False


def is_open(sides: Sequence[int]) -> bool:
    """Return whether an input of these sides may be a picture in another view."""
    return len(sides) < 4 or is_grey_last(sides)


def is_grey_last(sides: Sequence[int]) -> bool:
    """Return whether it is a grey picture as TensorFlow writes it, or a map of one column."""
    return len(sides) == 4 and sides[3] == 1 and min(sides[1:3]) > 1


def grey_last(sides: Sequence[int]) -> InputView:
    """Return the grey picture of these sides, with its channel last."""
    return InputView(Shape(1, *sides[1:3]), last=True)


def read_as(layers: Layers, operation: OnnxOperation, sides: Sequence[int]) -> InputView | None:
    """The picture that the operation reads the input as, of the file's ``sides``; None where it is what it was taken
    for, or the operation does not tell."""
    for name in operation.inputs:
        value = layers.value(name) if name else None
        if isinstance(value, Map) and value.node < len(layers.nodes) and _is_input(layers, value.node):
            picture = _of_view(layers, operation, value, sides)
            if picture is not None:
                return picture
    return None


def _of_view(layers: Layers, operation: OnnxOperation, value: Map, sides: Sequence[int]) -> InputView | None:
    view, node = value.shape, layers.nodes[value.node].shape
    if operation.kind == "Transpose":
        turned = len(view) == 4 and view[3] > 1 and operation.attributes.get("perm") == to_first(4)
        other = not value.last and turned and Shape(*view[1:]) != node
        return _checked(InputView(Shape(view[3], *view[1:3]), last=True), layers) if other else None
    if not tells(layers, operation):
        return None
    if len(view) == 2 and is_grey_last(sides) and node == Shape(*sides[1:]):
        return _checked(grey_last(sides), layers)
    if value.last or len(view) not in (3, 4) or map_shape(view) == node or view[2:] == (1, 1):
        return None
    grey = grey_last(sides) if is_grey_last(sides) else InputView(map_shape(view))
    return _checked(grey if grey.shape == map_shape(view) else InputView(map_shape(view)), layers)


def tells(layers: Layers, operation: OnnxOperation) -> bool:
    """Return whether an operation depends on the order of the values.

    One that only views them in other sides, or does the same to each, does not.
    """
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


def _checked(picture: InputView, layers: Layers) -> InputView:
    shape = picture.shape
    for what, got, most in (
        ("channels", shape.channels, MAX_CHANNELS),
        ("height", shape.height, MAX_SIDE),
        ("width", shape.width, MAX_SIDE),
    ):
        if not 1 <= got <= most:
            raise RangeError(f"{what} of the input", got, 1, most, where=layers.label)
    return picture


# What is done to a picture before a file's network reads it: (p / 255 − mean) / std, and the order of its channels.
#
# Exporters leave that outside of the file, where training did it as it read its pictures. Here the accelerator does
# it, by a 1×1 convolution in front, so that whoever runs the design gives it pictures as they are.

ORDERS = ("RGB", "BGR")

PREPARED, SCALED = "systolic_prepared", "systolic_scaled"
FACTORS, OFFSETS = "systolic_factors", "systolic_offsets"
"""Tensors that are put in front of the file's own."""


@dataclass(frozen=True)
class Preprocessing:
    """The normalisation of pixels from 0 to 1 before a network: (p − mean) / std, and the order of channels.

    Raises RangeError for a number that pixels from 0 to 1 cannot have, ChoiceError for another order.

    Attributes:
        mean: One number, or one per channel in the order of training; empty for 0.
        std: One number, or one per channel in the order of training; empty for 1.
        order: RGB or BGR.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    order: str = "RGB"

    def __post_init__(self) -> None:
        for value in self.mean:
            if not 0 <= value <= 1:
                remedy = "divide the mean of pixels from 0 to 255 by 255"
                raise RangeError("the mean of pixels from 0 to 1", value, 0, 1, remedy=remedy)
        for value in self.std:
            if not (math.isfinite(value) and value > 0):
                raise RangeError("the std of pixels from 0 to 1", value, 0, exclusive=True)
        if self.order not in ORDERS:
            raise ChoiceError("the order of channels", self.order, ORDERS)

    @property
    def is_plain(self) -> bool:
        """Whether pictures are read as they come."""
        return not any(self.mean) and all(value == 1 for value in self.std) and self.order == "RGB"

    def matrix(self, channels: int, subject: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """factors float32 [channels, channels of the picture] and offsets float32 [channels] of pixels 0…1."""
        if self.order == "BGR" and channels != 3:
            required, remedy = "3 channels for an order of BGR", "leave the order out"
            raise ShapeError(subject, f"{channels} channels", required, remedy=remedy)
        mean = np.array(_each("mean", self.mean or (0.0,), channels, subject))
        std = np.array(_each("std", self.std or (1.0,), channels, subject))
        order = np.eye(channels)[:: -1 if self.order == "BGR" else 1]
        return (order / std[:, None]).astype(np.float32), (-mean / std).astype(np.float32)


def _each(what: str, values: tuple[float, ...], channels: int, subject: str) -> tuple[float, ...]:
    if len(values) not in (1, channels):
        required = f"one number, or one for each of {channels} channels"
        raise ShapeError(what, f"{len(values)} numbers", required, where=subject)
    return values * channels if len(values) == 1 else values


def put_in_front(model: Any, preprocessing: Preprocessing, label: str, shape: Shape) -> None:
    """Make it the first operation of a protocol buffer that stands alone. shape: of the picture that its input is.

    Raises:
        UnsupportedError: The file reads a row of values, not pictures or signals.
        ConflictError: The file reads integers, or does it already.
    """
    import onnx

    graph = graph_of(model, label)
    subject = f"{label}: the input {shown(graph.input)}"
    row = len(graph.shape) < 3 and shape == Shape(graph.shape[1], 1, 1)
    side = -1 if graph.last else 1
    if row or graph.shape[side] != shape.channels != 1:
        raise UnsupportedError("a mean, std or order", "the input is a row of values, not pictures", where=subject)
    options, remedy = "a mean, std or order", "leave mean, std and order out"
    if graph.lowest is not None or graph.input in graph.annotations:
        reason = "they are numbers of floats"
        raise ConflictError((options, "an input of integers"), reason, where=subject, remedy=remedy)
    if any(PREPARED in operation.outputs for operation in graph.operations):
        reason = "the file does that already, in its first layer"
        raise ConflictError((options, "a prepared file"), reason, where=label, remedy=remedy)
    factors, offsets = preprocessing.matrix(shape.channels, subject)
    turned = factors.T if graph.last else factors.reshape(*factors.shape, *(1,) * (len(graph.shape) - 2))
    as_number = graph.shape[side] != shape.channels  # a grey picture in another view
    if as_number:
        turned, offsets = factors.reshape(()), offsets.reshape(())
    behind = list(model.graph.node)
    for node in behind:
        node.input[:] = [PREPARED if name == graph.input else name for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend([*_nodes(onnx.helper, graph, as_number), *behind])
    arrays = ((turned, FACTORS), (offsets, OFFSETS))
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for array, name in arrays)


def _nodes(helper: Any, graph: Graph, as_number: bool) -> list[Any]:
    """A 1×1 convolution; a matrix where the channels stand last, and a factor where there is no side of them."""
    if not (graph.last or as_number):
        return [helper.make_node("Conv", [graph.input, FACTORS, OFFSETS], [PREPARED], PREPARED)]
    return [
        helper.make_node("Mul" if as_number else "MatMul", [graph.input, FACTORS], [SCALED], SCALED),
        helper.make_node("Add", [SCALED, OFFSETS], [PREPARED], PREPARED),
    ]
