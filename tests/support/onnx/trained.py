"""Networks that were quantised by training, as QONNX and FINN-ONNX files."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.support.onnx.writer import Writer

Array = np.ndarray[Any, Any]
DOMAIN = "qonnx.custom_op.general"
"""This is the domain of QONNX's operators."""
SIDES = (1, 3, 10, 12)
"""The input of these files has these sides."""


class Trained(Writer):
    """A writer with the operators of networks that were quantised by training."""

    def quant(self, source: str, bits: int, scale: Any, zero: Any = 0, **attributes: Any) -> str:
        """Append a Quant and return its output."""
        inputs = [source, self.constant(scale), self.constant(zero), self.constant(bits)]
        attributes = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
        return self.put("Quant", inputs, domain=DOMAIN, **attributes)

    def conv(self, source: str, weights: str, **attributes: Any) -> str:
        """Append a Conv with padding of one, followed by a batch norm whose gains have both signs."""
        name = self.put("Conv", [source, weights], kernel_shape=[3, 3], pads=[1, 1, 1, 1], **attributes)
        return self.normed(name, 6)

    def normed(self, source: str, channels: int) -> str:
        """Append a BatchNormalization with random numbers and return its output."""
        random = np.random.default_rng(len(self.nodes))
        gain, *rest = random.normal(0, 1, (3, channels))
        values = (gain, *rest, random.uniform(0.5, 2, channels))
        return self.put("BatchNormalization", [source, *map(self.constant, values)])

    def file(self, *outputs: str) -> Any:
        """Return the file with these outputs, which names the domain of Quant."""
        model = self.model(outputs, SIDES)
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return model


def weights(*shape: int) -> Array:
    """Return normally distributed weights, the same for each shape."""
    return np.random.default_rng(sum(shape)).normal(0, 0.3, shape)


def few_bits() -> Any:
    """Return a classifier whose weights and maps have 2 to 8 bits, signed and not, narrow and not."""
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
    """Return a network with BIPOLAR weights and maps."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 128)
    kernel = writer.put("BipolarQuant", [writer.constant(weights(6, 3, 3, 3)), writer.constant(0.5)], domain=DOMAIN)
    last = writer.put("BipolarQuant", [writer.conv(last, kernel), writer.constant(1.0)], domain=DOMAIN)
    last = writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2])
    kernel = writer.put("BipolarQuant", [writer.constant(weights(6, 6, 1, 1)), writer.constant(1.0)], domain=DOMAIN)
    last = writer.normed(writer.put("Conv", [last, kernel], kernel_shape=[1, 1]), 6)
    return writer.file(writer.put("BipolarQuant", [last, writer.constant(0.25)], domain=DOMAIN))


def streamlined() -> Any:
    """Return a network of integers and thresholds, as FINN writes one after streamlining."""
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
    """Return a network of integers followed by scales and thresholds, as FINN's exports begin."""
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
