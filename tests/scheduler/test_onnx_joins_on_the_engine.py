"""Joins of two maps and transposed convolutions from ONNX files, run on the generated code, compared bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from boards.errors import RangeError
from cnn.ops import QMultiply
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise_format
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.rules import check_schedule
from systolic.loading import load_model
from tests.support.arrays.joins import ARRAYS
from tests.support.arrays.run import Run
from tests.support.errors import raises_among
from tests.support.onnx.quantising import Form, quantised
from tests.support.onnx.writer import Writer
from tests.support.schedules import first_fit

pytestmark = pytest.mark.engine

SHAPE = (1, 3, 6, 9)
RANDOM = np.random.default_rng(5)


def convolution(writer: Writer, name: str, channels: int, filters: int, size: int = 3) -> str:
    weights = RANDOM.normal(0, 1 / (channels * size**2) ** 0.5, (filters, channels, size, size))
    return writer.put("Conv", [name, writer.constant(weights)], pads=[size // 2] * 4)


def joined(kind: str) -> onnx.ModelProto:
    """Return a model that joins two maps of one image by ``kind``, followed by a convolution."""
    writer = Writer(13)
    first, second = convolution(writer, "picture", 3, 8), convolution(writer, "picture", 3, 8)
    if kind == "squeeze":
        mean = writer.put("GlobalAveragePool", [first])
        join = writer.put("Mul", [first, writer.put("Sigmoid", [convolution(writer, mean, 8, 8, 1)])])
    elif kind == "transposed":
        weights = writer.constant(RANDOM.normal(0, 0.1, (8, 8, 3, 3)))
        join = writer.put("ConvTranspose", [first, weights], strides=[2, 2], pads=[1, 1, 1, 1])
    elif kind == "CRD":
        join = writer.put("DepthToSpace", [first], blocksize=2, mode="CRD")
    else:
        join = writer.put(kind, [first, second])
    return writer.model([convolution(writer, join, 2 if kind == "CRD" else 8, 5)], SHAPE)


KINDS = ("Mul", "Sub", "Max", "squeeze", "transposed", "CRD")


def of_floats(kind: str, folder: Path) -> QuantizedNetwork:
    path = folder / "net.onnx"
    onnx.save(joined(kind), path)
    network = load_model(str(path)).network
    pictures = [RANDOM.random(SHAPE[1:]).astype(np.float32) for _ in range(2)]
    return quantise_format(network, calibrate(network, pictures, "max", bits=8), 8)


def of_integers(kind: str, folder: Path, form: Form) -> QuantizedNetwork:
    network = load_model(str(quantised(joined(kind), folder, form, SHAPE))).quantized
    assert network is not None
    return network


@pytest.mark.parametrize("kind", KINDS)
def test_engine_float_onnx_joins_are_bit_exact(kind: str, run: Run, tmp_path: Path) -> None:
    network = with_copies(of_floats(kind, tmp_path))
    assert run("8 bits", check_schedule(first_fit(network, ARRAYS["8 bits"])), 1) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_engine_integer_onnx_joins_are_bit_exact(kind: str, run: Run, tmp_path: Path) -> None:
    network = with_copies(of_integers(kind, tmp_path, Form("QDQ", True, True)))
    assert run("8 bits", check_schedule(first_fit(network, ARRAYS["8 bits"])), 1) == 0


def test_engine_factors_with_zero_points_need_lanes_of_16_bits(run: Run, tmp_path: Path) -> None:
    network = of_integers("Mul", tmp_path, Form("QDQ", True, False, "QUInt8"))
    (product,) = (node for node in network.nodes if isinstance(node.op, QMultiply))
    assert {network.nodes[source].type.datatype.bits for source in product.inputs} == {9}
    with raises_among(RangeError, what="the number of bits of the input", got=9, high=8) as caught:
        first_fit(network, ARRAYS["8 bits"])
    assert "array of 16 bits" in caught.value.remedy
    assert run("16 bits", check_schedule(first_fit(network, ARRAYS["16 bits"])), 1) == 0
