"""Files that hold integers, and numbers that no exporter writes: each is refused with a sentence, and none is taken for
another number."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import NetworkError
from cnn.onnx.network import read_model
from cnn.quantized import QConvolution, Thresholds
from cnn.quantized_check import THRESHOLD_LIMIT
from tests.cnn.onnx.test_qonnx import DOMAIN, Trained, weights
from tests.cnn.onnx.test_quantised_operators import Integers


def picture(zero: float) -> Any:
    """The picture alone, with a zero point."""
    writer = Trained()
    return writer.file(writer.quant("picture", 8, 1 / 128, zero))


def trained(scale: Any, zero: float = 0, bits: float = 4) -> Any:
    """A convolution whose weights are quantised so."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 128)
    inputs = [writer.constant(weights(6, 3, 3, 3)), *map(writer.constant, (scale, zero, bits))]
    kernel = writer.put("Quant", inputs, domain=DOMAIN, signed=1, narrow=0)
    return writer.file(writer.quant(writer.conv(last, kernel), 4, 0.1))


def bipolar(scale: Any) -> Any:
    """As ``trained`` of one bit."""
    writer = Trained()
    inputs = [writer.constant(weights(6, 3, 3, 3)), writer.constant(scale)]
    kernel = writer.put("BipolarQuant", inputs, domain=DOMAIN)
    return writer.file(writer.quant(writer.conv(writer.quant("picture", 8, 1 / 128), kernel), 4, 0.1))


def reached(edges: Any, **options: Any) -> Any:
    """A convolution whose sums are compared with thresholds."""
    writer = Trained()
    last = writer.quant("picture", 8, 1 / 255, signed=0)
    last = writer.put("Conv", [last, writer.constant(np.ones((6, 3, 3, 3)))], kernel_shape=[3, 3], pads=[1] * 4)
    options = {"out_dtype": "UINT1", **options}
    return writer.file(writer.put("MultiThreshold", [last, writer.constant(edges)], domain=DOMAIN, **options))


def scaled_bias(scales: int, biases: int) -> Any:
    """QLinearConv of four filters."""
    writer = Integers()
    kernel = [writer.whole(-9, 9, 4, 3, 3, 3), writer.constant(np.full(scales, 0.02)), writer.whole(0, 0, scales)]
    grid, bias = writer.grid(0.05, -7), writer.whole(-9, 9, biases, kind=np.int32)
    options: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4}
    return writer.floats([writer.put("QLinearConv", [*writer.pixels(), *kernel, *grid, bias], **options), *grid])


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "an infinite zero point": (lambda: picture(np.inf), "a zero point is a whole number"),
    "an infinite zero point of weights": (lambda: trained(0.1, np.inf), "a zero point is a whole number"),
    "a far zero point": (lambda: picture(1e30), "its zero point must be one of its integers, not 1000000015047466219"),
    "a far zero point of weights": (lambda: trained(0.1, 1e30), r"its weights are up to 1e\+30 of their scale, beyond"),
    "infinite bits": (lambda: trained(0.1, 0, np.inf), "there is one number of bits, 1 to 32"),
    "the least scale": (lambda: trained(1e-45), r"its bias or zero point is beyond any sum, 7\.\d+e\+47 of its steps"),
    "the greatest scale": (lambda: trained(3e38), r"accumulator scale / output scale must be below 2\^15"),
    "scales of other filters": (
        lambda: trained(np.full((7, 1, 1, 1), 0.1)),
        r"scales and zero points \(7, 1, 1, 1\) do not go with values \(6, 3, 3, 3\)",
    ),
    "scales that make more of it": (
        lambda: trained(np.full((3000, 1, 1, 1, 1), 0.1)),
        r"scales and zero points \(3000, 1, 1, 1, 1\) do not go with values",
    ),
    "scales of other bits": (
        lambda: bipolar(np.full((7, 1, 1, 1), 0.1)),
        r"scales and zero points \(7, 1, 1, 1\) do not go with values",
    ),
    "a threshold that is no number": (lambda: reached(np.full((6, 1), np.nan)), "thresholds ascend in every channel"),
    "steps that underflow": (
        lambda: reached(np.zeros((6, 1)), out_scale=1e-40, out_bias=1.0),
        "out_bias must be a whole number of out_scale, not 1 of 9.99",
    ),
    "a bias beyond all steps": (
        lambda: reached(np.zeros((6, 1)), out_bias=3e38),
        r"out_bias must be a whole number of out_scale, not 3e\+38 of 1",
    ),
    "too few biases": (lambda: scaled_bias(4, 3), "its bias has a number for each scale, not 3 for 4"),
    "too many biases": (lambda: scaled_bias(1, 5), "there must be 4 biases, not"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_exporter_writes_is_refused(case: str) -> None:
    make, sentence = HOSTILE[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NetworkError, match=sentence):
            read_model(make(), "net.onnx", "net")


@pytest.mark.parametrize("name", ["kind", "inputs", "output", "self", "attributes"])
def test_an_attribute_may_have_any_name(name: str) -> None:
    """Also one that is no text in UTF-8."""
    model = scaled_bias(4, 4)
    model.graph.node[1].attribute.add(name=name, type=2, i=3)
    assert read_model(model, "net.onnx", "net").quantized is not None
    data = model.SerializeToString()
    spoilt = onnx.ModelProto.FromString(data.replace(b"kernel_shape", b"\xd6ernel_shape", 1))
    with contextlib.suppress(NetworkError):
        read_model(spoilt, "net.onnx", "net")


def test_a_threshold_that_no_sum_reaches_is_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_model(reached(np.full((6, 1), np.inf)), "net.onnx", "net")
    assert read.quantized is not None
    op = read.quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert isinstance(op.requantiser, Thresholds)
    assert (op.requantiser.thresholds == THRESHOLD_LIMIT).all()
