"""Tests of maps with a scale per channel before depthwise convolutions (Brevitas' scaling_per_output_channel)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boards.errors import ShapeError, UnsupportedError
from cnn.integer_model import run_integer
from cnn.onnx.network import read_model
from cnn.onnx.quantised.linear import ONE_SCALE
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.onnx.trained import SIDES, Trained

SCALES = np.array([0.0613, 0.271, 0.0193, 0.117, 0.0431, 0.0717], np.float32)
"""Scales per channel. They are not powers of two, so that sums rarely end in exact halves."""


class Scaled(Trained):
    """Writer of integer convolutions, and of maps that are quantised with a scale per channel."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(6)

    def weights(self, *shape: int, scale: float = 0.113) -> str:
        """Return quantised weights of 4 bits."""
        return self.quant(self.constant(self.random.normal(0, 0.4, shape)), 4, scale, narrow=1)

    def pixels(self) -> str:
        """Return the image, quantised to its 8-bit pixels."""
        return self.quant("picture", 8, 1 / 255, signed=0)

    def first(self) -> str:
        """Return a convolution of the image, with a bias."""
        inputs = [self.pixels(), self.weights(6, 3, 3, 3), self.constant(self.random.normal(0, 0.2, 6))]
        return self.put("Conv", inputs, kernel_shape=[3, 3], pads=[1] * 4)

    def channelwise(self, source: str, scales: Any = SCALES, **attributes: Any) -> str:
        """Return the map, quantised with a scale per channel."""
        return self.quant(source, 4, np.reshape(scales, (1, -1, 1, 1)), **attributes)

    def depthwise(self, source: str, filters: int = 6, bias: bool = False, **attributes: Any) -> str:
        """Return a depthwise convolution, quantised with one scale."""
        inputs = [source, self.weights(filters, 1, 3, 3)]
        inputs += [self.constant(self.random.normal(0, 0.2, filters))] if bias else []
        attributes = {"kernel_shape": [3, 3], "pads": [1] * 4, "group": 6, **attributes}
        return self.quant(self.put("Conv", inputs, **attributes), 6, 0.0627)


def plain(writer: Scaled) -> str:
    return writer.depthwise(writer.channelwise(writer.first()))


def unsigned(writer: Scaled) -> str:
    """Write a ReLU before the depthwise convolution, its bias, and a pointwise convolution after it."""
    source = writer.channelwise(writer.put("Relu", [writer.first()]), signed=0)
    last = writer.depthwise(source, bias=True, strides=[2, 2])
    return writer.quant(writer.put("Conv", [last, writer.weights(4, 6, 1, 1)], kernel_shape=[1, 1]), 8, 0.0319)


def several_filters(writer: Scaled) -> str:
    """Write two filters per channel."""
    return writer.depthwise(writer.channelwise(writer.first()), 12, bias=True)


def pooled(writer: Scaled) -> str:
    """Write a pool before the depthwise convolution, and two convolutions that read the pooled map."""
    source = writer.channelwise(writer.put("Relu", [writer.first()]), signed=0)
    source = writer.put("MaxPool", [source], kernel_shape=[2, 2], strides=[2, 2])
    return writer.put("Concat", [writer.depthwise(source), writer.depthwise(source)], axis=1)


def normed(writer: Scaled) -> str:
    """Write batch norms before and after the depthwise convolution."""
    source = writer.channelwise(writer.normed(writer.first(), 6))
    inputs = [source, writer.weights(6, 1, 3, 3)]
    return writer.quant(writer.normed(writer.put("Conv", inputs, kernel_shape=[3, 3], group=6), 6), 6, 0.13)


def in_three(writer: Scaled) -> str:
    """Write QuantizeLinear, Clip and DequantizeLinear, as Brevitas' QCDQ export does."""
    grid = [writer.constant(SCALES), writer.constant(np.zeros(6), np.int8)]
    integers = writer.put("QuantizeLinear", [writer.first(), *grid], axis=1)
    cut = writer.put("Clip", [integers, writer.constant(-8, np.int8), writer.constant(7, np.int8)])
    return writer.depthwise(writer.put("DequantizeLinear", [cut, *grid], axis=1))


def in_two(writer: Scaled) -> str:
    """Write QuantizeLinear and DequantizeLinear with a zero point."""
    grid = [writer.constant(SCALES / 8), writer.constant(np.full(6, 110), np.uint8)]
    integers = writer.put("QuantizeLinear", [writer.first(), *grid], axis=1)
    return writer.depthwise(writer.put("DequantizeLinear", [integers, *grid], axis=1))


GRAPHS: tuple[Callable[[Scaled], str], ...] = (plain, unsigned, several_filters, pooled, normed, in_three, in_two)


@cases("make", GRAPHS)
def test_scales_per_channel_move_into_depthwise_weights(make: Callable[[Scaled], str]) -> None:
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx executes its own operators")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    writer = Scaled()
    model = writer.file(make(writer))
    read = read_model(model, "net.onnx", "net")
    assert read.quantized is not None
    picture = np.random.default_rng(5).integers(0, 256, SIDES[1:], np.uint8)
    full = wrapper.ModelWrapper(model).transform(InferShapes())
    (theirs,) = execute_onnx(full, {"picture": (picture[None] / np.float32(255)).astype(np.float32)}).values()
    type_, ours = read.quantized.nodes[-1].type, run_integer(read.quantized, picture)[-1]
    assert ours is not None
    floats = (ours.astype(np.int64) - type_.zero_point) * np.float32(type_.scale)
    steps = np.rint((floats - theirs[0]) / type_.scale)
    assert len(np.unique(ours)) > 4
    assert np.count_nonzero(steps) == 0
    convolutions = [node for node in read.network.nodes if isinstance(node.op, Convolution)]
    assert len(convolutions) == sum(node.op_type == "Conv" for node in model.graph.node), "no layer may be added"


def dense(writer: Scaled) -> str:
    """Write a convolution over all channels that reads the scaled map."""
    inputs = [writer.channelwise(writer.first()), writer.weights(4, 6, 3, 3)]
    return writer.put("Conv", inputs, kernel_shape=[3, 3])


def leaving(writer: Scaled) -> str:
    """Write the scaled map as the network's output."""
    return writer.channelwise(writer.first())


def shared(writer: Scaled) -> str:
    """Write an addition as a second reader of the scaled map."""
    source = writer.channelwise(writer.first())
    return writer.quant(writer.put("Add", [writer.depthwise(source), source]), 8, 0.1)


def of_zero_points(writer: Scaled) -> str:
    """Write a zero point per channel as well."""
    numbers = np.arange(6).reshape(1, 6, 1, 1)
    return writer.depthwise(writer.quant(writer.first(), 4, np.reshape(SCALES, (1, 6, 1, 1)), numbers))


def rows(writer: Scaled) -> str:
    """Write scales per row instead of per channel."""
    source = writer.quant(writer.first(), 4, np.linspace(0.1, 0.2, SIDES[2]).reshape(1, 1, -1, 1))
    return writer.depthwise(source)


@cases("make", [dense, leaving, shared, of_zero_points, rows])
def test_scales_per_channel_that_cannot_move_are_refused(make: Callable[[Scaled], str]) -> None:
    writer = Scaled()
    model = writer.file(make(writer))
    quant = next(node for node in model.graph.node if node.op_type == "Quant" and "conv" in node.input[0])
    with raises_among(
        ShapeError,
        what="the scale of a map",
        where=f"qonnx.custom_op.general.Quant {quant.name!r}",
        remedy=ONE_SCALE,
    ):
        read_model(model, "net.onnx", "net")


def test_quantiser_that_reads_its_own_output_is_refused() -> None:
    """Check that the search for the operator before it ends, although the damaged file has a cycle."""
    writer = Scaled()
    model = writer.file(plain(writer))
    quant = next(node for node in model.graph.node if node.op_type == "Quant" and "conv" in node.input[0])
    quant.input[0] = quant.output[0]
    with raises_among(UnsupportedError, subject=f"qonnx.custom_op.general.Quant {quant.name!r}"):
        read_model(model, "net.onnx", "net")
