"""Float networks written as other tools export them: batch norms and activations are separate operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from cnn.maps import Padding
from cnn.network import Network, Node
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    Concat,
    Convolution,
    Dense,
    DepthToSpace,
    Detection,
    MaxPool,
    Multiply,
    Reorg,
    Slice,
    Softmax,
    Upsample,
)

ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "leaky": ("LeakyRelu", {"alpha": 0.1}),
    "relu": ("Relu", {}),
}
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Permutations for a Transpose: channels to the last axis, and back to the first."""

FUNCTIONS = {"logistic": "Sigmoid", "tanh": "Tanh", "selu": "Selu", "softplus": "Softplus"}


class Writer:
    """A graph under construction. A tensor's name starts with the operator that writes it."""

    def __init__(self, opset: int = 17) -> None:
        self.opset, self.transposed, self.dilated = opset, False, False
        self.nodes: list[NodeProto] = []
        self.arrays: list[TensorProto] = []

    def constant(self, values: Any, kind: Any = np.float32) -> str:
        """Append an initialiser and return its name."""
        name = f"constant{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def put(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> str:
        """Append an operator and return the name of its first output."""
        names = [f"{kind.lower()}{len(self.nodes)}{'_' * i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"/{kind}_{len(self.nodes)}", **attributes))
        return names[0]

    def model(self, outputs: Sequence[str], shape: Sequence[int | str] = (1, 3, 32, 32)) -> ModelProto:
        """Return the model. Its input is named "picture"."""
        graph = helper.make_graph(
            self.nodes,
            "written",
            [helper.make_tensor_value_info("picture", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["side"] * 4) for name in outputs],
            self.arrays,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def written(
    network: Network,
    opset: int = 17,
    views: int = 0,
    transposed: bool = False,
    last: bool = False,
    dilated: bool = False,
) -> ModelProto:
    """Return the network as a model, without its heads.

    Args:
        network: The network.
        opset: The opset.
        views: Every ``views``-th layer reads through an Identity; 0 for none.
        transposed: Whether upsamples are written as transposed convolutions.
        last: Whether the image and each map between layers have their channels last.
        dilated: Whether pools of stride 1 have dilation 2 if possible, which makes a different network.
    """
    writer, names, flat = Writer(opset), ["picture"], set[int]()
    writer.transposed, writer.dilated = transposed, dilated
    if last:
        names = [writer.put("Transpose", names, perm=FIRST)]
    for number, node in enumerate(network.nodes[1:], 1):
        inputs = [names[i] for i in node.inputs]
        if views and number % views == 0:
            inputs = [writer.put("Identity", [name]) for name in inputs]
        if last:
            turned = [i not in flat or _is_read_as_map(network, i) for i in node.inputs]
            inputs = [_turned(writer, name) if turn else name for name, turn in zip(inputs, turned, strict=True)]
        names.append(inputs[0] if isinstance(node.op, Detection) else _put(writer, node, network, inputs))
        is_flat = isinstance(node.op, Dense) or (isinstance(node.op, Activate) and node.inputs[0] in flat)
        if is_flat and not _is_read_as_map(network, len(names) - 1):
            flat.add(len(names) - 1)
        elif is_flat:
            sides = writer.constant([1, node.shape.channels, 1, 1], np.int64)
            names[-1] = writer.put("Reshape", [names[-1], sides])
    shape = network.input_shape
    ends = list(dict.fromkeys(names[index] for index in network.outputs))
    picture = (shape.height, shape.width, shape.channels) if last else (shape.channels, shape.height, shape.width)
    return writer.model(ends, (1, *picture))


def _turned(writer: Writer, name: str) -> str:
    """Return the map after a Transpose to channels last and a Transpose back."""
    return writer.put("Transpose", [writer.put("Transpose", [name], perm=LAST)], perm=FIRST)


def _is_read_as_map(network: Network, index: int) -> bool:
    flat = (Dense, Softmax, Activate, Detection)
    return any(not isinstance(node.op, flat) for node in network.nodes if index in node.inputs)


def _put(writer: Writer, node: Node, network: Network, inputs: list[str]) -> str:
    op = node.op
    if isinstance(op, (Convolution, Dense)):
        return _activated(writer, _product(writer, op, network.nodes[node.inputs[0]], inputs[0]), op.activation)
    if isinstance(op, Add):
        return _activated(writer, writer.put("Add", inputs), op.activation)
    if isinstance(op, Multiply):
        return _activated(writer, writer.put("Mul", inputs), op.activation)
    if isinstance(op, Activate):
        return _curved(writer, op, inputs[0])
    if isinstance(op, MaxPool):
        sides, stride, pads = [op.size] * 2, [op.stride] * 2, _pads(op.padding)
        wider = [2 * pad for pad in pads]
        if writer.dilated and writer.opset >= 10 and op.stride == 1 and op.size > 2 and max(wider) < op.size:
            return writer.put("MaxPool", inputs, kernel_shape=sides, strides=stride, pads=wider, dilations=[2, 2])
        return writer.put("MaxPool", inputs, kernel_shape=sides, strides=stride, pads=pads)
    if isinstance(op, AveragePool):
        return writer.put("GlobalAveragePool", inputs)
    if isinstance(op, Softmax):
        return writer.put("Softmax", inputs, axis=1)
    if isinstance(op, Concat):
        return writer.put("Concat", inputs, axis=1)
    if isinstance(op, Slice):
        ends = ([op.first], [op.first + op.channels], [1])
        return writer.put("Slice", [inputs[0], *(writer.constant(values, np.int64) for values in ends)])
    if isinstance(op, Reorg):
        return writer.put("SpaceToDepth", inputs, blocksize=op.stride)
    if isinstance(op, DepthToSpace):
        return writer.put("DepthToSpace", inputs, blocksize=op.rows)
    assert isinstance(op, Upsample)
    if writer.transposed:
        channels, window = network.nodes[node.inputs[0]].shape.channels, [op.stride, op.columns]
        weights = writer.constant(np.ones((channels, 1, *window)))
        return writer.put("ConvTranspose", [inputs[0], weights], strides=window, group=channels)
    scales = writer.constant([1, 1, op.stride, op.columns])
    region = "" if writer.opset >= 13 else writer.constant([])  # required before opset 13, but not read
    modes: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return writer.put("Resize", [inputs[0], region, scales], **modes)


def _curved(writer: Writer, op: Activate, source: str) -> str:
    """Write a function as exporters of the opset do."""
    if op.function == "clip":
        return _clipped(writer, source, *op.parameters)
    if op.function == "silu":
        return writer.put("Mul", [source, writer.put("Sigmoid", [source])])
    if op.function == "mish":
        return writer.put("Mul", [source, writer.put("Tanh", [writer.put("Softplus", [source])])])
    return writer.put(FUNCTIONS[op.function], [source])


def _clipped(writer: Writer, source: str, low: float, high: float) -> str:
    if writer.opset < 11:
        return writer.put("Clip", [source], min=low, max=high)
    return writer.put("Clip", [source, writer.constant(low), writer.constant(high)])


def _product(writer: Writer, op: Convolution | Dense, before: Node, source: str) -> str:
    """Write a convolution or a matrix product with its batch norm or bias."""
    norm, arrays = op.batch_norm, [writer.constant(op.weights)]
    if norm is None:
        arrays.append(writer.constant(op.bias))
    if isinstance(op, Dense):
        name = writer.put("Gemm", [writer.put("Flatten", [source]), *arrays], transB=1)
    else:
        window, stride = list(op.weights.shape[2:]), [op.stride] * 2
        slid: dict[str, Any] = {"kernel_shape": window, "strides": stride, "pads": _pads(op.padding)}
        name = writer.put("Conv", [source, *arrays], group=op.groups, **slid)
    if norm is None:
        return name
    values = (norm.scale, op.bias, norm.mean, norm.variance)
    return writer.put("BatchNormalization", [name, *map(writer.constant, values)], epsilon=norm.epsilon)


def _activated(writer: Writer, name: str, activation: str) -> str:
    if activation == "linear":
        return name
    if activation == "relu6":
        return _clipped(writer, name, 0.0, 6.0)
    kind, attributes = ACTIVATIONS[activation]
    return writer.put(kind, [name], **attributes)


def _pads(padding: Padding) -> list[int]:
    return [padding.top, padding.left, padding.bottom, padding.right]
