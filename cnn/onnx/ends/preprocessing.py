"""What is done to a picture before a file's network reads it: (p / 255 − mean) / std, and the order of its channels.

Exporters leave that outside of the file, where training did it as it read its pictures. Here the accelerator does it,
by a 1×1 convolution in front, so that whoever runs the design gives it pictures as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import ChoiceError, ConflictError, RangeError, ShapeError, UnsupportedError, shown
from cnn.maps import Shape
from cnn.onnx.file import graph_of
from cnn.onnx.graph import Graph

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
