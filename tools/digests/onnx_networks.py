"""Small ONNX networks with features that darknet's files lack: zero points, further layers, a layer of a package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tools.digests.added_layer import DOMAIN, OPERATOR

OPSET = 17
"""The ONNX opset that the files use."""


class Graph:
    """Builds an ONNX file node by node.

    Attributes:
        last: The tensor that the next node reads.
        others: Tensors that are outputs of the network although its layers read them too.
    """

    def __init__(self, name: str, channels: int, height: int, width: int) -> None:
        self.name, self.last = name, "picture"
        self.shape = (1, channels, height, width)
        self.random = np.random.default_rng(7)
        self.others: list[str] = []
        self._nodes: list[Any] = []
        self._numbers: list[Any] = []

    def drawn(self, *shape: int) -> npt.NDArray[np.float32]:
        """Return random multiples of 1/16, with which every machine computes exactly."""
        return (self.random.integers(-16, 17, shape) / 16).astype(np.float32)

    def constant(self, values: npt.NDArray[Any]) -> str:
        name = f"number{len(self._numbers)}"
        self._numbers.append(numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *numbers: npt.NDArray[Any] | str, read: str = "", **attributes: Any) -> str:
        """Add a node that reads ``read``, or ``last``, and then ``numbers``, which are arrays or names of tensors."""
        inputs = [read or self.last, *(item if isinstance(item, str) else self.constant(item) for item in numbers)]
        output = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        self.last = output
        return output

    def model(self) -> ModelProto:
        picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, self.shape)
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*self.others, self.last)]
        graph = helper.make_graph(self._nodes, self.name, [picture], ends, self._numbers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def spread() -> ModelProto:
    """Return a network with non-square windows, a slope per channel, a transposed convolution and an argmax."""
    graph = Graph("spread", 3, 8, 12)
    graph.add("Conv", graph.drawn(8, 3, 3, 2), graph.drawn(8), pads=[1, 0, 1, 1])
    graph.add("PRelu", np.full((8, 1, 1), 0.25, np.float32))
    first = graph.add("MaxPool", kernel_shape=[1, 3], strides=[1, 1], pads=[0, 1, 0, 1])
    graph.others.append(first)
    graph.add("Conv", graph.drawn(8, 8, 2, 2), strides=[2, 2])
    graph.add("Relu")
    graph.add("ConvTranspose", graph.drawn(8, 4, 2, 2), graph.drawn(4), strides=[2, 2])
    graph.add("Concat", first, axis=1)
    graph.add("DepthToSpace", blocksize=2, mode="DCR")
    graph.add("SpaceToDepth", blocksize=2)
    graph.add("Conv", graph.drawn(6, 12, 1, 1), graph.drawn(6))
    graph.add("ArgMax", axis=1, keepdims=1)
    return graph.model()


def zero_points() -> ModelProto:
    """Return a network with QuantizeLinear nodes, which give its integers and zero points."""
    graph = Graph("zero_points", 3, 8, 8)

    def quantised(scale: float, zero: int) -> str:
        numbers = np.array(scale, np.float32), np.array(zero, np.uint8)
        graph.add("QuantizeLinear", *numbers)
        return graph.add("DequantizeLinear", *numbers)

    def weights(*shape: int) -> str:
        """Return INT8 weights, with a power of two as the scale of each filter."""
        last = graph.last
        integers = graph.random.integers(-127, 128, shape).astype(np.int8)
        scales = (2.0 ** -graph.random.integers(8, 11, shape[0])).astype(np.float32)
        name = graph.constant(integers)
        made = graph.add("DequantizeLinear", scales, np.zeros(shape[0], np.int8), read=name, axis=0)
        graph.last = last
        return made

    quantised(1 / 255, 0)
    graph.add("Conv", weights(8, 3, 3, 3), pads=[1, 1, 1, 1])
    first = quantised(1 / 32, 100)
    graph.add("Conv", weights(8, 8, 1, 1))
    graph.add("Relu")
    quantised(1 / 16, 0)
    graph.add("Add", first)
    quantised(1 / 8, 64)
    graph.add("Sigmoid")
    quantised(1 / 256, 0)
    graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    graph.add("GlobalAveragePool")
    quantised(1 / 256, 3)
    graph.add("Conv", weights(5, 8, 1, 1))
    return graph.model()


def added() -> ModelProto:
    """Return a network with a package's layer between two convolutions."""
    graph = Graph("added", 3, 6, 8)
    graph.add("Conv", graph.drawn(8, 3, 3, 3), graph.drawn(8), pads=[1, 1, 1, 1])
    graph.add(OPERATOR, domain=DOMAIN)
    graph.add("Conv", graph.drawn(4, 8, 1, 1))
    return graph.model()


def padded() -> ModelProto:
    """Return a network whose maps are padded by mirrored values and by repeated edge values."""
    graph = Graph("padded", 3, 7, 9)
    graph.add("Conv", graph.drawn(8, 3, 3, 3), graph.drawn(8), pads=[1, 1, 1, 1])
    graph.add("Pad", np.array([0, 0, 2, 1, 0, 0, 1, 3], np.int64), mode="reflect")
    graph.add("Conv", graph.drawn(6, 8, 3, 3), graph.drawn(6))
    graph.add("Relu")
    graph.add("Pad", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), mode="edge")
    graph.add("Conv", graph.drawn(6, 6, 3, 3), dilations=[1, 2], pads=[0, 1, 0, 1])
    return graph.model()


NETWORKS = {"added": added, "padded": padded, "spread": spread, "zero_points": zero_points}
"""The function that builds each network, by the network's name."""
