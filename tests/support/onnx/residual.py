"""A residual classifier that onnxruntime can quantise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.onnx.writer import Writer

SHAPE = (1, 3, 12, 16)
"""The input of the classifier has these sides."""


def convolved(writer: Writer, source: str, sides: Sequence[int], stride: int = 1, groups: int = 1) -> str:
    """Append a convolution whose ``sides`` are its filters, the channels of a group and the side of its kernel."""
    random = np.random.default_rng(len(writer.nodes))
    filters, channels, kernel = sides
    weights = random.normal(0, (2 / (channels * kernel**2)) ** 0.5, (filters, channels, kernel, kernel))
    arrays = [writer.constant(weights), writer.constant(random.normal(0, 0.1, filters))]
    pads, strides = [kernel // 2] * 4, [stride] * 2
    return writer.put("Conv", [source, *arrays], kernel_shape=[kernel] * 2, strides=strides, pads=pads, group=groups)


def residual() -> Any:
    """Return a classifier of two residual blocks, the second with a stride, a depthwise convolution and a concat."""
    writer = Writer()
    first = writer.put("Relu", [convolved(writer, "picture", (8, 3, 3))])
    inner = writer.put("Relu", [convolved(writer, first, (8, 8, 3))])
    last = writer.put("Relu", [writer.put("Add", [convolved(writer, inner, (8, 8, 3)), first])])
    inner = writer.put("Relu", [convolved(writer, last, (8, 1, 3), 2, 8)])
    beside = convolved(writer, last, (16, 8, 1), 2)
    last = writer.put("Add", [convolved(writer, inner, (16, 8, 3)), beside])
    gate = writer.put("Mul", [beside, writer.put("Sigmoid", [beside])])
    last = writer.put("Concat", [last, gate], axis=1)
    last = writer.put("MaxPool", [last], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    last = writer.put("Flatten", [writer.put("GlobalAveragePool", [last])])
    random = np.random.default_rng(9)
    arrays = [writer.constant(random.normal(0, 0.3, (10, 32))), writer.constant(random.normal(0, 0.1, 10))]
    return writer.model([writer.put("Gemm", [last, *arrays], transB=1)], SHAPE)
