"""Tests of hostile files with integers: each number that no exporter writes is refused, and none is misread."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError, UnsupportedError
from cnn.onnx.network import read_model
from cnn.ops import QConvolution
from cnn.requantise import THRESHOLD_LIMIT, Thresholds
from tests.support.cases import cases
from tests.support.errors import refused
from tests.support.onnx.integers import Integers
from tests.support.onnx.trained import DOMAIN, Trained, weights


def picture(zero: float) -> Any:
    """Write the quantised image alone, with a zero point."""
    writer = Trained()
    return writer.file(writer.quant("picture", 8, 1 / 128, zero))


def trained(scale: Any, zero: float = 0, bits: float = 4) -> Any:
    """Write a convolution whose weights have these scales, zero point and bits."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 128)
    inputs = [writer.constant(weights(6, 3, 3, 3)), *map(writer.constant, (scale, zero, bits))]
    kernel = writer.put("Quant", inputs, domain=DOMAIN, signed=1, narrow=0)
    return writer.file(writer.quant(writer.conv(last, kernel), 4, 0.1))


def bipolar(scale: Any) -> Any:
    """Write the convolution of ``trained`` with weights of one bit."""
    writer = Trained()
    inputs = [writer.constant(weights(6, 3, 3, 3)), writer.constant(scale)]
    kernel = writer.put("BipolarQuant", inputs, domain=DOMAIN)
    return writer.file(writer.quant(writer.conv(writer.quant("picture", 8, 1 / 128), kernel), 4, 0.1))


def reached(edges: Any, **options: Any) -> Any:
    """Write a convolution whose sums are compared with thresholds."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    last = writer.put("Conv", [last, writer.constant(np.ones((6, 3, 3, 3)))], kernel_shape=[3, 3], pads=[1] * 4)
    options = {"out_dtype": "UINT1", **options}
    return writer.file(writer.put("MultiThreshold", [last, writer.constant(edges)], domain=DOMAIN, **options))


def scaled_bias(scales: int, biases: int) -> Any:
    """Write a QLinearConv of four filters with the given numbers of scales and biases."""
    writer = Integers()
    kernel = [writer.whole(-9, 9, 4, 3, 3, 3), writer.constant(np.full(scales, 0.02)), writer.whole(0, 0, scales)]
    grid, bias = writer.grid(0.05, -7), writer.whole(-9, 9, biases, kind=np.int32)
    options: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4}
    return writer.floats([writer.put("QLinearConv", [*writer.pixels(), *kernel, *grid, bias], **options), *grid])


HOSTILE: dict[str, tuple[Callable[[], Any], SystolicError]] = {
    "an infinite zero point": (
        lambda: picture(np.inf),
        InvalidValueError("a zero point", np.inf, "a whole number", where="qonnx.custom_op.general.Quant '/Quant_0'"),
    ),
    "an infinite zero point of weights": (
        lambda: trained(0.1, np.inf),
        InvalidValueError("a zero point", np.inf, "a whole number", where="qonnx.custom_op.general.Quant '/Quant_1'"),
    ),
    "a far zero point": (
        lambda: picture(1e30),
        RangeError(
            "its zero point",
            1000000015047466219876688855040,
            -128,
            127,
            where="qonnx.custom_op.general.Quant '/Quant_0'",
        ),
    ),
    "a far zero point of weights": (
        lambda: trained(0.1, 1e30),
        RangeError(
            "the greatest weight, in steps of its scale,",
            1.0000000001463051e30,
            high=281474976710655,
            where="'conv2' (net.onnx: Conv '/Conv_2')",
        ),
    ),
    "infinite bits": (
        lambda: trained(0.1, 0, np.inf),
        RangeError("the number of bits", np.inf, 1, 32, True, where="qonnx.custom_op.general.Quant '/Quant_1'"),
    ),
    "scales of other filters": (
        lambda: trained(np.full((7, 1, 1, 1), 0.1)),
        ShapeError(
            "the scale or zero point",
            (7, 1, 1, 1),
            "a shape that broadcasts to the values' (6, 3, 3, 3)",
            where="qonnx.custom_op.general.Quant '/Quant_1'",
        ),
    ),
    "scales that make more of it": (
        lambda: trained(np.full((3000, 1, 1, 1, 1), 0.1)),
        ShapeError(
            "the scale or zero point",
            (3000, 1, 1, 1, 1),
            "a shape that broadcasts to the values' (6, 3, 3, 3)",
            where="qonnx.custom_op.general.Quant '/Quant_1'",
        ),
    ),
    "scales of other bits": (
        lambda: bipolar(np.full((7, 1, 1, 1), 0.1)),
        ShapeError(
            "the scale or zero point",
            (7, 1, 1, 1),
            "a shape that broadcasts to the values' (6, 3, 3, 3)",
            where="qonnx.custom_op.general.BipolarQuant '/BipolarQuant_0'",
        ),
    ),
    "a threshold of NaN": (
        lambda: reached(np.full((6, 1), np.nan)),
        UnsupportedError(
            "qonnx.custom_op.general.MultiThreshold '/MultiThreshold_2'", "its thresholds must ascend in every channel"
        ),
    ),
    "steps that underflow": (
        lambda: reached(np.zeros((6, 1)), out_scale=1e-40, out_bias=1.0),
        InvalidValueError(
            "out_bias",
            1.0,
            "a whole multiple of the scale 9.99995e-41",
            where="qonnx.custom_op.general.MultiThreshold '/MultiThreshold_2'",
        ),
    ),
    "a bias beyond all steps": (
        lambda: reached(np.zeros((6, 1)), out_bias=3e38),
        InvalidValueError(
            "out_bias",
            3.0000000054977558e38,
            "a whole multiple of the scale 1",
            where="qonnx.custom_op.general.MultiThreshold '/MultiThreshold_2'",
        ),
    ),
    "too few biases": (
        lambda: scaled_bias(4, 3),
        ShapeError("its bias", "3 values", "a value for each of 4 scales", where="QLinearConv '/QLinearConv_1'"),
    ),
    "too many biases": (
        lambda: scaled_bias(1, 5),
        ShapeError("bias", (5,), (4,), where="QLinearConv '/QLinearConv_1'"),
    ),
}


@cases("case", HOSTILE)
def test_integers_that_no_exporter_writes_are_refused(case: str) -> None:
    make, fault = HOSTILE[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with refused(fault):
            read_model(make(), "net.onnx", "net")


@cases("name", ["kind", "inputs", "output", "self", "attributes"])
def test_attribute_of_any_name_is_accepted(name: str) -> None:
    """Check also a name that is not UTF-8 text, for which only an error of the project may be raised."""
    model = scaled_bias(4, 4)
    model.graph.node[1].attribute.add(name=name, type=2, i=3)
    assert read_model(model, "net.onnx", "net").quantized is not None
    data = model.SerializeToString()
    spoilt = onnx.ModelProto.FromString(data.replace(b"kernel_shape", b"\xd6ernel_shape", 1))
    with contextlib.suppress(SystolicError):
        read_model(spoilt, "net.onnx", "net")


def test_threshold_of_infinity_becomes_the_limit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_model(reached(np.full((6, 1), np.inf)), "net.onnx", "net")
    assert read.quantized is not None
    op = read.quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert isinstance(op.requantiser, Thresholds)
    assert (op.requantiser.thresholds == THRESHOLD_LIMIT).all()


@cases("scale", [1e-45, 3e38])
def test_weights_of_extreme_scale_are_read_if_every_output_is_clipped(scale: float) -> None:
    """Use scales for which a bias is 1e47 sums, and a sum is 1e37 steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_model(trained(scale), "net.onnx", "net")
    assert read.quantized is not None
    assert not read.notes
