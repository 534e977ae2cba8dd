"""What is done to a picture before a file's network reads it: (p / 255 − mean) / std, and the order of its channels.

Exporters leave that outside of the file, where training did it as it read its pictures. Here the accelerator does it,
by a 1×1 convolution in front, so that whoever runs the design gives it pictures as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import NetworkError, listed, shown
from cnn.onnx.file import graph_of
from cnn.onnx.graph import Graph

ORDERS = ("RGB", "BGR")

PREPARED, SCALED = "systolic_prepared", "systolic_scaled"
FACTORS, OFFSETS = "systolic_factors", "systolic_offsets"
"""Tensors that are put in front of the file's own."""


@dataclass(frozen=True)
class Preprocessing:
    """mean, std: of pixels 0…1, one number or one a channel in the order of training; none is 0 and 1. order: RGB, BGR.

    NetworkError where a number is none that pixels of 0…1 can have, or the order is another.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    order: str = "RGB"

    def __post_init__(self) -> None:
        for value in self.mean:
            if not 0 <= value <= 1:
                raise NetworkError(
                    f"a mean is one of pixels from 0 to 1, not {value:g}; divide one of pixels from 0 to 255 by 255"
                )
        for value in self.std:
            if not (math.isfinite(value) and value > 0):
                raise NetworkError(f"a std is what pixels from 0 to 1 are divided by, greater than 0, not {value:g}")
        if self.order not in ORDERS:
            raise NetworkError(f"the order of channels is RGB or BGR, not {self.order!r}")

    @property
    def is_plain(self) -> bool:
        """Whether pictures are read as they come."""
        return not any(self.mean) and all(value == 1 for value in self.std) and self.order == "RGB"

    def matrix(self, channels: int, subject: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """factors float32 [channels, channels of the picture] and offsets float32 [channels] of pixels 0…1."""
        if self.order == "BGR" and channels != 3:
            raise NetworkError(f"{subject} has {channels} channels, and an order of BGR is one of 3; leave it out")
        mean = np.array(_each(self.mean or (0.0,), channels, f"{subject}: mean"))
        std = np.array(_each(self.std or (1.0,), channels, f"{subject}: std"))
        order = np.eye(channels)[:: -1 if self.order == "BGR" else 1]
        return (order / std[:, None]).astype(np.float32), (-mean / std).astype(np.float32)


def _each(values: tuple[float, ...], channels: int, subject: str) -> tuple[float, ...]:
    if len(values) not in (1, channels):
        raise NetworkError(f"{subject} is one number, or one for each of {channels} channels, not {listed(values)}")
    return values * channels if len(values) == 1 else values


def put_in_front(model: Any, preprocessing: Preprocessing, label: str) -> None:
    """Makes it the first operation of a protocol buffer that stands alone.

    NetworkError where the file reads no floats, or no pictures or signals, or does it already.
    """
    import onnx

    graph = graph_of(model, label)
    subject = f"{label}: the input {shown(graph.input)}"
    if len(graph.shape) < 3:
        raise NetworkError(f"{subject} must be pictures to have a mean, a std or an order, not a row of values")
    if graph.lowest is not None:
        raise NetworkError(f"{subject} holds integers: leave out its mean, std and order, which are of floats")
    if any(PREPARED in operation.outputs for operation in graph.operations):
        raise NetworkError(f"{label} does what its mean, std and order say already, in its first layer: leave them out")
    factors, offsets = preprocessing.matrix(graph.shape[-1 if graph.last else 1], subject)
    turned = factors.T if graph.last else factors.reshape(*factors.shape, *(1,) * (len(graph.shape) - 2))
    behind = list(model.graph.node)
    for node in behind:
        node.input[:] = [PREPARED if name == graph.input else name for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend([*_nodes(onnx.helper, graph), *behind])
    arrays = ((turned, FACTORS), (offsets, OFFSETS))
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for array, name in arrays)


def _nodes(helper: Any, graph: Graph) -> list[Any]:
    """A 1×1 convolution; a matrix where the channels stand last."""
    if not graph.last:
        return [helper.make_node("Conv", [graph.input, FACTORS, OFFSETS], [PREPARED], PREPARED)]
    return [
        helper.make_node("MatMul", [graph.input, FACTORS], [SCALED], SCALED),
        helper.make_node("Add", [SCALED, OFFSETS], [PREPARED], PREPARED),
    ]
