"""QONNX and FINN-ONNX files: every tensor against the package qonnx, which executes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from cnn.integer_model import run_node
from cnn.onnx.network import read_model
from tests.support.cases import cases
from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]
DOMAIN = "qonnx.custom_op.general"
SIDES = (1, 3, 10, 12)


class Trained(Writer):
    """As exporters write what was quantised by training."""

    def quant(self, source: str, bits: int, scale: Any, zero: float = 0, **attributes: Any) -> str:
        """Quant."""
        inputs = [source, self.constant(scale), self.constant(zero), self.constant(bits)]
        attributes = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
        return self.put("Quant", inputs, domain=DOMAIN, **attributes)

    def conv(self, source: str, weights: str, **attributes: Any) -> str:
        """Conv with padding of one, and a batch norm behind it whose gains have both signs."""
        name = self.put("Conv", [source, weights], kernel_shape=[3, 3], pads=[1, 1, 1, 1], **attributes)
        return self.normed(name, 6)

    def normed(self, source: str, channels: int) -> str:
        """BatchNormalization."""
        random = np.random.default_rng(len(self.nodes))
        gain, *rest = random.normal(0, 1, (3, channels))
        values = (gain, *rest, random.uniform(0.5, 2, channels))
        return self.put("BatchNormalization", [source, *map(self.constant, values)])

    def file(self, *outputs: str) -> Any:
        """With the domain of Quant."""
        model = self.model(outputs, SIDES)
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return model


def weights(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 0.3, shape)


def few_bits() -> Any:
    """Weights and maps of 2 to 8 bits, signed and not, narrow and not; a classifier."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 128, -3.0)
    kernel = writer.quant(writer.constant(weights(6, 3, 3, 3)), 4, np.full((6, 1, 1, 1), 0.11), narrow=1)
    last = writer.put("Relu", [writer.conv(last, kernel)])
    last = writer.quant(last, 4, 0.17, signed=0)
    last = writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2])
    kernel = writer.quant(writer.constant(weights(6, 1, 3, 3)), 3, 0.2)
    last = writer.quant(writer.conv(last, kernel, group=6), 5, 0.25, narrow=1)
    last = writer.quant(writer.put("Sigmoid", [last]), 6, 1 / 64, signed=0)
    kernel = writer.quant(writer.constant(weights(180, 7)), 8, np.full((1, 7), 0.01), narrow=1)
    return writer.file(writer.put("MatMul", [writer.put("Flatten", [last]), kernel]))


def of_one_bit() -> Any:
    """BIPOLAR weights and maps."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 128)
    kernel = writer.put("BipolarQuant", [writer.constant(weights(6, 3, 3, 3)), writer.constant(0.5)], domain=DOMAIN)
    last = writer.put("BipolarQuant", [writer.conv(last, kernel), writer.constant(1.0)], domain=DOMAIN)
    last = writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2])
    kernel = writer.put("BipolarQuant", [writer.constant(weights(6, 6, 1, 1)), writer.constant(1.0)], domain=DOMAIN)
    last = writer.normed(writer.put("Conv", [last, kernel], kernel_shape=[1, 1]), 6)
    return writer.file(writer.put("BipolarQuant", [last, writer.constant(0.25)], domain=DOMAIN))


def streamlined() -> Any:
    """Whole numbers and thresholds, as FINN leaves a network."""
    writer, random = Trained(), np.random.default_rng(2)
    kernel = writer.constant(random.integers(-7, 8, (6, 3, 3, 3)))
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    last = writer.put("Conv", [last, kernel], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    edges = writer.constant(np.sort(random.normal(0, 12, (6, 15)), axis=1))
    last = writer.put("MultiThreshold", [last, edges], domain=DOMAIN, out_dtype="UINT4")
    last = writer.put("Conv", [last, writer.constant(random.integers(-3, 4, (5, 6, 1, 1)))], kernel_shape=[1, 1])
    edges = writer.constant(np.sort(random.integers(-90, 90, (1, 7)), axis=1))
    options: dict[str, Any] = {"out_dtype": "INT3", "out_bias": -4.0}
    return writer.file(writer.put("MultiThreshold", [last, edges], domain=DOMAIN, **options))


def unstreamlined() -> Any:
    """Whole numbers with their scales behind them, and thresholds wherever values are, as FINN's exports begin."""
    writer, random = Trained(), np.random.default_rng(4)

    def reached(source: str, edges: Any, **attributes: Any) -> str:
        inputs = [source, writer.constant(np.sort(edges, axis=1))]
        return writer.put("MultiThreshold", inputs, domain=DOMAIN, **{"out_dtype": "UINT2", **attributes})

    def scaled(source: str, channels: int, inputs: int, size: int) -> str:
        kernel = writer.constant(random.integers(-3, 4, (channels, inputs, size, size)))
        last = writer.put("Conv", [source, kernel], kernel_shape=[size, size])
        last = writer.put("Mul", [last, writer.constant(random.uniform(0.1, 0.4, (1, channels, 1, 1)))])
        return writer.put("Add", [last, writer.constant(random.normal(0, 1, (channels, 1, 1)))])

    last = reached("picture", random.uniform(0, 1, (3, 15)), out_dtype="UINT4")
    last = reached(scaled(last, 6, 3, 3), random.normal(0, 9, (6, 3)))
    pooled = reached(writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2]), np.array([[0.5, 1.5, 2.5]]))
    first, second = (reached(scaled(pooled, 6, 6, 1), random.normal(0, 3, (6, 3))) for _ in range(2))
    added = reached(writer.put("Add", [first, second]), np.array([[1.5, 2.5, 4.5]]))
    turned = writer.put("Transpose", [scaled(added, 5, 6, 1)], perm=[0, 2, 3, 1])
    turned = reached(turned, random.normal(0, 3, (5, 3)), data_layout="NHWC")
    last = writer.put("GlobalAveragePool", [writer.put("Transpose", [turned], perm=[0, 3, 1, 2])])
    return writer.file(reached(last, random.uniform(0, 3, (5, 3))))


@cases("make", [few_bits, of_one_bit, streamlined, unstreamlined])
def test_every_tensor_is_that_of_qonnx(make: Any) -> None:
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx

    model = make()
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    picture = np.random.default_rng(5).integers(0, 256, SIDES[1:], np.uint8)
    full = wrapper.ModelWrapper(model).transform(_shapes())
    feed = {"picture": (picture[None] / np.float32(255)).astype(np.float32)}
    theirs = execute_onnx(full, feed, return_full_exec_context=True)
    quants = [node.output[0] for node in model.graph.node if node.domain == DOMAIN]
    values: list[Array | None] = [picture]
    steps = {}
    for index, node in enumerate(read.quantized.nodes[1:], 1):
        ours = run_node(node, read.quantized.nodes, values, picture)
        for name in (name for name in quants if read.tensors.get(name) == index):
            first = np.moveaxis(theirs[name], -1, 1) if name in read.last else theirs[name]
            exact = np.rint(first.reshape(ours.shape) / node.type.scale) + node.type.zero_point
            steps[name] = int(np.abs(ours.astype(np.int64) - exact).max())
            ours = exact.astype(ours.dtype)
        values.append(ours)
    assert len(steps) >= 2
    assert max(steps.values()) <= (0 if make is not few_bits else 1), steps


def _shapes() -> Any:
    from qonnx.transformation.infer_shapes import InferShapes

    return InferShapes()
