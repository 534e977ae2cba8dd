"""The input of a network: images that a file views with other sides, and the preprocessing that the network expects."""

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

# Images without a side for the channels, or as a row of values:
#
#     batch × height × width, then Unsqueeze or Reshape       a grey image
#     batch × height × width × 1, then Reshape                the same; moving a single channel changes no order
#     batch × values, then Reshape to a map                   the image that the next convolution reads
#
# The first operator that depends on the order of the values shows the shape of the image.

VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class InputView:
    """The shape as which the network's input is read, and whether the file has its channels last.

    Attributes:
        shape: The shape of the input.
        last: Whether the file has the channels as the last side.
    """

    shape: Shape
    last: bool = False


def is_open(sides: Sequence[int]) -> bool:
    """Return whether an input of this shape may be an image that the file stores in another shape, such as a row."""
    return len(sides) < 4 or is_grey_last(sides)


def is_grey_last(sides: Sequence[int]) -> bool:
    """Return whether the shape is (batch, height, width, 1): TensorFlow's grey image, or a map of one column."""
    return len(sides) == 4 and sides[3] == 1 and min(sides[1:3]) > 1


def grey_last(sides: Sequence[int]) -> InputView:
    """Return the view of a (batch, height, width, 1) input as a grey image with its channel last."""
    return InputView(Shape(1, *sides[1:3]), last=True)


def revealed_view(layers: Layers, operation: OnnxOperation, sides: Sequence[int]) -> InputView | None:
    """Return the other image shape of the network's input that this operation reveals; None if it reveals none.

    sides: The shape of the input in the file.
    """
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
    if not depends_on_channels(layers, operation):
        return None
    if len(view) == 2 and is_grey_last(sides) and node == Shape(*sides[1:]):
        return _checked(grey_last(sides), layers)
    if value.last or len(view) not in (3, 4) or map_shape(view) == node or view[2:] == (1, 1):
        return None
    grey = grey_last(sides) if is_grey_last(sides) else InputView(map_shape(view))
    return _checked(grey if grey.shape == map_shape(view) else InputView(map_shape(view)), layers)


def depends_on_channels(layers: Layers, operation: OnnxOperation) -> bool:
    """Return whether the result of an operation depends on which side of its input is the channels.

    It does not if the operation only views the values with other sides, or applies one function to all of them.
    """
    if operation.kind in VIEWS or operation.kind in SAME_SIDES or operation.kind in ("Shape", "Transpose"):
        return False
    constants = [value for name in operation.inputs if isinstance(value := layers.value(name), np.ndarray)]
    return operation.kind not in OF_CHANNELS or any(array.size > 1 for array in constants)


def _is_input(layers: Layers, index: int) -> bool:
    """Return whether a node is the network's input, or maps each input value to one output value at the same place."""
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


# The normalisation of an image, (p / 255 − mean) / std, and the order of its channels.
#
# Training scripts often do this while they load images, so that an exported file does not include it. It is added as a
# 1×1 convolution in front of the network, so that the accelerator reads unchanged images.

ORDERS = ("RGB", "BGR")

PREPARED, SCALED = "systolic_prepared", "systolic_scaled"
FACTORS, OFFSETS = "systolic_factors", "systolic_offsets"
"""The names of the tensors that are added in front of the network."""


@dataclass(frozen=True)
class Preprocessing:
    """The normalisation that the network expects of pixels p from 0 to 1: (p − mean) / std, and the channel order.

    RangeError is raised for a number that is not valid for pixels from 0 to 1, ChoiceError for an unknown order.

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
        """Return whether the network reads pixels from 0 to 1 without normalisation, in RGB order."""
        return not any(self.mean) and all(value == 1 for value in self.std) and self.order == "RGB"

    def matrix(self, channels: int, subject: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the factors and offsets of a 1×1 convolution that normalises and reorders the image's channels.

        The factors are float32 (channels, channels of the image), the offsets float32 (channels,). ShapeError is raised
        if mean, std or order do not fit the number of channels; ``subject`` names the input in it.
        """
        if self.order == "BGR" and channels != 3:
            required, remedy = "3 channels for the order BGR", "omit the order"
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


def prepend_normalisation(model: Any, preprocessing: Preprocessing, label: str, shape: Shape) -> None:
    """Insert operators for the image's normalisation at the front of an ONNX protocol buffer, which is changed.

    Args:
        model: The protocol buffer, which is changed.
        preprocessing: The normalisation.
        label: The file's name in errors.
        shape: The shape of the image that the input is read as.

    Raises:
        UnsupportedError: The file reads a row of values, not images or signals.
        ConflictError: The file reads integers, or has a normalisation from here already.
    """
    import onnx

    graph = graph_of(model, label)
    subject = f"{label}: the input {shown(graph.input)}"
    row = len(graph.shape) < 3 and shape == Shape(graph.shape[1], 1, 1)
    side = -1 if graph.last else 1
    if row or graph.shape[side] != shape.channels != 1:
        raise UnsupportedError("a mean, std or order", "the input is a row of values, not images", where=subject)
    options, remedy = "a mean, std or order", "omit mean, std and order"
    if graph.lowest is not None or graph.input in graph.annotations:
        reason = "they need an input of floats"
        raise ConflictError((options, "an input of integers"), reason, where=subject, remedy=remedy)
    if any(PREPARED in operation.outputs for operation in graph.operations):
        reason = "the first layer of the file does this already"
        raise ConflictError((options, "a prepared file"), reason, where=label, remedy=remedy)
    factors, offsets = preprocessing.matrix(shape.channels, subject)
    turned = factors.T if graph.last else factors.reshape(*factors.shape, *(1,) * (len(graph.shape) - 2))
    as_number = graph.shape[side] != shape.channels  # a grey image without a side for the channels
    if as_number:
        turned, offsets = factors.reshape(()), offsets.reshape(())
    nodes = list(model.graph.node)
    for node in nodes:
        node.input[:] = [PREPARED if name == graph.input else name for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend([*_nodes(onnx.helper, graph, as_number), *nodes])
    arrays = ((turned, FACTORS), (offsets, OFFSETS))
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for array, name in arrays)


def _nodes(helper: Any, graph: Graph, as_number: bool) -> list[Any]:
    """Return the ONNX nodes that normalise the image.

    They are a Conv in general, and a MatMul and an Add if the channels are last. For a grey image without a side for
    the channels (``as_number``), they are a Mul and an Add.
    """
    if not (graph.last or as_number):
        return [helper.make_node("Conv", [graph.input, FACTORS, OFFSETS], [PREPARED], PREPARED)]
    return [
        helper.make_node("Mul" if as_number else "MatMul", [graph.input, FACTORS], [SCALED], SCALED),
        helper.make_node("Add", [SCALED, OFFSETS], [PREPARED], PREPARED),
    ]
